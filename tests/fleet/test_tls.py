"""TLS and passwords to PostgreSQL, Redis and RabbitMQ: certificates are checked; no plain way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from deploy.stack.check import check
from deploy.stack.postgres import DATABASE
from deploy.stack.server import Server
from pipeline.settings import Settings
from tests.support.chaos_ledger import LedgerWindow
from tests.support.stack import Stack
from tests.support.tls import (
    Certificates,
    TlsPostgres,
    TlsRabbitMQ,
    TlsRedis,
    make_certificates,
)

ENCRYPTED = """
SELECT bool_and(ssl) AS encrypted, count(*) AS sessions
FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'memlane%'
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def postgres(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[TlsPostgres]:
    with TlsPostgres(tmp_path_factory.mktemp("postgres"), certificates) as server:
        yield server


@pytest.fixture(scope="module", params=[TlsRedis, TlsRabbitMQ])
def broker(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    certificates: Certificates,
) -> Iterator[Server]:
    with request.param(tmp_path_factory.mktemp("broker"), certificates) as server:
        yield server


def verified(postgres: TlsPostgres, authority: Path) -> str:
    return f"{postgres.url}?sslmode=verify-full&sslrootcert={authority}"


async def refusals(**given: object) -> list[str]:
    return list((await check(Settings.model_validate(given))).refused)


async def test_a_database_is_verified(postgres: TlsPostgres, certificates: Certificates) -> None:
    assert await refusals(database_url=verified(postgres, certificates.authority)) == []
    assert await refusals(database_url=f"{postgres.url}?sslmode=require") == []
    for url in (
        verified(postgres, certificates.stranger),
        f"{postgres.url}?sslmode=disable",
        verified(postgres, certificates.authority).replace(":", ":x", 2),
    ):
        (refused,) = await refusals(database_url=url)
        assert refused.startswith("MEMLANE_DATABASE_URL")


async def test_a_broker_is_verified(broker: Server, certificates: Certificates) -> None:
    good = {"broker_url": broker.url, "broker_ca": certificates.authority}
    assert await refusals(**good) == []
    plain = broker.url.replace("s://", "://", 1)
    for changes in (
        {"broker_ca": certificates.stranger},
        {"broker_ca": None},  # the system's authorities
        {"broker_url": plain},
        {"broker_url": broker.url.replace("@", "x@")},
    ):
        (refused,) = await refusals(**{**good, **changes})
        assert refused.startswith(f"MEMLANE_BROKER_URL (127.0.0.1:{broker.port}): ")


@pytest.mark.timeout(300)
async def test_an_event_passes_with_tls_on_every_connection(
    tmp_path: Path, postgres: TlsPostgres, broker: Server, certificates: Certificates
) -> None:
    user = type(broker).__name__.lower()
    url = verified(postgres, certificates.authority)
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE DATABASE {user}")
    await connection.close()
    url = url.replace(f"/{DATABASE}?", f"/{user}?")
    settings = {
        "MEMLANE_DATABASE_URL": url,
        "MEMLANE_BROKER_URL": broker.url,
        "MEMLANE_BROKER_CA": str(certificates.authority),
    }
    async with Stack(tmp_path / "stack", settings) as stack, stack.client() as client:
        event = await client.ended(await client.add(user, "I live in Turku."))
        assert event["status"] == "SUCCEEDED"
        assert len((await client.search(user, "Where do I live?"))["results"]) == 1
        window = LedgerWindow(url)
        [row] = await window.rows(ENCRYPTED)
        await window.close()
        assert (row["encrypted"], row["sessions"] > 2) == (True, True)
