"""One chaos run: load, fault injection and accounting samples side by side, then the checker."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from deploy.stack.server import Server
from tests.support.chaos_check import (
    REPAIRED_WITHIN_S,
    BookSamples,
    ChaosFinding,
    check_lanes,
    index_agrees,
    tally,
)
from tests.support.chaos_ledger import LedgerAway, LedgerWindow, database_url, holds
from tests.support.chaos_load import ChatLoad, said, user_of
from tests.support.chaos_monkey import KILLS, Act, Due, Monkey, schedule
from tests.support.chaos_sessions import SessionLoad
from tests.support.stack import Stack

SAMPLE_S = 0.1
MOST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """Load, faults and time limits of a run.

    `most_open`: events in flight at which the clients pause. After `talk_s` seconds the clients
    stop, and accepted events have `settle_s` seconds to end. `sessions`: number of sessions beside
    the chats, with temporary runs, erasures, dry runs and the curator. `sealed`: tamper evidence is
    on, and verified at the end. `summarized`: the stack makes rolling summaries.
    """

    scopes: int
    turns: int
    acts: Sequence[Act]
    callers: int = 16
    most_open: int = 200
    seed: int = 0
    keyed: float = 0.5
    talk_s: float = 3600.0
    settle_s: float = 120.0
    sessions: int = 0
    sealed: bool = False
    summarized: bool = False

    @property
    def due(self) -> list[Due]:
        return schedule(self.acts, events=self.scopes * self.turns, seed=self.seed)


@dataclass(slots=True)
class ChaosReport:
    figures: dict[str, Any]
    findings: list[ChaosFinding]
    violations: list[str]
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings[:MOST_SHOWN]]
        return "\n".join([*lines, *self.violations[:MOST_SHOWN], *self.wrong, str(self.figures)])

    @property
    def proven(self) -> bool:
        return not (self.findings or self.violations or self.wrong)


async def run(
    stack: Stack, plan: ChaosPlan, outside: Mapping[str, Server] | None = None
) -> ChaosReport:
    """Run a plan on a started stack; the stack is up again when this returns.

    `outside`: the stack's external servers, see Monkey.
    """
    window, watching = (LedgerWindow(database_url(stack)) for _ in range(2))
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def may_send() -> None:
        async def room() -> bool:
            return load.stopped.is_set() or books.in_flight < plan.most_open

        await holds(room, within_s=plan.talk_s + plan.settle_s)

    load = ChatLoad(
        stack,
        scopes=plan.scopes,
        turns=plan.turns,
        callers=plan.callers,
        seed=plan.seed,
        keyed=plan.keyed,
        may_send=may_send,
    )
    sessions = SessionLoad(
        stack,
        load.log,
        sessions=plan.sessions,
        seed=plan.seed,
        may_send=may_send,
    )
    books = BookSamples(window, load.log)
    monkey = Monkey(
        stack,
        watching,
        plan.due,
        plan.seed,
        lambda: books.ended,
        lambda: load.log.open,
        outside or {},
    )
    wrong: list[str] = []
    ended, monkey_stops = asyncio.Event(), asyncio.Event()
    sampling = asyncio.create_task(_keep_books(books, ended))
    mischief = asyncio.create_task(monkey.run(monkey_stops))
    talking = asyncio.create_task(_talk(load, sessions, sealed=plan.sealed))
    try:
        done, _ = await asyncio.wait([talking], timeout=plan.talk_s)
        load.stopped.set()
        await talking
        cut_short = not done

        async def all_ended() -> bool:
            return books.samples > 0 and books.in_flight == 0 and load.log.open == 0

        if not await holds(all_ended, within_s=plan.settle_s):
            wrong.append(f"{books.in_flight} events in flight after {plan.settle_s:.0f} s")
        if cut_short or wrong:
            monkey_stops.set()
        await mischief
        await holds(all_ended, within_s=plan.settle_s)
        worked_s = loop.time() - began
        await books.sample()
        if differs := await index_agrees(window, stack, within_s=REPAIRED_WITHIN_S):
            wrong.append(f"vectors: {differs}")
        findings = await check_lanes(window, load.log)
        figures = await _figures(stack, window, load, books, monkey, findings)
        figures |= await _check_sessions(sessions, window, plan)
        figures["worked_s"] = round(worked_s, 1)
        figures["duration_s"] = round(loop.time() - began, 1)
    finally:
        ended.set()
        for task in (talking, mischief):
            task.cancel()
        await asyncio.gather(talking, mischief, sampling, return_exceptions=True)
        await window.close()
        await watching.close()
        await sessions.close()
    wrong += sessions.log.wrong
    wrong += [f"refused: {answer}" for answer in load.log.refused[:MOST_SHOWN]]
    wrong += [f"lane never recovered: {lane}" for lane in monkey.never_recovered[:MOST_SHOWN]]
    return ChaosReport(figures, findings, books.violations, wrong)


async def _check_sessions(
    sessions: SessionLoad, window: LedgerWindow, plan: ChaosPlan
) -> dict[str, Any]:
    figures = await sessions.check(window)
    if plan.summarized and not figures["summaries"]:
        sessions.log.wrong.append("no summary was made")
    return {"beside": figures} | ({"verify": await sessions.check_seals()} if plan.sealed else {})


async def _talk(load: ChatLoad, sessions: SessionLoad, *, sealed: bool) -> None:
    if sealed:
        await sessions.seal()
    async with asyncio.TaskGroup() as clients:
        clients.create_task(load.run())
        clients.create_task(sessions.run(load.stopped))


async def _keep_books(books: BookSamples, ended: asyncio.Event) -> None:
    while not ended.is_set():
        with contextlib.suppress(LedgerAway):
            await books.sample()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SAMPLE_S):
                await ended.wait()


USER_MESSAGES = """
SELECT l.user_id, m.content FROM messages m JOIN lanes l ON l.id = m.lane_id
"""
GRAPHS = """
SELECT coalesce(graph_status, 'none') AS status, count(*) AS events FROM events GROUP BY 1
"""
OUTCOMES = """
SELECT status, coalesce(failure_code, '') AS code, count(*) AS events,
       count(DISTINCT batch_id) AS batches
FROM events GROUP BY 1, 2
"""


async def _figures(
    stack: Stack,
    window: LedgerWindow,
    load: ChatLoad,
    books: BookSamples,
    monkey: Monkey,
    findings: Sequence[ChaosFinding],
) -> dict[str, Any]:
    outcomes, graphs = await window.rows(OUTCOMES), await window.rows(GRAPHS)
    ids = {row["id"] for row in await window.rows("SELECT id FROM events")}
    sure = {event_id for scope in load.log.scopes.values() for _, event_id in scope.accepted}
    stored = {(row["user_id"], row["content"]) for row in await window.rows(USER_MESSAGES)}
    denied = [
        (user_of(scope), said(scope, turn))
        for scope, log in load.log.scopes.items()
        for turn in log.denied
    ]
    return {
        "seed": monkey.seed,
        "scopes": len(load.log.scopes),
        "answered_200": load.log.accepted,
        "sent_again": load.log.sent_again,
        "in_doubt": load.log.in_doubt,
        "answered_503": len(denied),
        "answered_503_and_accepted": len(stored.intersection(denied)),
        "in_doubt_and_accepted": len(ids - sure),
        "accepted": books.accepted,
        "outcomes": {f"{row['status']} {row['code']}".strip(): row["events"] for row in outcomes},
        "graphs": {row["status"]: row["events"] for row in graphs},
        "batches": sum(row["batches"] for row in outcomes),
        **tally(findings),
        "identity_samples": books.samples,
        "identity_violations": len(books.violations),
        "kills": sum(monkey.done[act] for act in KILLS),
        "acts": {act.value: monkey.done[act] for act in Act if monkey.done[act]},
        "hints_touched": {act.value: n for act, n in monkey.hints_touched.items()},
        "stuck_freezes": monkey.stuck_freezes,
        "lanes_orphaned": len(monkey.recoveries),
        "recovery_s": _distribution([recovery.seconds for recovery in monkey.recoveries]),
        "recovery_alone_s": _distribution(
            [recovery.seconds for recovery in monkey.recoveries if recovery.alone]
        ),
        "slowest_recoveries": [
            f"{recovery.seconds:.1f} s, beside {', '.join(recovery.beside)}"
            for recovery in sorted(monkey.recoveries, key=lambda recovery: -recovery.seconds)[
                :MOST_SHOWN
            ]
        ],
        **await _metrics(stack),
    }


def _distribution(seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {"count": 0}
    ordered = sorted(seconds)
    picks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {"count": len(ordered)} | {
        name: round(ordered[min(len(ordered) - 1, int(part * len(ordered)))], 2)
        for name, part in picks.items()
    }


METRICS = ("fenced_writes", "stale_hints", "lanes_swept", "projections_repaired", "kicks_failed")


async def _metrics(stack: Stack) -> dict[str, int]:
    """Values of the product's counters, added up over labels and processes."""
    async with httpx.AsyncClient(base_url=stack.url, timeout=30) as http:
        text = (await http.get("/metrics")).text
    samples = {
        name: re.findall(rf"^memlane_{name}_total\S* (\S+)$", text, re.MULTILINE)
        for name in METRICS
    }
    return {name: int(sum(map(float, values))) for name, values in samples.items()}
