"""Turns canonical sentences into graph edges, by the same slots as decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.relations import traits_of
from pipeline.adapters.model_rules.statements import Slot, aliases, slots_of, stems
from pipeline.domain.graph.values import EdgeEnding, Entity, GraphChanges, Relation, StoredRelation

# A status that names a person is an edge to that person: married_to, dating.
STATUS = re.compile(r"(?P<edge>(?:married|engaged) to|dating) (?P<x>.+)")
VISIT = re.compile(r"travel to (?P<x>.+?)(?: (?:with|for|and|by) .+)?$")
PET_NAMED = re.compile(rf"an? (?P<kind>(?:\w+ )?{w.PETS}) named (?P<name>.+)", re.IGNORECASE)
PET = re.compile(rf"\b{w.PETS}\b", re.IGNORECASE)
ARTICLE = re.compile("^(?:an?|the|their|his|her) ", re.IGNORECASE)


def relate_facts(facts: Sequence[str], current: Sequence[StoredRelation]) -> GraphChanges:
    """Edges of all facts, without duplicates, and the current edges that they take back."""
    edges: dict[tuple[str, str, str], Relation] = {}
    ended: dict[UUID, EdgeEnding] = {}
    names = aliases((edge.source.lower(), edge.relation, edge.destination) for edge in current)
    for number, text in enumerate(facts):
        for read in slots_of(text):
            slot = replace(read, subject=names.get(read.subject, read.subject))
            named = stems(PET.sub("", VISIT.sub(r"\1", slot.value))) or slot.key
            for old in () if slot.positive else current:
                ours = old.source.lower() == slot.subject and named <= stems(old.destination)
                if ours and old.relation in slot.ends:
                    ended.setdefault(old.relation_id, EdgeEnding(old.relation_id, number))
            for edge in _edges(slot, text, number):
                edges.setdefault((edge.source.name, edge.relation, edge.destination.name), edge)
    return GraphChanges(tuple(edges.values()), endings=tuple(ended.values()))


def _edges(slot: Slot, text: str, number: int) -> Iterator[Relation]:
    """The edges of one slot; none for what is so no longer."""
    name, value = slot.relation, slot.value
    edge = traits_of(name).edge if slot.positive else "dislikes" if name == "likes" else ""
    if edge == "" or not value or value.startswith("broke up"):
        return
    # The subject as the fact writes it; the speaker is "User".
    at = text.lower().find(slot.subject)
    owner = text[at : at + len(slot.subject)] if at >= 0 else slot.subject
    source = Entity(owner[:1].upper() + owner[1:], "person")
    pet = PET_NAMED.fullmatch(value) if name == "owns" else None
    kind = _kind(name, value.lower().split()[-1])
    name = edge or name.replace("attribute_", "has_")
    if pet:
        value, kind = pet["name"], "animal"
    elif name == "has_status" and (status := STATUS.fullmatch(value)):
        name, value, kind = status["edge"].replace(" ", "_"), status["x"], "person"
    elif name == "plans_to" and (visit := VISIT.fullmatch(value)):
        name, value, kind = "plans_to_visit", visit["x"], "place"
    yield Relation(source, name, Entity(ARTICLE.sub("", value), kind), number)
    if pet:
        yield Relation(Entity(value, kind), "is_a", Entity(pet["kind"].lower(), "species"), number)


def _kind(relation: str, last: str) -> str:
    """Kind of the entity that a relation leads to. `last`: the last word of its name."""
    if last in w.FOODS and relation in ("likes", "prefers", "allergic_to"):
        return "food"
    if relation == "learns" and re.fullmatch(w.LANGUAGES, last):
        return "language"
    base, _, noun = relation.partition("_")
    return noun if base == "favourite" else traits_of(relation).far
