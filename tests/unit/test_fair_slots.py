"""Shares of slots: while several groups are active, none has all of them."""

from __future__ import annotations

import asyncio

import pytest

from pipeline.fair_slots import ACTIVE_S, FairSlots

SLOTS, SHARE = 8, 2


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock, as a list of one number of seconds."""
    clock = [100.0]
    monkeypatch.setattr("pipeline.fair_slots.monotonic", lambda: clock[0])
    return clock


def taken(slots: FairSlots[str | None], group: str | None) -> int:
    """Number of slots that a group can take now."""
    number = 0
    while slots.take(group):
        number += 1
    return number


def test_a_group_alone_has_all_slots(now: list[float]) -> None:
    slots: FairSlots[str | None] = FairSlots(SLOTS, share=SHARE)
    assert slots.take(None)  # work for all groups is no other group
    assert taken(slots, "maya") == SLOTS - 1


def test_a_group_has_its_share_while_another_one_is_active(now: list[float]) -> None:
    slots: FairSlots[str | None] = FairSlots(SLOTS, share=SHARE)
    assert slots.take("jon")
    slots.release("jon")
    now[0] += ACTIVE_S / 2
    assert taken(slots, "maya") == SHARE
    assert taken(slots, None) == SLOTS - SHARE
    for _ in range(SLOTS - SHARE):
        slots.release(None)
    now[0] += ACTIVE_S
    assert taken(slots, "maya") == SLOTS - SHARE


async def test_a_group_at_its_share_waits_for_its_own_slots(now: list[float]) -> None:
    slots: FairSlots[str | None] = FairSlots(SLOTS, share=SHARE)
    assert slots.take("jon")
    assert taken(slots, "maya") == SHARE
    order: list[str] = []

    async def use(name: str, group: str) -> None:
        await slots.acquire(group)
        order.append(name)

    waiting = [asyncio.create_task(use(f"maya {n}", "maya")) for n in range(3)]
    await asyncio.sleep(0)
    slots.release("jon")
    await use("jon", "jon")
    assert order == ["jon"]
    slots.release("maya")
    await waiting[0]
    assert order == ["jon", "maya 0"]
    now[0] += 2 * ACTIVE_S  # jon is no longer active: a release passes all free slots on
    slots.release("maya")
    await asyncio.gather(*waiting)
    assert order[2:] == ["maya 1", "maya 2"]
    for _ in range(3):
        slots.release("maya")
    slots.release("jon")
    assert taken(slots, None) == SLOTS
