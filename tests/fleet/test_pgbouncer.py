"""PgBouncer: transaction pooling that loses statements is refused; session pooling works."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from deploy.stack.check import CHECKS
from deploy.stack.servers import Postgres
from pipeline.ledger.engine import SESSION, connect
from pipeline.ledger.statements import Direct
from pipeline.settings import Settings
from tests.support.pgbouncer import PgBouncer
from tests.support.stack import Stack

EVENTS = 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with Postgres(tmp_path_factory.mktemp("postgres")) as postgres:
        yield postgres


async def set_role(url: str) -> None:
    """The settings that docs/howto/production.md asks for."""
    engine = connect(url, pool_size=1)
    user = make_url(url).username
    for name, value in SESSION.items():
        await Direct(engine).rows(text(f"ALTER ROLE {user} SET {name} = '{value}'"), {})
    await engine.dispose()


async def refusals(url: str) -> list[str]:
    return list((await CHECKS["database"](Settings.model_validate({"database_url": url}))).refused)


async def test_the_role_needs_its_settings_and_transactions_their_statements(
    tmp_path: Path, server: Postgres
) -> None:
    with PgBouncer(tmp_path, server.url, mode="transaction") as pooler:
        (refused,) = await refusals(pooler.url)
        assert "the role needs its settings: ALTER ROLE" in refused
        await set_role(server.url)
        pooler.stop()
        pooler.start()  # its sessions have the old settings
        (refused,) = await refusals(pooler.url)
        assert "use PgBouncer 1.21 or newer with max_prepared_statements" in refused


@pytest.mark.timeout(300)
async def test_with_session_pooling_a_killed_worker_costs_a_lease(
    tmp_path: Path, server: Postgres
) -> None:
    await set_role(server.url)
    with PgBouncer(tmp_path / "pooler", server.url, mode="session", size=200) as pooler:
        assert await refusals(pooler.url) == []
        settings = {"MEMLANE_DATABASE_URL": pooler.url, "MEMLANE_VECTORS": "pgvector"}
        async with Stack(tmp_path / "stack", settings) as stack, stack.client() as client:
            ids = [await client.add(f"user-{n}", "I live in Turku.") for n in range(EVENTS)]
            stack.kill("worker-1", signal.SIGKILL)
            events = await client.all_ended(ids, within_s=60)
            assert {event["status"] for event in events} == {"SUCCEEDED"}
            for number in range(EVENTS):
                assert len(await client.memories(f"user-{number}")) == 1
