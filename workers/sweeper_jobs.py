"""Jobs of the sweeper's process that run beside its ticks, because they may take minutes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import structlog

from pipeline import bootstrap, telemetry
from pipeline.bootstrap import Stores
from pipeline.domain.errors import StageError
from pipeline.erasure import service as erasure
from pipeline.ingest import profiles
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ports import Dispatcher
from pipeline.settings import Settings
from pipeline.watchdog import end_with

log = structlog.get_logger()

Chore = Callable[[], Awaitable[object]]
# A job, the pause between its runs and the time limit of a run, in seconds.
Course = tuple[Chore, float, float | None]

# Minimum age of a stale vector. Workers are still about to write younger ones; turns may wait
# longer.
STALE_FOR_S, TURNS_STALE_FOR_S = 45.0, 60.0
TURNS_AT_ONCE = 200
HEAL_EVERY_S = 60.0
COMPACT_EVERY_S = 60.0
ANALYZE_EVERY_S = 5.0
# Maximum number of generations that one run accepts.
PROFILES_AT_ONCE = 100
# Time limits of one run, far longer than it takes. An erasure continues where it was stopped.
CHORE_S, LONG_CHORE_S = 300.0, 1_800.0
# Rest of the ends of sessions, as a multiple of their work. Without it, 10,000 ends at once made
# the reads of all tenants 1.2 to 1.4 times as slow on two cores; with 2.0, up to 1.15 times. Late
# ends rest less, so that a steady stream of them does not fall behind.
REST, REST_IF_LATE = 5.0, 0.5


@asynccontextmanager
async def under_way(
    settings: Settings, stores: Stores, dispatcher: Dispatcher
) -> AsyncIterator[None]:
    """Run every job again and again until the block ends; they may be stopped at any point."""
    webhook_delivery, sender = bootstrap.build_webhook_delivery(settings, stores.ledger.webhooks)

    async def refresh() -> None:
        """Accept the generations of profiles that are due."""
        await profiles.refresh(
            pause_s=settings.profile_pause_s,
            most=PROFILES_AT_ONCE,
            ledger=stores.ledger,
            dispatcher=dispatcher,
        )

    pause_s = settings.sweep_s
    courses: list[Course] = [
        *((chore, pause_s, limit_s) for chore, limit_s in _erasures(stores)),
        (refresh, pause_s, CHORE_S),
        *((chore, pause_s, limit_s) for chore, limit_s in _repairs(stores)),
        # It ends when no delivery is due, which may be never: a limit would end tries half-way, and
        # their receivers would get them twice. Each try has a limit of its own.
        (webhook_delivery.deliver, pause_s, None),
        (stores.ledger.seals.seal, pause_s, CHORE_S),
        (stores.heal, HEAL_EVERY_S, CHORE_S),
        (stores.compact, COMPACT_EVERY_S, LONG_CHORE_S),
        (stores.ledger.statistics.analyze_grown, ANALYZE_EVERY_S, CHORE_S),
    ]
    if stores.mirroring is None:
        await attempt(stores.ledger.graph_outbox.close, limit_s=CHORE_S)
    # Started one after the other: jobs that begin at the same moment open a connection each, which
    # stays open and takes 3 MB.
    apart_s = pause_s / len(courses)
    tasks = [
        asyncio.create_task(_again_and_again(*course, first_s=number * apart_s))
        for number, course in enumerate(courses)
    ]
    for task in tasks:
        task.add_done_callback(end_with)
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await sender.close()


def _erasures(stores: Stores) -> list[tuple[Chore, float]]:
    """Jobs of erasures, apart: no request waits behind thousands of ends of sessions."""
    ledger = stores.ledger
    ends = erasure.SessionEnds(ledger.private_runs, ledger.erasures)
    finish = partial(
        erasure.finish, erasures=ledger.erasures, index=stores.index, mirroring=stores.mirroring
    )

    async def erase() -> None:
        """Finish requested erasures."""
        await finish()

    async def end_sessions() -> None:
        """Erase temporary runs whose time is over, a limited number at a time."""
        while True:
            began = time.monotonic()
            await ends.end_next()
            await finish(of_sessions=True)
            rest = REST_IF_LATE if ends.late else REST
            await asyncio.sleep(rest * (time.monotonic() - began))
            if not ends.under_way:
                return

    return [(erase, LONG_CHORE_S), (end_sessions, (1 + REST) * LONG_CHORE_S)]


def _repairs(stores: Stores) -> list[tuple[Chore, float]]:
    """Jobs that bring the other stores to the state of the ledger, with their time limits."""

    async def repair() -> None:
        """Write the stale vectors of memories that no worker has written."""
        await stores.index.refit()
        if repaired := await stores.index.catch_up(stale_for_s=STALE_FOR_S):
            telemetry.projections_repaired.inc(repaired)
            log.info("projections_repaired", count=repaired)

    async def embed() -> None:
        """Embed and write the stale vectors of turns."""
        if stores.turns is not None:
            await stores.turns.refit(limit=TURNS_AT_ONCE)
            await stores.turns.catch_up(stale_for_s=TURNS_STALE_FOR_S, limit=TURNS_AT_ONCE)

    async def mirror() -> None:
        """Write waiting changes of the graph to the graph server."""
        if stores.mirroring is not None:
            await stores.mirroring.catch_up()

    async def count() -> None:
        """Take the samples of the projects with new entries in the books, and add these up."""
        await stores.ledger.samples.take()
        await stores.ledger.balance.fold()

    return [
        (repair, CHORE_S),
        (embed, CHORE_S),
        (stores.fill_large, LONG_CHORE_S),
        (mirror, LONG_CHORE_S),
        (stores.ledger.term_rebuild.walk, CHORE_S),
        (count, CHORE_S),
    ]


async def attempt(chore: Chore, *, limit_s: float | None) -> None:
    """Run a job once, within `limit_s` seconds, if any. Exceptions are logged, not raised."""
    name = getattr(chore, "__name__", type(chore).__name__)
    try:
        async with asyncio.timeout(limit_s):
            await chore()
    except (StageError, LedgerUnavailable, TimeoutError) as error:
        log.warning("chore_waits", chore=name, error=type(error).__name__)
    except Exception as error:
        log.error("chore_crashed", chore=name, exc_info=error)


async def _again_and_again(
    chore: Chore, pause_s: float, limit_s: float | None, *, first_s: float = 0.0
) -> None:
    """Run a job forever, first after `first_s` seconds, with `pause_s` seconds between two runs."""
    await asyncio.sleep(first_s)
    while True:
        await attempt(chore, limit_s=limit_s)
        await asyncio.sleep(pause_s)
