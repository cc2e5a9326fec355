"""Services of the API: one for each test, or one for all tests that change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from sqlalchemy import text as sql

from deploy.stack.servers import Postgres
from pipeline.ledger.engine import connect
from pipeline.stores import Ledger
from tests.support.api_service import Service, serving
from tests.support.engine import build_ledger


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


@pytest.fixture
async def staffed(ledger: Ledger) -> AsyncIterator[Service]:
    """A service whose workers run at once, for requests that wait for a result."""
    async with serving(ledger, workers=True) as built:
        yield built


@pytest.fixture(scope="module")
async def shared(postgres: Postgres, template: str) -> AsyncIterator[Service]:
    """One service for all tests that change nothing."""
    name = f"test_{uuid4().hex}"
    admin = connect(postgres.url, pool_size=1)
    alone = admin.execution_options(isolation_level="AUTOCOMMIT")
    async with alone.connect() as connection:
        await connection.execute(sql(f"CREATE DATABASE {name} TEMPLATE {template}"))
    ledger = build_ledger(postgres.url.rpartition("/")[0] + "/" + name)
    async with serving(ledger) as built:
        yield built
    await ledger.close()
    async with alone.connect() as connection:
        await connection.execute(sql(f"DROP DATABASE {name} WITH (FORCE)"))
    await admin.dispose()
