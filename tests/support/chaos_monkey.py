"""Fault injection: a seeded schedule of kills, freezes and broker accidents.

Each act is due after a number of events has ended, so acts are spread over the work, not over time.
Processes are signalled by the identity that their supervisor recorded, never by name.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import uuid4

from redis.asyncio import Redis
from redis.exceptions import RedisError

from deploy.stack.identity import Identity, send
from deploy.stack.journal import read
from deploy.stack.layout import Layout
from deploy.stack.server import Server
from tests.support.chaos_ledger import LedgerAway, LedgerWindow, Rows, broker_url, holds
from tests.support.stack import Stack
from workers.fair_queues import QUEUES

BACK_WITHIN_S = 90.0
# Maximum time for which a worker is frozen; it resumes once its lanes have been taken over.
LONGEST_FREEZE_S = 30.0
RECOVERED_WITHIN_S = 120.0


class Act(StrEnum):
    KILL_WORKER = "worker"
    KILL_SWEEPER = "sweeper"
    KILL_API = "api"
    KILL_REDIS = "redis"
    KILL_POSTGRES = "postgres"
    KILL_CHROMA = "chroma"
    FREEZE_WORKER = "zombie"
    FLUSH_BROKER = "flushall"
    DOUBLE_HINTS = "doubled_hints"
    SHUFFLE_HINTS = "shuffled_hints"
    DELETE_HINTS = "deleted_hints"


KILLS = (
    Act.KILL_WORKER,
    Act.KILL_SWEEPER,
    Act.KILL_API,
    Act.KILL_REDIS,
    Act.KILL_POSTGRES,
    Act.KILL_CHROMA,
)
# Percentages of the kills: workers hold the lanes, so they are killed most often.
LIKELIHOOD = (40, 10, 15, 12, 12, 11)
ACCIDENTS = tuple(act for act in Act if act not in KILLS)


@dataclass(frozen=True, slots=True)
class Due:
    """An act, due when `ended` events have ended."""

    ended: int
    act: Act


def schedule(acts: Sequence[Act], *, events: int, seed: int) -> list[Due]:
    """The acts in random order, due at random points from 3 % to 90 % of the events."""
    chance = random.Random(seed)
    shuffled = chance.sample(list(acts), k=len(acts))
    places = sorted(chance.randint(events // 30, events * 9 // 10) for _ in acts)
    return [Due(ended, act) for ended, act in zip(places, shuffled, strict=True)]


def mixed(kills: int, accidents: int, *, seed: int) -> list[Act]:
    """Random kills, each kind at least once, and each kind of accident `accidents` times."""
    chance = random.Random(seed)
    drawn = chance.choices(KILLS, LIKELIHOOD, k=max(0, kills - len(KILLS)))
    return [*KILLS, *drawn, *(ACCIDENTS * accidents)]


@dataclass(frozen=True, slots=True)
class Recovery:
    """Seconds until a lane that lost its worker completed a stage, and the other acts since."""

    seconds: float
    beside: Sequence[str]

    @property
    def alone(self) -> bool:
        return not self.beside


@dataclass
class Monkey:
    """Perform acts when due. `ended` counts ended events, `requests_open` unanswered adds.

    `outside`: servers that no supervisor restarts, by the name of the stack's own server.
    """

    stack: Stack
    window: LedgerWindow
    due: Sequence[Due]
    seed: int
    ended: Callable[[], int]
    requests_open: Callable[[], int]
    outside: Mapping[str, Server] = field(default_factory=dict)
    done: Counter[Act] = field(default_factory=Counter)
    hints_touched: Counter[Act] = field(default_factory=Counter)
    recoveries: list[Recovery] = field(default_factory=list)
    never_recovered: list[str] = field(default_factory=list)
    # Freezes in which a lane of the frozen worker was not taken over in time.
    stuck_freezes: int = 0
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(f"{self.seed}/monkey")
        self._hurts: list[tuple[float, str]] = []
        self._frozen: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()

    async def run(self, stopped: asyncio.Event) -> None:
        """Perform all acts when due; return once every lane has recovered."""
        for due in self.due:
            await self._reached(due.ended, stopped)
            if stopped.is_set():
                break
            await self._perform(due.act)
        await asyncio.gather(*self._background)

    async def _reached(self, ended: int, stopped: asyncio.Event) -> None:
        async def so_far() -> bool:
            return stopped.is_set() or self.ended() >= ended

        await holds(so_far, within_s=3600)

    async def _perform(self, act: Act) -> None:
        doing: Mapping[Act, Callable[[], Coroutine[Any, Any, None]]] = {
            Act.KILL_WORKER: self._kill_worker,
            Act.FREEZE_WORKER: self._freeze,
            Act.FLUSH_BROKER: self._flush,
            Act.DOUBLE_HINTS: lambda: self._rewrite(act, self._doubled),
            Act.SHUFFLE_HINTS: lambda: self._rewrite(act, self._shuffled),
            Act.DELETE_HINTS: lambda: self._rewrite(act, lambda _: []),
        }
        self.log.append(f"{self.ended()}: {act}")
        if act in (Act.KILL_API, Act.KILL_POSTGRES):
            await self._mid_request()
        await (doing[act]() if act in doing else self._kill(act.value))
        self.done[act] += 1

    # processes

    def _alive(self) -> dict[str, Identity]:
        state = read(Layout(self.stack.data_dir))
        processes = state.survivors() if state else {}
        return {name: who for name, who in processes.items() if name not in self._frozen}

    async def _mid_request(self) -> None:
        """Wait until a request is open: a kill between requests would test little."""

        async def waiting() -> bool:
            return self.requests_open() > 0

        await holds(waiting, within_s=3.0, every_s=0.001)

    async def _kill(self, name: str) -> None:
        if server := self.outside.get(name):
            server.kill()
            await asyncio.to_thread(server.start)
            self._hurt(name)
            return

        async def killed() -> bool:
            who = self._alive().get(name)
            return who is not None and send(who, signal.SIGKILL)

        assert await holds(killed, within_s=BACK_WITHIN_S), f"{name} did not come back"
        self._hurt(name)

    def _hurt(self, what: str) -> None:
        self._hurts.append((_now(), what))

    async def _worker(self) -> str:
        """Name of a random worker that is alive."""

        async def one_lives() -> bool:
            return bool(workers())

        def workers() -> list[str]:
            return sorted(name for name in self._alive() if name.startswith("worker-"))

        assert await holds(one_lives, within_s=BACK_WITHIN_S), "no worker came back"
        return self._chance.choice(workers())

    async def _kill_worker(self) -> None:
        name = await self._worker()
        try:
            owner = await self._owner(name)
        except LedgerAway:
            owner = None
        await self._kill(name)
        at = _now()
        try:
            running = [row for row in await self._running() if str(row["owner"]) == owner]
        except LedgerAway:
            return  # the lanes of this worker are unknown
        self._start(self._watch(at, running))

    async def _owner(self, worker: str) -> str | None:
        """Owner name in the worker's leases; None if it has not connected to the ledger yet."""
        rows = await self.window.rows(
            "SELECT split_part(application_name, ' ', 2) AS owner FROM pg_stat_activity"
            " WHERE application_name LIKE 'memlane % ' || $1",
            worker,
        )
        return rows[0]["owner"] if rows else None

    async def _freeze(self) -> None:
        """Stop a worker until its leases expire and its lanes are taken over, then resume it."""
        name = await self._worker()
        who = self._alive()[name]
        send(who, signal.SIGSTOP)
        self._frozen.add(name)
        self._start(self._thaw(name, who))

    async def _thaw(self, name: str, who: Identity) -> None:
        lanes = await self._lanes_of_the_frozen()
        moved = await self._all_moved(lanes, within_s=LONGEST_FREEZE_S)
        self.stuck_freezes += not moved
        send(who, signal.SIGCONT)
        self._frozen.discard(name)
        self._hurt(f"{name} thawed")

    async def _lanes_of_the_frozen(self) -> Rows:
        running: Rows = []

        async def asked() -> bool:
            running[:] = await self._running()
            return True

        await holds(asked, within_s=LONGEST_FREEZE_S)
        return running

    async def _running(self) -> Rows:
        return await self.window.rows(
            "SELECT id, owner, stage, settled_seq FROM lanes WHERE state = 'RUNNING'"
        )

    async def _all_moved(self, lanes: Rows, *, within_s: float) -> bool:
        async def moved() -> bool:
            rows = await self.window.rows(
                "SELECT id, stage, settled_seq FROM lanes WHERE id = ANY($1)",
                [lane["id"] for lane in lanes],
            )
            now = {row["id"]: (row["settled_seq"], row["stage"]) for row in rows}
            return all(now[lane["id"]] != (lane["settled_seq"], lane["stage"]) for lane in lanes)

        return await holds(moved, within_s=within_s)

    async def _watch(self, killed_at: float, orphans: Rows) -> None:
        """Measure the recovery of a dead worker's lanes: the time until a stage of each is done."""
        before = {row["id"]: row for row in orphans}

        async def settled() -> bool:
            rows = await self.window.rows(
                "SELECT id, stage, settled_seq FROM lanes WHERE id = ANY($1)", list(before)
            )
            for row in rows:
                was = before[row["id"]]
                if (row["settled_seq"], row["stage"]) != (was["settled_seq"], was["stage"]):
                    del before[row["id"]]
                    beside = [what for hurt_at, what in self._hurts if hurt_at > killed_at]
                    self.recoveries.append(Recovery(_now() - killed_at, beside))
            return not before

        if not await holds(settled, within_s=RECOVERED_WITHIN_S):
            self.never_recovered += [str(lane_id) for lane_id in before]

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.add(asyncio.create_task(work))

    # the broker

    async def _flush(self) -> None:
        async with Redis.from_url(broker_url(self.stack)) as broker:

            async def flushed() -> bool:
                try:
                    return bool(await broker.flushall())
                except (RedisError, OSError):
                    return False

            assert await holds(flushed, within_s=BACK_WITHIN_S), "the broker did not come back"
        self._hurt(Act.FLUSH_BROKER)

    async def _rewrite(self, act: Act, change: Callable[[list[bytes]], list[bytes]]) -> None:
        """Replace the waiting hints of every queue with `change` of them."""
        async with Redis.from_url(broker_url(self.stack)) as broker:

            async def rewritten() -> bool:
                try:
                    touched = sum([await replaced(broker, queue, change) for queue in QUEUES])
                except (RedisError, OSError):
                    return False
                self.hints_touched[act] += touched
                return touched > 0

            # If no hint waits now, one will soon, unless all work is done.
            await holds(rewritten, within_s=5.0, every_s=0.01)
        self._hurt(act)

    def _doubled(self, hints: list[bytes]) -> list[bytes]:
        return [copy for hint in hints for copy in (hint, _as_new(hint))]

    def _shuffled(self, hints: list[bytes]) -> list[bytes]:
        return self._chance.sample(hints, k=len(hints))


async def replaced(broker: Redis, queue: str, change: Callable[[list[bytes]], list[bytes]]) -> int:
    """Replace the hints of a queue with `change` of them; return the number of old hints."""
    async with broker.pipeline(transaction=True) as both:
        both.lrange(queue, 0, -1)
        both.delete(queue)
        taken: list[bytes] = (await both.execute())[0]
    if changed := change(taken):
        await broker.rpush(queue, *changed)
    return len(taken)


def _as_new(hint: bytes) -> bytes:
    """Copy of a task with a new delivery tag, like a duplicate that a broker makes."""
    message = json.loads(hint)
    message["properties"]["delivery_tag"] = str(uuid4())
    return json.dumps(message).encode()


def _now() -> float:
    return asyncio.get_running_loop().time()
