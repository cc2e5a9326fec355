"""Structure of a canonical sentence: its kind, subject, attribute and time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pipeline.adapters.model_rules.slots import slots_of
from pipeline.domain.facts import Fact, FactKind, memory_type
from pipeline.text.slots import USER, attribute_name
from pipeline.text.when import dated

# Kind of each relation, by the whole name or by its first word ("favourite_colour").
KINDS = {
    relation: kind
    for kind, relations in {
        FactKind.PERSONAL_DETAIL: "named has_birthday born_in is_from grew_up_in lives_in is_aged"
        " speaks owns drives attribute",
        FactKind.RELATIONSHIP: "relationship_status has",
        FactKind.WORK: "works works_as works_at works_in left",
        FactKind.HEALTH: "allergic_to has_condition smokes",
        FactKind.PREFERENCE: "likes prefers favourite follows_diet eats drinks",
        FactKind.PLAN: "plans wants scheduled",
        FactKind.ACTIVITY: "plays learns",
    }.items()
    for relation in relations.split()
}


def structured(fact: Fact, said_at: datetime) -> Fact:
    """The fact with the structure of its sentence; OTHER without a slot if no rule knows it."""
    _, valid_from = dated(fact.text, said_at)
    slots = slots_of(fact.text)
    if not slots:
        return replace(fact, valid_from=valid_from)
    subject, relation = slots[0].subject, slots[0].relation
    first = relation.partition("_")[0]
    kind = KINDS.get(relation) or KINDS.get(first, FactKind.OTHER)
    about = fact.speaker if subject == USER and fact.speaker else subject
    # A request to forget is about a memory of any attribute, and has none of its own.
    attribute = (
        attribute_name(relation.removeprefix("attribute_")) if relation != "forget" else None
    )
    return replace(
        fact,
        kind=kind,
        memory_type=memory_type(kind, valid_from),
        subject=about,
        attribute=attribute,
        valid_from=valid_from,
    )
