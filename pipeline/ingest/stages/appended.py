"""appended: decisions about facts that are added without a model call.

A fact that says only that something is so no longer ("no longer works at Bosch", "sold the bike")
updates the memory that states it; a request to forget deletes the memory it names. Any other fact
is added. What no memory states word for word is added, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.conservation import Replacement, objection
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.text import polarity, slots
from pipeline.text.endings import EndedState, ending, ends, names_all
from pipeline.text.forget_requests import only_asks_to_forget
from pipeline.text.values import stated

APPENDED = "Added without a comparison (mode append)."
ENDED = "It says the end of what the memory states (mode append)."
FORGET = "It asks to forget the memory (mode append)."


def is_compared(fact: Fact) -> bool:
    """Tell if a fact can end a memory without a model."""
    return ending(fact.text) is not None or only_asks_to_forget(fact.text)


def decide_appended(position: int, fact: Fact, neighbours: Sequence[Neighbour]) -> Decision:
    """The decision about a fact: an ADD, or the end of the nearest memory that it names."""
    if only_asks_to_forget(fact.text):
        named = [n for n in neighbours if _is_forgotten(fact, n)]
        if named:
            return Decision(position, Outcome.DELETE, FORGET, memory_id=_nearest(named).memory_id)
    elif (end := ending(fact.text)) is not None:
        named = [n for n in neighbours if ends(fact.text, n.text) or _ends_slot(fact, end, n)]
        if named:
            nearest = _nearest(named)
            return Decision(position, Outcome.UPDATE, ENDED, fact.text, nearest.memory_id)
    return Decision(position, Outcome.ADD, APPENDED, fact.text)


def _nearest(neighbours: Sequence[Neighbour]) -> Neighbour:
    return max(neighbours, key=lambda n: n.similarity)


def _is_forgotten(fact: Fact, neighbour: Neighbour) -> bool:
    """Tell if a request names a memory in all of its words, except a value it does not know."""
    change = Replacement(
        neighbour.text, None, fact.text, old_slot=neighbour.slot, similarity=neighbour.similarity
    )
    return objection(change) is None and names_all(fact.text, neighbour.text)


def _ends_slot(fact: Fact, end: EndedState, neighbour: Neighbour) -> bool:
    """Tell if a fact ends the value of an attribute with one value: the same, or any value."""
    slot = slots.slot(fact.subject, fact.attribute)
    same = slot is not None and slot == neighbour.slot
    if end.of_thing or not same or not slots.single_valued(slot, fact.cardinality):
        return False
    if polarity.takes_back(neighbour.text):
        return False
    named = {value.key for value in stated(fact.text).values if not value.leads}
    stored = {value.key for value in stated(neighbour.text).values if not value.leads}
    return named == stored if named else len(end.words) <= 1
