"""appended: decisions about facts that are added without a model call.

A fact that says only that something is so no longer ("no longer works at Bosch", "sold the bike")
updates the memory that states it; a request to forget deletes the memory it names. Any other fact
is added. What no memory states word for word is added, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.text.statements import polarity, slots
from pipeline.text.statements.endings import EndedState, ending, ends, is_requested
from pipeline.text.statements.forget_requests import asks_to_forget
from pipeline.text.statements.values import stated

APPENDED = "Added without a comparison (mode append)."
ENDED = "It says the end of what the memory states (mode append)."
FORGET = "It asks to forget the memory (mode append)."


def is_compared(fact: Fact) -> bool:
    """Tell if a fact can end a memory without a model."""
    return ending(fact.text) is not None or asks_to_forget(fact.text)


def decide_appended(position: int, fact: Fact, neighbours: Sequence[Neighbour]) -> Decision:
    """The decision about a fact: an ADD, or the end of the only memory that it names."""
    if asks_to_forget(fact.text):
        named = [n for n in neighbours if is_requested(fact.text, n.text)]
        if len(named) == 1:
            return Decision(position, Outcome.DELETE, FORGET, memory_id=named[0].memory_id)
    elif (end := ending(fact.text)) is not None:
        named = [n for n in neighbours if ends(fact.text, n.text) or _ends_slot(fact, end, n)]
        if len(named) == 1:
            return Decision(position, Outcome.UPDATE, ENDED, fact.text, named[0].memory_id)
    return Decision(position, Outcome.ADD, APPENDED, fact.text)


def _ends_slot(fact: Fact, end: EndedState, neighbour: Neighbour) -> bool:
    """Tell if a fact ends the value that a memory gives an attribute with one value."""
    slot = slots.slot(fact.subject, fact.attribute)
    same = slot is not None and slot == neighbour.slot
    if end.of_thing or not same or not slots.single_valued(slot, fact.cardinality):
        return False
    if polarity.takes_back(neighbour.text):
        return False
    named = {value.key for value in stated(fact.text).values if not value.leads}
    stored = {value.key for value in stated(neighbour.text).values if not value.leads}
    return bool(named) and named == stored
