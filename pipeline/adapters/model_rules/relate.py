"""Turns canonical sentences into graph edges, by the same slots as decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from uuid import UUID

from pipeline.adapters.model_rules import words as w
from pipeline.adapters.model_rules.slots import Slot, ends_of, is_single, slots_of, stems
from pipeline.domain.graph import EdgeEnding, Entity, GraphChanges, Relation, StoredRelation

# Kind of the entity that a relation points to; "thing" for the others.
KINDS = {
    "lives_in": "place", "is_from": "place", "grew_up_in": "place", "born_in": "place",
    "works_at": "organization", "works_as": "occupation", "works_in": "field", "named": "name",
    "follows_diet": "diet", "allergic_to": "substance", "likes": "interest", "dislikes": "interest",
    "speaks": "language", "learns": "subject", "plays": "activity", "has_condition": "condition",
    "owns": "thing", "drives": "vehicle", "plans_to": "event", "plans_to_visit": "place",
    "wants_to": "goal", "married_to": "person", "engaged_to": "person", "dating": "person",
    "has_birthday": "date", "is_aged": "age", "eats": "food", "drinks": "drink", "is_a": "group",
    "prefers": "interest", "has_status": "status",
}  # fmt: skip
FOODS = w.words(
    "pizza pasta sushi chocolate coffee tea wine beer cheese bread rice meat fish chicken beef pork"
    " salad soup curry ramen tacos noodles peanuts nuts shellfish eggs milk gluten soy strawberries"
    " apples bananas mushrooms olives coriander cilantro ice-cream cake seafood tofu spicy food"
)
# A status that names a person is an edge to that person.
STATUS_OF = {
    "married to ": "married_to", "engaged to ": "engaged_to", "dating ": "dating",
    "in a relationship with ": "dating",
}  # fmt: skip
RELATIVES = w.SHE | w.HE | w.ANYONE
# Relations without an edge.
SILENT = frozenset({"forget", "is", "left", "works"})
PET_NAMED = re.compile(rf"^an? (?P<kind>(?:\w+ )?{w.PETS}) named (?P<name>.+)$", re.IGNORECASE)
VISIT = re.compile(r"^travel to (?P<x>.+)$")


def relate_facts(facts: Sequence[str], current: Sequence[StoredRelation]) -> GraphChanges:
    """Edges of all facts, and the current edges that they end, without duplicates.

    Of edges that exclude each other, as two residences or a like and a dislike, the plan of the
    graph (`pipeline.domain.graph_plan`) ends one. An edge that is current is returned again, so
    that the new fact is linked to it.
    """
    edges: dict[tuple[str, str, str], Relation] = {}
    ended: dict[UUID, EdgeEnding] = {}
    names = _names(current)
    for number, text in enumerate(facts):
        for slot in (_renamed(slot, names) for slot in slots_of(text)):
            for old in current:
                if _ends(slot, old.source, old.relation, old.destination):
                    ended.setdefault(old.relation_id, EdgeEnding(old.relation_id, number))
            for edge in _edges(slot, text, number):
                edges.setdefault((edge.source.name, edge.relation, edge.destination.name), edge)
    return GraphChanges(tuple(edges.values()), endings=tuple(ended.values()))


def _names(current: Sequence[StoredRelation]) -> dict[str, str]:
    """Names of people by possessive: "user's sister" is "anna" if there is only one."""
    names: dict[str, set[str]] = {}
    for edge in current:
        kin = edge.relation.removeprefix("has_").replace("_", " ")
        if edge.relation.startswith("has_") and kin.split(" ")[-1] in RELATIVES:
            names.setdefault(f"{_plain(edge.source)}'s {kin}", set()).add(edge.destination)
    return {who: min(same) for who, same in names.items() if len(same) == 1}


def _renamed(slot: Slot, names: dict[str, str]) -> Slot:
    return replace(slot, subject=names[slot.subject].lower()) if slot.subject in names else slot


def _edges(slot: Slot, text: str, number: int) -> Iterator[Relation]:
    """The edges of one slot; none for a slot that only ends edges."""
    if not slot.value or slot.relation in SILENT:
        return
    source = _source(slot, text)
    pet = PET_NAMED.match(slot.value)
    if slot.relation == "owns" and slot.positive and pet:
        animal = Entity(pet["name"], "animal")
        yield Relation(source, "owns", animal, number)
        yield Relation(animal, "is_a", Entity(pet["kind"].lower(), "species"), number)
        return
    relation, value = edge_of(slot)
    if relation and value:
        yield Relation(source, relation, Entity(_bare(value), kind_of(relation, value)), number)


# Called once for each current edge of a scope.
@lru_cache(maxsize=1024)
def edge_of(slot: Slot) -> tuple[str, str]:
    """Relation and destination of the slot's edge; ("", "") for a slot that only ends edges."""
    if slot.relation == "likes" and not slot.positive:
        return "dislikes", slot.value
    if not slot.positive:
        return "", ""
    if slot.relation == "follows_diet" and slot.value.lower() == "meat":
        return "eats", "meat"
    visit = VISIT.match(slot.value) if slot.relation == "plans" else None
    if visit:
        return "plans_to_visit", re.split(r" (?:with|for|and|by) ", visit["x"])[0]
    if slot.relation == "relationship_status":
        return _status_edge(slot.value)
    relation = {"plans": "plans_to", "wants": "wants_to"}.get(slot.relation, slot.relation)
    return re.sub(r"^attribute_", "has_", relation), slot.value


def _status_edge(value: str) -> tuple[str, str]:
    for start, relation in STATUS_OF.items():
        if value.lower().startswith(start):
            return relation, value[len(start) :]
    return ("", "") if value.startswith("broke up") else ("has_status", value)


def _source(slot: Slot, text: str) -> Entity:
    """The subject as the fact writes it; the speaker is "User"."""
    at = text.lower().find(slot.subject)
    name = text[at : at + len(slot.subject)] if at >= 0 else slot.subject
    name = name.removesuffix("'s")  # "Maya's partner is Jonas": the edge starts at Maya
    name = "User" + name[4:] if name.lower().startswith("user") else name[:1].upper() + name[1:]
    pet = re.search(rf"'s (?:\w+ )?{w.PETS}\b", name, re.IGNORECASE)
    return Entity(name, "animal" if pet else "person")


def _bare(value: str) -> str:
    """A value without its article: "red Tesla" of "a red Tesla"."""
    return re.sub(r"^(?:an?|the|their|his|her) ", "", value, flags=re.IGNORECASE)


def kind_of(relation: str, value: str) -> str:
    """Kind of an edge's destination: by relation, then by its last word."""
    last = value.lower().split()[-1]
    if last in FOODS and relation in ("likes", "dislikes", "prefers", "allergic_to"):
        return "food"
    if relation in ("likes", "dislikes") and value.lower().split()[0].endswith("ing"):
        return "activity"
    if relation == "learns" and last in w.LANGUAGES:
        return "language"
    if relation == "owns" and re.search(rf"\b{w.PETS}s?$", value, re.IGNORECASE):
        return "animal"
    return _kind_by_noun(relation) or KINDS.get(relation, "thing")


def _kind_by_noun(relation: str) -> str:
    prefix, _, noun = relation.partition("_")
    if prefix == "has" and noun.rsplit("_", maxsplit=1)[-1] in RELATIVES:
        return "person"
    return {"favourite": noun, "scheduled": "date"}.get(prefix, "")


def _ends(slot: Slot, source: str, relation: str, destination: str) -> bool:
    """True if a slot ends an edge: another single value, the opposite, or a request to forget."""
    if slot.relation == "forget":
        return _forgets(slot, source, relation, destination)
    ours = _plain(source) == slot.subject.removesuffix("'s")
    return ours and _excludes(slot, relation, destination)


def _excludes(slot: Slot, relation: str, destination: str) -> bool:
    """True if a slot and an edge of the same subject cannot both hold."""
    if slot.positive:
        ours = (edge_of(slot)[0], slot.relation)
        other = relation in ours and slot.key != stems(destination)
        return other and is_single(slot.relation) and slot.of_kind
    known = _slot_relation(relation) in ends_of(slot.relation)
    ended = (
        stems(edge_of(replace(slot, positive=True))[1]) if slot.relation == "plans" else slot.key
    )
    return known and ended <= stems(f"{destination} {_species(slot)}")


def _species(slot: Slot) -> str:
    """The animal of "lost their dog Bruno", because the entity "Bruno" does not contain "dog"."""
    match = re.search(rf"\b{w.PETS}\b", slot.value, re.IGNORECASE)
    return match[0] if match and len(slot.key) > 1 else ""


def _slot_relation(relation: str) -> str:
    if relation.startswith("plans_to"):
        return "plans"
    return {"wants_to": "wants"}.get(relation, relation)


def _forgets(slot: Slot, source: str, relation: str, destination: str) -> bool:
    wanted = slots_of(slot.value)
    return any(
        _plain(source) == (slot.subject if ask.subject == "user" else ask.subject)
        and (edge_of(ask)[0] or ask.relation) == relation
        and ask.key == stems(destination)
        for ask in wanted
    )


def _plain(source: str) -> str:
    low = source.strip().lower()
    return "user" if low in ("the user", "user_id", "i", "me") else low.replace("_", " ")
