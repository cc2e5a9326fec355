"""The projector: writes stale vectors in the background."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from time import monotonic
from uuid import UUID
from zlib import crc32

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
# Number of waiting ids of one collection that are written without further delay. Searches compare
# them from the ledger, and more of them in a request would not make each cheaper.
FULL = 100
# Number of times of writes in the time for gathering. Each collection has one of them, because
# searches wait behind a burst of writes; the collections of one share their statements.
TIMES = 20


def next_time(collection: str, now: float, gather_s: float) -> float:
    """The next time at which a collection is written: `gather_s` seconds after now at most."""
    if not gather_s:
        return now
    own = crc32(collection.encode()) % TIMES * gather_s / TIMES
    return now + gather_s - (now - own) % gather_s


class Projector:
    """Writes stale vectors in batches (write-behind).

    No request waits for it, so each collection gathers ids for up to `gather_s` seconds, or until
    it has FULL of them: more ids need fewer requests. The ids go in small pieces, so that stages
    run in between. After an error of a dependency it tries again in `retry_s` seconds. The sweeper
    writes those that are lost with the process, or too many to be kept during an outage.
    """

    def __init__(
        self, index: VectorIndex, *, gather_s: float = 0.0, retry_s: float = RETRY_S
    ) -> None:
        """`gather_s`, `retry_s`: see the class."""
        self._index = index
        self._gather_s, self._retry_s = gather_s, retry_s
        # Waiting ids by collection, and the times at which these are written.
        self._scheduled: dict[str, set[UUID]] = {}
        self._due_at: dict[str, float] = {}
        # The time until which `run` waits, and the event that ends its wait before.
        self._waits_until = 0.0
        self._earlier = asyncio.Event()
        self._woken = asyncio.Event()
        # True after an error: then no piece has ids of several collections, and one that always
        # fails does not stop the others.
        self._apart = False

    def schedule(self, scope: Scope, ids: Iterable[UUID]) -> None:
        """Have the vectors of these ids written soon."""
        name, now = self._index.collection(scope), monotonic()
        # After an error, new ids cause no earlier try.
        due_at = now + self._retry_s if self._apart else next_time(name, now, self._gather_s)
        self._keep([(name, key) for key in ids], due_at)
        if self._is_full(name):
            self._earlier.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._woken.wait()
            self._waits_until = min(self._due_at.values())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._earlier.wait(), self._waits_until - monotonic())
            pieces = deque(self._pieces(self._take()))
            try:
                while pieces:
                    await self._index.catch_up([key for _, key in pieces[0]])
                    pieces.popleft()
                    self._apart &= bool(pieces)
            except (StageError, LedgerUnavailable) as error:
                self._apart = True
                room = sum(map(len, self._scheduled.values())) <= MOST_KEPT
                log.warning("projections_pending", error=type(error).__name__, again=room)
                if room:
                    failed, _ = pieces[0][0]
                    # The ids of the failed collection come last.
                    left = sorted(chain(*pieces), key=lambda pair: pair[0] == failed)
                    self._keep(left, monotonic() + self._retry_s)
            except Exception as error:
                log.error("projector_crashed", exc_info=error)

    def _is_full(self, name: str) -> bool:
        """Tell if a collection is written at once. After an error none is."""
        return len(self._scheduled.get(name, ())) >= FULL and not self._apart

    def _take(self) -> Mapping[str, set[UUID]]:
        """Remove and return the ids of the collections that are due or full."""
        now = monotonic()
        names = [name for name, at in self._due_at.items() if at <= now or self._is_full(name)]
        taken = {name: self._scheduled.pop(name) for name in names}
        for name in names:
            del self._due_at[name]
        self._earlier.clear()
        if not self._scheduled:
            self._woken.clear()
        return taken

    def _pieces(self, scheduled: Mapping[str, Iterable[UUID]]) -> Iterable[Sequence[Named]]:
        """Divide ids by collection into pieces."""
        groups = [[(name, key) for key in ids] for name, ids in scheduled.items()]
        for group in groups if self._apart else [list(chain(*groups))]:
            yield from _shares(group, A_PIECE)

    def _keep(self, named: Iterable[Named], due_at: float) -> None:
        """Add ids to their collections, which are written at `due_at` at the latest."""
        for name, key in named:
            self._scheduled.setdefault(name, set()).add(key)
            self._due_at[name] = min(self._due_at.get(name, due_at), due_at)
            self._woken.set()
        if due_at < self._waits_until:
            self._earlier.set()
