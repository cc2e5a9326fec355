"""The projector: writes stale vectors in the background."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from time import monotonic
from uuid import UUID

import structlog

from pipeline.domain.errors import StageError
from pipeline.domain.scope import Scope
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.vector_index.index import A_PIECE, VectorIndex, _shares

log = structlog.get_logger()

# A collection and an id in it.
Named = tuple[str, UUID]

# Seconds after which a failed write is tried again, and the maximum number of ids that wait for it.
RETRY_S, MOST_KEPT = 5.0, 20_000


class Projector:
    """Writes stale vectors in batches (write-behind).

    No request waits for it, so it collects ids for `gather_s` seconds first: more ids of one
    collection need fewer requests. It writes small pieces, so that stages can run in between. After
    an error of a dependency it tries again in `retry_s` seconds. The sweeper writes those that are
    lost with the process, or too many to be kept during an outage.
    """

    def __init__(
        self, index: VectorIndex, *, gather_s: float = 0.0, retry_s: float = RETRY_S
    ) -> None:
        self._index = index
        self._gather_s, self._retry_s = gather_s, retry_s
        self._scheduled: dict[str, set[UUID]] = defaultdict(set)
        self._woken = asyncio.Event()
        # Time of the next round: no id waits longer, even if it arrives during a round.
        self._due_at = 0.0
        # True after an error: then no piece has ids of several collections, and one that always
        # fails does not stop the others.
        self._apart = False

    def schedule(self, scope: Scope, ids: Iterable[UUID]) -> None:
        """Have the vectors of these ids written soon."""
        name = self._index.collection(scope)
        self._keep([(name, key) for key in ids], self._gather_s)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(self._due_at - monotonic())
            self._woken.clear()
            scheduled, self._scheduled = self._scheduled, defaultdict(set)
            pieces = deque(self._pieces(scheduled))
            try:
                while pieces:
                    await self._index.catch_up([key for _, key in pieces[0]])
                    pieces.popleft()
                self._apart = False
            except (StageError, LedgerUnavailable) as error:
                self._apart = True
                room = sum(map(len, self._scheduled.values())) <= MOST_KEPT
                log.warning("projections_pending", error=type(error).__name__, again=room)
                if room:
                    failed, _ = pieces[0][0]
                    # The ids of the failed collection come last.
                    left = sorted(chain(*pieces), key=lambda pair: pair[0] == failed)
                    self._keep(left, self._retry_s)
            except Exception as error:
                log.error("projector_crashed", exc_info=error)

    def _pieces(self, scheduled: Mapping[str, Iterable[UUID]]) -> Iterable[Sequence[Named]]:
        """Divide ids by collection into the pieces of a round."""
        groups = [[(name, key) for key in ids] for name, ids in scheduled.items()]
        for group in groups if self._apart else [list(chain(*groups))]:
            yield from _shares(group, A_PIECE)

    def _keep(self, named: Iterable[Named], delay_s: float) -> None:
        """Add ids to the next round, which starts in `delay_s` seconds at most."""
        due_at = monotonic() + delay_s
        self._due_at = min(self._due_at, due_at) if self._woken.is_set() else due_at
        for name, key in named:
            self._scheduled[name].add(key)
        self._woken.set()
