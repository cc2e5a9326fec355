"""Read-only access to a stack's ledger with plain SQL; it reconnects after a kill."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from deploy.stack.layout import Layout
from deploy.stack.servers import Redis
from tests.support.stack import Stack

Rows = list[Any]
AWAY = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a query that timed out leaves the protocol in an undefined state
)


class LedgerAway(Exception):
    """PostgreSQL does not answer now."""


class LedgerWindow:
    """Access over one connection, which is opened again after each failure."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: asyncpg.Connection[Any] | None = None
        self._turn = asyncio.Lock()

    async def rows(self, query: str, *values: Any) -> Rows:
        """Rows of a query. Errors: LedgerAway."""
        async with self._turn:
            try:
                async with asyncio.timeout(10):
                    if self._connection is None:
                        self._connection = await asyncpg.connect(self._url)
                    return list(await self._connection.fetch(query, *values))
            except AWAY as error:
                if self._connection is not None:
                    self._connection.terminate()
                    self._connection = None
                raise LedgerAway(type(error).__name__) from error

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


def port_of(stack: Stack, server: str) -> int:
    return int(json.loads(Layout(stack.data_dir).ports.read_text())[server])


def database_url(stack: Stack) -> str:
    """URL of the stack's own PostgreSQL, or of the external one."""
    if url := stack.settings.get("MEMLANE_DATABASE_URL"):
        return url
    password = (stack.data_dir / "postgres_password").read_text().strip()
    return f"postgresql://memlane:{password}@127.0.0.1:{port_of(stack, 'postgres')}/memlane"


def broker_url(stack: Stack) -> str:
    return Redis(stack.data_dir, port=port_of(stack, "redis")).url


async def holds(
    condition: Callable[[], Awaitable[bool]], *, within_s: float, every_s: float = 0.05
) -> bool:
    """Tell if a condition holds within the time limit; it does not while the ledger is away."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while True:
        try:
            if await condition():
                return True
        except LedgerAway:
            pass
        if loop.time() >= deadline:
            return False
        await asyncio.sleep(every_s)
