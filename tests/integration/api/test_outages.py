"""Outages: health, metrics, and answers while a store is out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from api.auth.key_cache import KeyRing
from api.dependencies import Api
from api.errors import LEDGER_DOWN, OUTCOME_UNKNOWN, WRITES_REFUSED
from deploy.stack.servers import Postgres
from pipeline import __version__
from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.domain.errors import ModelRejected
from pipeline.domain.vectors import Vector
from pipeline.ledger import disk_space
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ledger.statements import Direct
from pipeline.migrate import migrate
from pipeline.stores import Ledger
from pipeline.vector_index.index import VectorIndex
from tests.support.api_service import (
    ADD,
    LIST,
    LIVES,
    MAYA,
    SEARCH,
    UNREACHABLE_URL,
    Service,
    error_of,
    serving,
)
from tests.support.embedder_hash import HashEmbedder
from tests.support.engine import build_ledger
from tests.support.plans import recorded


async def test_health_tells_which_store_is_away(service: Service) -> None:
    for path in ("/healthz", "/readyz"):
        head = await service.client.head(path)
        assert head.status_code == (await service.client.get(path)).status_code
    assert (await service.client.get("/healthz")).json() == {
        "status": "ok",
        "version": __version__,
    }
    answer = await service.client.get("/readyz")
    assert answer.status_code == 200  # adds can be accepted
    assert answer.json() == {
        "status": "ok",
        "ledger": "ok",
        "vectors": "StoreUnavailable",
        "model": "ok",
    }


async def test_a_full_disk_is_named(service: Service) -> None:
    refuse = (
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE SQLSTATE '53100' USING MESSAGE = 'disk full'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON events EXECUTE FUNCTION refuse()",
    )
    async with service.engine.ledger.engine.begin() as connection:
        for statement in refuse:
            await connection.execute(text(statement))
    answer = await service.client.post(ADD, json=LIVES)
    assert (answer.status_code, error_of(answer)) == (503, WRITES_REFUSED["DiskFull"])
    ready = await service.client.get("/readyz")
    assert (ready.status_code, ready.json()["ledger"]) == (503, "DiskFull")
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(text("DROP TRIGGER refuse ON events"))
    await service.add("I like jazz.")
    assert (await service.client.get("/readyz")).json()["ledger"] == "ok"


NO_SPACE = text("DO $$ BEGIN RAISE SQLSTATE '53100' USING MESSAGE = 'disk full'; END $$")


async def ledger_state(service: Service) -> str:
    return str((await service.client.get("/readyz")).json()["ledger"])


async def meet_full_disk(engine: AsyncEngine, *, direct: bool) -> None:
    if direct:
        await Direct(engine).rows(NO_SPACE, {})
    async with engine.begin() as connection:
        await connection.execute(NO_SPACE)


@pytest.mark.parametrize("direct", [True, False])
async def test_a_full_disk_is_named_for_as_long_as_it_lasts(
    service: Service, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    """Also if no add has met it: any statement tells, and a probe without effects ends it."""
    engine = service.engine.ledger.engine
    monkeypatch.setattr(disk_space, "PROBE_EVERY_S", 0.0)
    with monkeypatch.context() as full:
        full.setattr(disk_space, "PROBE", NO_SPACE)
        assert await ledger_state(service) == "ok"
        with pytest.raises(LedgerUnavailable):
            await meet_full_disk(engine, direct=direct)
        for _ in range(3):
            assert await ledger_state(service) == "DiskFull"
    assert await ledger_state(service) == "ok"
    with recorded(engine) as statements:
        assert await ledger_state(service) == "ok"
    assert not any("generate_series" in words for words, _ in statements)


async def test_a_full_disk_is_probed_once_in_ten_seconds(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = service.engine.ledger.engine
    monkeypatch.setattr(disk_space, "PROBE", NO_SPACE)
    with pytest.raises(LedgerUnavailable):
        await meet_full_disk(engine, direct=True)
    with recorded(engine) as statements:
        for _ in range(3):
            assert await ledger_state(service) == "DiskFull"
    assert sum("53100" in words for words, _ in statements) == 1


async def test_a_read_only_ledger_is_named(service: Service) -> None:
    engines = {service.engine.ledger.engine, service.engine.ledger.pools.adds}
    for state in ("on", "off"):
        async with service.engine.ledger.engine.begin() as connection:
            await connection.execute(text("SET LOCAL transaction_read_only = off"))
            name = await connection.scalar(text("SELECT current_database()"))
            await connection.execute(
                text(f"ALTER DATABASE {name} SET default_transaction_read_only = {state}")
            )
        for engine in engines:
            await engine.dispose()
        ready = await service.client.get("/readyz")
        answer = await service.client.post(ADD, json=LIVES)
        if state == "on":
            assert (ready.status_code, ready.json()["ledger"]) == (503, "ReadOnly")
            assert (answer.status_code, error_of(answer)) == (503, WRITES_REFUSED["ReadOnly"])
        else:
            assert (ready.status_code, answer.status_code) == (200, 200)


async def test_metrics_count_what_is_in_flight(service: Service) -> None:
    await service.client.post(ADD, json=LIVES)
    answer = await service.client.get("/metrics")
    assert 'memlane_events_in_flight{status="PENDING"} 1.0' in answer.text


async def test_an_unreachable_ledger_is_reported_as_such(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with Postgres(tmp_path_factory.mktemp("postgres")) as server:
        ledger = build_ledger(server.url)
        await migrate(ledger.engine)
        async with serving(ledger) as service:
            event_id = await service.add("I like jazz.")
            [stored] = await service.listed()
            server.kill()
            memory_url = f"/v1/memories/{stored['id']}/"
            requests: list[tuple[str, str, dict[str, Any] | None]] = [
                ("POST", ADD, LIVES),
                ("POST", ADD, LIVES | {"infer": False}),
                ("POST", "/v1/memories/", LIVES),
                ("POST", LIST, {"filters": MAYA}),
                ("POST", SEARCH, {"query": "jazz", "filters": MAYA}),
                ("GET", memory_url, None),
                ("PUT", memory_url, {"text": "x"}),
                ("DELETE", memory_url, None),
                ("GET", f"{memory_url}history/", None),
                ("GET", f"/v1/event/{event_id}/", None),
                ("GET", "/v1/events/", None),
                ("GET", "/v1/stats/", None),
                ("GET", f"/v1/event/{event_id}/stream/", None),
                ("POST", f"/v1/event/{event_id}/cancel/", None),
                ("POST", f"/v1/event/{event_id}/replay/", None),
                ("POST", f"/v1/event/{event_id}/undo/", None),
                ("POST", "/v1/events/replay/", {"code": "INTERNAL"}),
            ]
            for method, path, body in requests:
                answer = await service.client.request(method, path, json=body)
                assert answer.status_code == 503, path
                # If the connection breaks during a write, the write may have committed.
                honest = {LEDGER_DOWN} if method == "GET" else {LEDGER_DOWN, OUTCOME_UNKNOWN}
                assert error_of(answer) in honest, path
                assert int(answer.headers["Retry-After"]) > 0
            assert not service.engine.hints.waiting
            assert (await service.client.get("/healthz")).status_code == 200
            ready = await service.client.get("/readyz")
            assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")

            server.start()
            assert (await service.client.get("/readyz")).status_code == 200
            events = (await service.client.get("/v1/events/")).json()
            assert [event["id"] for event in events["results"]] == [event_id]
            assert await service.listed() == [stored]
            await service.add("I like chess.")
            assert len(await service.listed()) == 2
        await ledger.close()


async def test_a_key_cannot_be_checked_without_the_ledger(ledger: Ledger) -> None:
    nowhere = build_ledger("postgresql://u@127.0.0.1:9/none")
    async with serving(ledger) as service:
        api: Api = service.api
        service.app.state.api = replace(api, keys=KeyRing(nowhere.keys))
        answer = await service.client.get("/v1/ping/")
        assert (answer.status_code, error_of(answer)) == (503, LEDGER_DOWN)
        assert "Retry-After" in answer.headers
    await nowhere.close()


@pytest.mark.usefixtures("few_in_index")
async def test_vectors_away_leave_adds_lists_and_words(service: Service) -> None:
    await service.add("I drive a Saab.")
    away = ChromaVectors(UNREACHABLE_URL)
    embedder = service.engine.services.embedder
    index = VectorIndex(away, service.engine.ledger.memory_vectors, embedder, buckets=4)
    service.app.state.api = replace(service.api, stores=replace(service.api.stores, index=index))
    assert (await service.client.post(ADD, json=LIVES)).json()["status"] == "PENDING"
    [stored] = await service.listed()
    answer = await service.client.post(SEARCH, json={"query": "Saab", "filters": MAYA})
    assert (answer.json()["degraded"], answer.json()["degraded_parts"]) == (True, ["meaning"])
    assert [row["id"] for row in answer.json()["results"]] == [stored["id"]]
    path = f"/v1/memories/{stored['id']}/"
    assert (await service.client.put(path, json={"text": "Maya has a Volvo."})).is_success
    assert (await service.client.delete(path)).is_success
    await away.close()


class Refusing(HashEmbedder):
    """An embedder that refuses every text, as some do with one that is too long."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise ModelRejected("openai/bge-small: HTTP 400")


async def test_a_text_that_the_embedder_refuses_is_searched_by_words_and_not_stored(
    service: Service,
) -> None:
    await service.add("I drive a Saab.")
    [stored] = await service.listed()
    stores = replace(service.api.stores, embedder=Refusing())
    service.app.state.api = replace(service.api, stores=stores)
    answer = await service.client.post(SEARCH, json={"query": "Saab", "filters": MAYA})
    assert answer.status_code == 200
    assert answer.json()["degraded_parts"] == ["meaning"]
    assert [row["id"] for row in answer.json()["results"]] == [stored["id"]]
    refused = await service.client.put(f"/v1/memories/{stored['id']}/", json={"text": "Long text."})
    assert (refused.status_code, refused.json()["code"]) == (400, "LLM_REJECTED")
    assert error_of(refused) == "openai/bge-small: HTTP 400"
    assert await service.listed() == [stored]
