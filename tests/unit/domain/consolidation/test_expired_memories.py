"""Memories past their expiration date: statements after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from pipeline.domain.consolidation.reconcile import apply_writes
from pipeline.domain.facts import Outcome
from pipeline.domain.writes import ScopeMemories
from tests.unit.domain.consolidation.test_reconcile import (
    EVENT,
    NOW,
    OLD,
    memory,
    scope_memories,
    with_options,
    write,
)

EXPIRED, TODAY = date(2026, 2, 1), date(2026, 3, 1)


def expired(**values: object) -> ScopeMemories:
    stored = replace(memory(expiration_date=EXPIRED), **values)  # type: ignore[arg-type]
    memories = scope_memories(stored)
    memories.today = TODAY
    return memories


@pytest.mark.parametrize("until", [None, date(2026, 9, 1)])
def test_an_update_of_an_expired_memory_expires_with_its_own_event(until: date | None) -> None:
    event = with_options(expiration_date=until)
    [change] = apply_writes([write(Outcome.UPDATE, target=OLD, event=event)], expired())
    assert change.after is not None
    assert (change.after.text, change.after.expiration_date) == ("Maya lives in Porto.", until)


@pytest.mark.parametrize("outcome", [Outcome.NOOP, Outcome.ADD])
def test_an_expired_memory_that_is_said_again_holds_again(outcome: Outcome) -> None:
    target = OLD if outcome is Outcome.NOOP else None
    again = write(outcome, "Maya lives in Bern.", target=target)
    [change] = apply_writes([again], expired(version=4))
    assert change.after is not None
    assert (change.outcome, change.memory_id, change.vector) == (Outcome.UPDATE, OLD, None)
    assert (change.after.version, change.after.expiration_date) == (5, None)
    assert (change.text, change.after.event_id, change.after.said_at) == (
        "Maya lives in Bern.",
        EVENT.id,
        NOW,
    )
    assert change.reason == "She said so. (It had expired.)"


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ({"said_at": NOW.replace(year=2027)}, {}),
        ({"immutable": True}, {}),
        ({"pinned": True}, {}),
        ({}, {"expiration_date": EXPIRED}),
    ],
    ids=["said later", "immutable", "pinned", "expired itself"],
)
def test_an_expired_memory_stays_so(values: dict[str, object], options: dict[str, object]) -> None:
    event = with_options(**options)
    again = write(Outcome.NOOP, "Maya lives in Bern.", target=OLD, event=event)
    [change] = apply_writes([again], expired(**values))
    assert (change.outcome, change.after) == (Outcome.NOOP, None)
    assert change.reason == "She said so. (It has expired.)"


def test_an_expired_memory_holds_again_in_place_of_an_update_of_a_pinned_one() -> None:
    pinned = memory("Maya lives in Oslo.", 12, pinned=True)
    memories = scope_memories(replace(memory(), expiration_date=EXPIRED), pinned)
    memories.today = TODAY
    update = write(Outcome.UPDATE, "Maya lives in Bern.", target=pinned.id)
    [change] = apply_writes([update], memories)
    assert change.after is not None
    assert (change.memory_id, change.after.expiration_date) == (OLD, None)
    assert memories.by_id[pinned.id] == pinned


def test_a_memory_expires_behind_its_day() -> None:
    memories = expired()
    memories.today = EXPIRED
    [change] = apply_writes([write(Outcome.NOOP, "Maya lives in Bern.", target=OLD)], memories)
    assert (change.outcome, change.after) == (Outcome.NOOP, None)
