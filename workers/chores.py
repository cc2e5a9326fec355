"""What the sweeper's process does beside its ticks: work of any length that must not delay them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from sqlalchemy.exc import SQLAlchemyError

from pipeline import bootstrap, erasure, telemetry
from pipeline.bootstrap import Stores
from pipeline.errors import StageError
from pipeline.settings import Settings

log = structlog.get_logger()

Chore = Callable[[], Awaitable[object]]

# Younger gaps between ledger and index belong to events still under way; the turns of a backlog
# may wait a while.
OWED_FOR_S, TURNS_OWED_FOR_S = 15.0, 60.0
TURNS_AT_ONCE = 200


@asynccontextmanager
async def under_way(settings: Settings, stores: Stores) -> AsyncIterator[None]:
    """Every chore, again and again, until the context ends: at any point, for all may be killed."""
    courier, sender = bootstrap.build_courier(settings, stores.ledger.webhooks)

    async def erase() -> None:
        await erasure.finish(erasures=stores.ledger.erasures, index=stores.index)

    async def repair() -> None:
        """What workers that died, or could not, owe the index of memories."""
        await stores.index.refit()
        if repaired := await stores.index.catch_up(owed_for_s=OWED_FOR_S):
            telemetry.projections_repaired.inc(repaired)
            log.info("projections_repaired", count=repaired)

    async def embed() -> None:
        """And the index of turns."""
        if stores.turns is not None:
            await stores.turns.refit(limit=TURNS_AT_ONCE)
            await stores.turns.catch_up(owed_for_s=TURNS_OWED_FOR_S, limit=TURNS_AT_ONCE)

    tasks = [
        asyncio.create_task(_again_and_again(chore, pause_s=settings.sweep_s))
        for chore in (erase, repair, embed, stores.ledger.books.fold, courier.deliver)
    ]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await sender.close()


async def _again_and_again(chore: Chore, *, pause_s: float) -> None:
    while True:
        try:
            await chore()
        except (StageError, SQLAlchemyError, OSError) as error:
            log.warning("chore_waits", error=type(error).__name__)
        await asyncio.sleep(pause_s)
