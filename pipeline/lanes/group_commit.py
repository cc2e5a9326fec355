"""Group commit: adds that arrive during a commit are accepted together in the next one.

An add that arrives alone is written at once. Under load one commit writes many adds, so its cost is
shared, and the callers of one lane do not wait for its row lock one by one.

A lane is in at most one unfinished group: its later adds wait behind it, so they keep their order.
An add with a long text is answered once its terms are stored, in a second statement after the
commit. Neither its writer nor the other adds of its lane wait for that: the order of the commits is
the order of arrival, also between processes.

If another transaction has locked a lane's row, the group fails after the lock timeout of its
connections; the adds of the locked lane are then retried apart from the writers, and all others are
written.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

import structlog
from sqlalchemy.exc import DBAPIError

from pipeline.domain.errors import Overloaded
from pipeline.lanes.accept import Accepted, Add, Adds
from pipeline.ledger.engine import is_locked
from pipeline.ledger.failures import DISK_FULL, LedgerUnavailable

log = structlog.get_logger()

# A second writer prepares its group while the first one's commit is written to disk.
WRITERS = 2
LARGEST_GROUP = 64
# Limit of the queue: beyond it, clients time out and send adds again that are still queued.
MOST_WAITING = 2_000
# Concurrent retries of locked lanes; the pause between two tries; the longest wait of an add.
LOCKED_AT_ONCE = 2
LOCKED_PAUSE_S, LOCKED_FOR_S = 0.25, 10.0


@dataclass(slots=True)
class Waiting:
    """An add whose caller waits for its commit. `since`: arrival, by the event loop's clock."""

    add: Add
    since: float
    accepted: asyncio.Future[Accepted]

    @property
    def lane_id(self) -> UUID:
        """Lane of the add."""
        return self.add.scope.lane_id


@dataclass(slots=True)
class GroupCommit:
    """Writes adds in groups.

    At most `most_waiting` adds can wait, each at most `locked_for_s` seconds for a lock.
    """

    adds: Adds
    most_waiting: int = MOST_WAITING
    locked_for_s: float = LOCKED_FOR_S
    _count: int = 0
    _queue: deque[Waiting] = field(default_factory=deque)
    # Later adds of each lane that is in an unfinished group, in order.
    _behind: dict[UUID, deque[Waiting]] = field(default_factory=dict)
    _writers: set[asyncio.Task[None]] = field(default_factory=set)
    _retries: set[asyncio.Task[None]] = field(default_factory=set)
    _term_writes: set[asyncio.Task[None]] = field(default_factory=set)
    # The last write, if the disk of the ledger was full, and its time.
    _refused: tuple[LedgerUnavailable, float] | None = None
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOCKED_AT_ONCE))

    @property
    def waited_s(self) -> float:
        """Seconds since the arrival of the oldest add that waits for a writer."""
        oldest = min((waiting.since for waiting in self._queue), default=None)
        return 0.0 if oldest is None else asyncio.get_running_loop().time() - oldest

    def disk_full(self, within_s: float) -> LedgerUnavailable | None:
        """The error of the last write, if the disk of the ledger was full then.

        None after `within_s` seconds: the adds may stop, because the process says it is not ready.
        """
        error, at = self._refused or (None, 0.0)
        return error if asyncio.get_running_loop().time() - at <= within_s else None

    async def accept(self, add: Add) -> Accepted:
        """Accept one add, as Adds.accept: returns after its commit, or raises.

        Errors: Overloaded if too many adds wait already, or if the lane stays locked.
        """
        if self._count >= self.most_waiting:
            raise Overloaded("Too many adds wait to be written.", retry_after_s=1, server_wide=True)
        loop = asyncio.get_running_loop()
        waiting = Waiting(add, loop.time(), loop.create_future())
        self._queue.append(waiting)
        self._write_on()
        self._count += 1
        try:
            return await waiting.accepted
        finally:
            self._count -= 1

    def _write_on(self) -> None:
        if self._queue and len(self._writers) < WRITERS:
            # For the adds of all projects: in the context of none.
            writer = asyncio.create_task(self._write(), context=Context())
            self._writers.add(writer)

    async def _write(self) -> None:
        """Write groups until none is left."""
        try:
            while group := self._next_group():
                await self._commit(group)
        finally:
            # In the same step as the look that finds no add. A callback of the task runs a step
            # later, and no writer would start for an add that arrives between the two.
            self._writers.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    def _next_group(self) -> list[Waiting]:
        """Take the oldest adds of lanes that are in no unfinished group."""
        group: list[Waiting] = []
        own: set[UUID] = set()
        while self._queue and len(group) < LARGEST_GROUP:
            waiting = self._queue.popleft()
            if waiting.accepted.done():  # its caller is gone
                continue
            lane_id = waiting.lane_id
            if lane_id in self._behind and lane_id not in own:
                self._behind[lane_id].append(waiting)
                continue
            own.add(lane_id)
            self._behind.setdefault(lane_id, deque())
            group.append(waiting)
        return group

    def _finish(self, lane_ids: Iterable[UUID]) -> None:
        """Release these lanes: the adds behind them go to the head of the queue."""
        for lane_id in set(lane_ids):
            self._queue.extendleft(reversed(self._behind.pop(lane_id)))
        self._write_on()

    async def _commit(self, group: Sequence[Waiting]) -> None:
        """Write a group. Every caller gets a result or an error, and every lane is released."""
        locked = await self._write_all(group)
        if len(locked) == len(group) > 1:
            group = await self._set_locked_aside(group)
            locked = await self._write_all(group)
        lane_ids = {waiting.lane_id for waiting in locked}
        for lane_id in lane_ids:
            self._retry([waiting for waiting in locked if waiting.lane_id == lane_id])
        self._finish(waiting.lane_id for waiting in group if waiting.lane_id not in lane_ids)

    async def _write_all(self, group: Sequence[Waiting]) -> list[Waiting]:
        """Write a group; if the database refuses one of several adds, write each alone.

        The adds at fault fail. Returns those that were not written because of a locked row.
        """
        result = await self._try(group)
        if len(group) > 1 and _one_is_at_fault(result):
            return await self._write_each(group)
        if is_locked(result):
            return list(group)
        _fail(group, result)
        return []

    async def _write_each(self, group: Sequence[Waiting]) -> list[Waiting]:
        """As `_write_all`, each add alone; none after one of its lane that has to wait."""
        locked: list[Waiting] = []
        for waiting in group:
            if waiting.lane_id not in {each.lane_id for each in locked}:
                result = await self._try([waiting])
                if not is_locked(result):
                    _fail([waiting], result)
                    continue
            locked.append(waiting)
        return locked

    async def _try(self, group: Sequence[Waiting]) -> BaseException | None:
        """Write a group and answer its callers. Returns the error if it was not written."""
        if not group:
            return None
        adds = [waiting.add for waiting in group]
        [accepted] = await asyncio.gather(self.adds.accept(adds), return_exceptions=True)
        self._refused = None
        if isinstance(accepted, LedgerUnavailable) and accepted.refuses_writes == DISK_FULL:
            self._refused = accepted, asyncio.get_running_loop().time()
        if isinstance(accepted, BaseException):
            return accepted
        pairs = list(zip(group, accepted, strict=True))
        _answer(pair for pair in pairs if pair[1].has_terms)
        if without_terms := [pair for pair in pairs if not pair[1].has_terms]:
            adding = asyncio.create_task(self._add_terms(without_terms))
            self._term_writes.add(adding)
            adding.add_done_callback(self._term_writes.discard)
        return None

    async def _add_terms(self, pairs: Sequence[tuple[Waiting, Accepted]]) -> None:
        """Store the terms of accepted adds and answer their callers.

        The adds are stored in any case, so an error is only logged: the sweeper stores the terms.
        """
        adds = [waiting.add for waiting, _ in pairs]
        [error] = await asyncio.gather(self.adds.add_terms(adds), return_exceptions=True)
        if error is not None:
            log.warning("terms_not_stored", adds=len(adds), error=type(error).__name__)
        _answer(pairs)

    async def _set_locked_aside(self, group: Sequence[Waiting]) -> list[Waiting]:
        """Start retries for the adds of locked lanes. Returns the other adds."""
        try:
            locked = await self.adds.locked({waiting.lane_id for waiting in group})
        except LedgerUnavailable:  # then the next try fails with the same error
            locked = set()
        for lane_id in locked:
            self._retry([waiting for waiting in group if waiting.lane_id == lane_id])
        return [waiting for waiting in group if waiting.lane_id not in locked]

    def _retry(self, adds: Sequence[Waiting]) -> None:
        retry = asyncio.create_task(self._until_unlocked(adds))
        self._retries.add(retry)
        retry.add_done_callback(self._retries.discard)

    async def _until_unlocked(self, adds: Sequence[Waiting]) -> None:
        """Write the adds of one lane, and those behind them, once its row is unlocked."""
        lane_id, now = adds[0].lane_id, asyncio.get_running_loop().time
        behind, group = self._behind[lane_id], list(adds)
        while group:
            await asyncio.sleep(LOCKED_PAUSE_S)
            while behind and len(group) < LARGEST_GROUP:
                group.append(behind.popleft())
            group = [waiting for waiting in group if not waiting.accepted.done()]
            async with self._slots:
                group = await self._write_all(group)
            latest = now() - self.locked_for_s
            _fail([waiting for waiting in group if waiting.since <= latest], _still_locked())
            group = [waiting for waiting in group if waiting.since > latest]
        self._finish([lane_id])


def _still_locked() -> Overloaded:
    return Overloaded(
        "An undo, an erasure or a replay is at work on this user, agent, app and run.",
        retry_after_s=5,
        server_wide=True,
    )


def _answer(pairs: Iterable[tuple[Waiting, Accepted]]) -> None:
    for waiting, result in pairs:
        if not waiting.accepted.done():  # False if its caller is gone; the add is stored anyway
            waiting.accepted.set_result(result)


def _fail(group: Iterable[Waiting], error: BaseException | None) -> None:
    if error is None:
        return
    for waiting in group:
        if not waiting.accepted.done():
            waiting.accepted.set_exception(error)


def _one_is_at_fault(error: BaseException | None) -> bool:
    """Tell if the database refused a value, as opposed to a lost connection or a lock timeout."""
    refused = isinstance(error, DBAPIError) and not error.connection_invalidated
    return refused and not is_locked(error)
