"""Turns canonical sentences into graph edges, by the same slots as decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from uuid import UUID

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.relations import ENDS, relation_of
from pipeline.adapters.model_rules.statements import Slot, aliases, slots_of, stems
from pipeline.domain.graph import EdgeEnding, Entity, GraphChanges, Relation, StoredRelation

# A status that names a person is an edge to that person: married_to, dating.
STATUS = re.compile(r"(?P<status>(?:married|engaged) to|dating) (?P<x>.+)")
VISIT = re.compile(r"travel to (?P<x>.+?)(?: (?:with|for|and|by) .+)?")
# Names of edges that are not the names of their slots.
EDGES = {"plans": "plans_to", "wants": "wants_to", "relationship_status": "has_status"}
# Relations without an edge.
SILENT = frozenset({"is", "left", "works"})
PET_NAMED = re.compile(rf"an? (?P<kind>(?:\w+ )?{w.PETS}) named (?P<name>.+)", re.IGNORECASE)
PET = re.compile(rf"\b{w.PETS}\b", re.IGNORECASE)
ARTICLE = re.compile("^(?:an?|the|their|his|her) ", re.IGNORECASE)


def relate_facts(facts: Sequence[str], current: Sequence[StoredRelation]) -> GraphChanges:
    """Edges of all facts, and the current edges that they take back, without duplicates.

    One that is current is linked to the new fact. The plan of the graph
    (`pipeline.domain.graph_plan`) ends those that an edge excludes, and that a deleted memory
    stated.
    """
    names = aliases(
        (edge.source.lower().removeprefix("the "), edge.relation, edge.destination)
        for edge in current
        if edge.relation != "named"
    )
    edges: dict[tuple[str, str, str], Relation] = {}
    ended: dict[UUID, EdgeEnding] = {}
    for number, text in enumerate(facts):
        for slot in slots_of(text):
            known = slot.renamed(names)
            for old in current if not slot.positive else ():
                if _takes_back(known, old):
                    ended.setdefault(old.relation_id, EdgeEnding(old.relation_id, number))
            for edge in _edges(known, text, number):
                edges.setdefault((edge.source.name, edge.relation, edge.destination.name), edge)
    return GraphChanges(tuple(edges.values()), endings=tuple(ended.values()))


def _takes_back(slot: Slot, edge: StoredRelation) -> bool:
    """True if a negative statement is about a current edge: "lost their dog Rollo", owns Rollo."""
    plan = VISIT.fullmatch(slot.value) if slot.relation == "plans" else None
    named = stems(PET.sub("", plan["x"] if plan else slot.value)) or slot.key
    relation = "plans" if edge.relation.startswith("plans_to") else edge.relation
    ours = edge.source.lower().removeprefix("the ") == slot.subject
    known = relation in ENDS.get(slot.relation, (slot.relation,))
    return ours and known and named <= stems(edge.destination)


def _edges(slot: Slot, text: str, number: int) -> Iterator[Relation]:
    """The edges of one slot; none for what is so no longer."""
    relation = EDGES.get(slot.relation, re.sub("^attribute_", "has_", slot.relation))
    if not slot.value or slot.relation in SILENT or (not slot.positive and relation != "likes"):
        return
    source, pet = _source(slot, text), PET_NAMED.fullmatch(slot.value)
    if pet and relation == "owns":
        animal = Entity(pet["name"], "animal")
        yield Relation(source, "owns", animal, number)
        yield Relation(animal, "is_a", Entity(pet["kind"].lower(), "species"), number)
    elif not (relation == "has_status" and slot.value.startswith("broke up")):
        name, value, kind = _end(slot, relation)
        yield Relation(source, name, Entity(ARTICLE.sub("", value), kind), number)


def _end(slot: Slot, relation: str) -> tuple[str, str, str]:
    """The relation of a slot's edge, and the name and kind of the entity that it leads to."""
    status = STATUS.fullmatch(slot.value) if relation == "has_status" else None
    if status:
        return status["status"].replace(" ", "_"), status["x"], "person"
    visit = VISIT.fullmatch(slot.value) if relation == "plans_to" else None
    if visit:
        return "plans_to_visit", visit["x"], "place"
    first, _, noun = slot.relation.partition("_")
    kind = noun if first == "favourite" else relation_of(slot.relation).far
    last = slot.value.lower().split()[-1]
    if last in w.FOODS and relation in ("likes", "prefers", "allergic_to"):
        kind = "food"
    elif relation == "learns" and re.fullmatch(w.LANGUAGES, last):
        kind = "language"
    return relation if slot.positive else "dislikes", slot.value, kind


def _source(slot: Slot, text: str) -> Entity:
    """The subject as the fact writes it; the speaker is "User"."""
    at = text.lower().find(slot.subject)
    name = text[at : at + len(slot.subject)] if at >= 0 else slot.subject
    return Entity(name[:1].upper() + name[1:], "person")
