"""The access log: counts in memory, written in batches, lost only with the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from api.access_log import AccessLog
from pipeline.ledger.failures import LedgerUnavailable

FIRST, SECOND = UUID(int=1), UUID(int=2)


@dataclass
class Store:
    """Store that keeps what is written, or fails."""

    written: list[Mapping[UUID, int]] = field(default_factory=list)
    failing: bool = False

    async def add(self, counts: Mapping[UUID, int]) -> None:
        if self.failing:
            raise LedgerUnavailable(ConnectionRefusedError())
        self.written.append(counts)


def log_of(store: Store, *, every_s: float = 60) -> AccessLog:
    return AccessLog(store, every_s=every_s)  # type: ignore[arg-type]


async def test_accesses_are_added_up_and_written_once() -> None:
    store = Store()
    log = log_of(store)
    log.count([FIRST, SECOND])
    log.count([FIRST])
    assert store.written == []
    await log.write()
    await log.write()
    assert store.written == [{FIRST: 2, SECOND: 1}]
    await log.close()


async def test_the_last_counts_are_written_when_the_process_stops() -> None:
    store = Store()
    log = log_of(store)
    log.count([FIRST])
    await log.close()
    assert store.written == [{FIRST: 1}]


async def test_counts_are_lost_if_the_ledger_does_not_answer_and_counting_goes_on() -> None:
    store = Store(failing=True)
    log = log_of(store)
    log.count([FIRST])
    await log.write()
    store.failing = False
    log.count([SECOND])
    await log.close()
    assert store.written == [{SECOND: 1}]


async def test_the_number_of_memories_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.access_log.MOST_MEMORIES", 1)
    store = Store()
    log = log_of(store)
    log.count([FIRST, SECOND, FIRST])
    await log.close()
    assert store.written == [{FIRST: 2}]
