"""A request to forget deletes the memory that its words name, and is no memory itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from pipeline.domain.conservation import Replacement, objection
from pipeline.domain.events import AddOptions, Event
from pipeline.domain.facts import Fact, Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.messages import Source
from pipeline.domain.reconcile import Change, ScopeMemories, Write, apply_writes
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import as_vector
from tests.support.memories import active_memory

SCOPE = Scope(ProjectId(UUID(int=1)), user_id="maya")
EVENT = Event(UUID(int=2), seq=1, options=AddOptions(), messages=())
THEN, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
HIKING = "User asks to forget that they love hiking."
NAMED = [
    ("User loves hiking.", HIKING),
    ("User lives in Oslo.", "User wants the assistant to forget that they live in Oslo."),
    ("User's phone number is 555-0134.", "User asks to delete their phone number from memory."),
    ("User lived in Paris in 2010.", "User asks to forget that they lived in Paris."),
    ("Jonas wandert gern in den Alpen.", "Bitte vergiss, dass Jonas gern in den Alpen wandert."),
    ("A Lucía le gusta el senderismo.", "Lucía pide olvidar que le gusta el senderismo."),
    ("Léa habite à Lyon.", "Léa demande d'oublier qu'elle habite à Lyon."),
    ("用户喜欢徒步。", "用户要求忘记他喜欢徒步。"),
]
CARELESS = [
    ("User lives in Oslo.", HIKING),
    ("User is allergic to the rubber of hiking boots.", HIKING),
    ("User works at Bosch.", "User asks to forget that they worked at Siemens."),
    ("User's dog Rex is afraid of thunder.", "User asks to forget their dog's birthday."),
    ("Jonas wohnt in Bern.", "Bitte vergiss, dass Jonas gern wandert."),
    ("Tom lives in Oslo.", "Anna asks to forget that Anna lives in Bergen."),
    ("Lucía vive en Bilbao.", "Lucía pide olvidar que le gusta el senderismo."),
    ("用户住在上海。", "用户要求忘记他喜欢徒步。"),
]


@pytest.mark.parametrize(("old", "fact"), NAMED)
@pytest.mark.parametrize("attribute", [None, "request", "instruction"])
def test_a_request_deletes_the_memory_it_names(old: str, fact: str, attribute: str | None) -> None:
    slot = attribute and f"user · {attribute}"
    assert objection(Replacement(old, None, fact, old_slot="user · x", fact_slot=slot)) is None
    assert objection(Replacement(old, None, fact, fact_slot=slot)) is None


@pytest.mark.parametrize(("old", "fact"), CARELESS)
@pytest.mark.parametrize("attribute", [None, "request"])
def test_a_request_deletes_nothing_else(old: str, fact: str, attribute: str | None) -> None:
    slot = attribute and f"user · {attribute}"
    assert objection(Replacement(old, None, fact, old_slot="user · x", fact_slot=slot)) is not None


def applied(
    outcome: Outcome, *, text: str = HIKING, old: str = "User loves hiking.", infer: bool = True
) -> tuple[Change, Memory]:
    """The change by a decision on the request, and the stored memory after it."""
    stored = replace(active_memory(11, SCOPE, old, THEN), subject="user", attribute="likes")
    memories = ScopeMemories.of(SCOPE, [stored])
    fact = Fact(HIKING, Source(event=0, message=0), subject="user", attribute="request")
    write = Write(
        position=0,
        fact=fact,
        outcome=outcome,
        text=text,
        reason="Decided.",
        target=stored.id if outcome is not Outcome.ADD else None,
        new_id=UUID(int=12),
        vector=as_vector((1.0, 0.0)),
        fact_vector=as_vector((1.0, 0.0)),
        event=replace(EVENT, options=AddOptions(infer=infer)),
        said_at=NOW,
    )
    [change] = apply_writes([write], memories)
    assert infer is (UUID(int=12) not in memories.by_id)
    return change, memories.by_id[stored.id]


@pytest.mark.parametrize("outcome", [Outcome.DELETE, Outcome.UPDATE])
def test_a_request_is_carried_out(outcome: Outcome) -> None:
    change, memory = applied(outcome)
    assert (change.outcome, memory.state) == (Outcome.DELETE, "RETIRED")


def test_an_update_may_keep_the_rest() -> None:
    change, memory = applied(
        Outcome.UPDATE, text="User loves sailing.", old="User loves hiking and sailing."
    )
    assert (change.outcome, memory.text) == (Outcome.UPDATE, "User loves sailing.")


def test_a_request_that_names_no_memory_is_not_stored() -> None:
    change, memory = applied(Outcome.ADD)
    assert (change.outcome, change.memory_id, memory.state) == (Outcome.NOOP, None, "ACTIVE")
    assert "not stored" in change.reason


def test_a_withheld_request_is_suggested_and_not_stored() -> None:
    change, memory = applied(Outcome.DELETE, old="User lives in Oslo.")
    assert (change.outcome, memory.state) == (Outcome.NOOP, "ACTIVE")
    assert change.suggestion is not None
    assert "withheld" in change.reason


def test_a_request_is_stored_as_said_if_nothing_is_extracted() -> None:
    change, _ = applied(Outcome.ADD, infer=False)
    assert change.outcome is Outcome.ADD
