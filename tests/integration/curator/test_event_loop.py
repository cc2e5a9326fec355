"""The event loop of a worker beside the curator's comparisons."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.curator.service import CENTRES
from pipeline.domain.consolidation.candidates import Ranking
from tests.integration.curator.test_curator import Oracle, carry_on, plant, start
from tests.support.engine import Engine
from tests.support.planted import Part, planted


async def test_memories_are_compared_beside_the_event_loop(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the loop, they delayed the adds of all tenants: MOST_MEMORIES texts for each centre."""
    threads: list[str] = []
    counted: list[int] = []

    class Watched(Ranking):
        def __init__(self, memories: Sequence[Any], **more: Any) -> None:
            counted.append(len(memories))
            super().__init__(memories, **more)

        def of(self, fact: Any) -> Any:
            threads.append(threading.current_thread().name)
            return super().of(fact)

    monkeypatch.setattr("pipeline.curator.service.Ranking", Watched)
    store = [m for m in planted() if m.role is Part.REPEAT and (m.pair or 0) < 2 * CENTRES]
    await plant(engine, store)
    await start(engine)
    await carry_on(engine, Oracle(store))
    assert len(threads) > CENTRES
    assert all(name.startswith("cpu") for name in threads)
    assert counted == [len(store)], "the words of a memory are counted once for a run"
