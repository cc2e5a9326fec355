"""The projector: writes stale vectors in the background."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

import structlog

from pipeline.domain.errors import StageError
from pipeline.domain.scope import Scope
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.vector_index.index import A_PIECE, VectorIndex, _shares

log = structlog.get_logger()


class Projector:
    """Writes stale vectors in batches (write-behind).

    No request waits for it, so it collects ids for `gather_s` seconds first: more ids of one
    collection need fewer requests. It writes small pieces, so that stages can run in between. The
    sweeper writes those that are lost with the process or fail.
    """

    def __init__(self, index: VectorIndex, *, gather_s: float = 0.0) -> None:
        self._index = index
        self._gather_s = gather_s
        self._scheduled: dict[str, set[UUID]] = defaultdict(set)
        self._woken = asyncio.Event()

    def schedule(self, scope: Scope, ids: Iterable[UUID]) -> None:
        """Have the vectors of these ids written soon."""
        self._scheduled[self._index.collection(scope)].update(ids)
        self._woken.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(self._gather_s)
            self._woken.clear()
            scheduled, self._scheduled = self._scheduled, defaultdict(set)
            try:
                for ids in scheduled.values():
                    for piece in _shares(list(ids), A_PIECE):
                        await self._index.catch_up(piece)
            except (StageError, LedgerUnavailable) as error:
                log.warning("projections_owed", error=type(error).__name__)
            except Exception as error:
                log.error("projector_crashed", exc_info=error)
