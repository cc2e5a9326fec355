"""What the sweeper's process does beside its ticks: work of any length that must not delay them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from sqlalchemy.exc import SQLAlchemyError

from pipeline import bootstrap, erasure
from pipeline.bootstrap import Stores
from pipeline.errors import TransientError
from pipeline.settings import Settings

log = structlog.get_logger()

Chore = Callable[[], Awaitable[object]]


@asynccontextmanager
async def under_way(settings: Settings, stores: Stores) -> AsyncIterator[None]:
    """Every chore, again and again, until the context ends: at any point, for all may be killed."""
    courier, sender = bootstrap.build_courier(settings, stores.ledger.webhooks)

    async def erase() -> None:
        await erasure.finish(erasures=stores.ledger.erasures, index=stores.index)

    tasks = [
        asyncio.create_task(_again_and_again(chore, pause_s=settings.sweep_s))
        for chore in (erase, courier.deliver)
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
        except (TransientError, SQLAlchemyError, OSError) as error:
            log.warning("chore_waits", error=type(error).__name__)
        await asyncio.sleep(pause_s)
