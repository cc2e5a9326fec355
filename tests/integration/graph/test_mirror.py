"""The graph in a graph server: the whole service with a real server, and with one that is down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete, text, update

from deploy.stack import ports
from pipeline.adapters.graph_bolt import BoltGraph
from pipeline.domain.errors import StoreUnavailable
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey
from pipeline.graph import outbox
from pipeline.graph.mirror import Mirroring
from pipeline.graph.path_search import LedgerPathSearch, MirroredPathSearch
from pipeline.graph.ports import MirrorChanges
from pipeline.graph.store import Graph
from pipeline.ledger.tables import graph_mirrors, graph_outbox, relations
from pipeline.stores import Ledger
from tests.integration.graph.test_editing import act, ids
from tests.integration.graph.test_reads import FAMILY, drawn, graph, searched, texts
from tests.support.api_service import MAYA, Service, serving
from tests.support.bolt_server import BoltAddress
from tests.support.engine import with_stores
from tests.support.stack import wait_until


@pytest.fixture
async def service(ledger: Ledger, bolt: BoltAddress) -> AsyncIterator[Service]:
    server = bolt.connect()
    async with serving(ledger) as built:
        use(built, server)
        yield built
    await server.claim()
    await server.wipe()
    await server.close()


def use(service: Service, server: BoltGraph) -> Mirroring:
    """Have the service follow relations in this server."""
    ledger = service.engine.ledger
    mirroring = Mirroring(server, ledger.graph_outbox)
    walks = MirroredPathSearch(server, ledger.graph_outbox, LedgerPathSearch(ledger.engine))
    mirrored = with_stores(ledger, graph=Graph(ledger.engine, walks))
    stores = replace(service.api.stores, ledger=mirrored, mirroring=mirroring)
    service.app.state.api = replace(service.api, stores=stores)
    return mirroring


def mirror(service: Service) -> Mirroring:
    mirroring = service.api.stores.mirroring
    assert mirroring is not None
    return mirroring


async def walked(service: Service, name: str, **params: object) -> list[str]:
    """The neighbourhood of an entity, from the server."""
    await mirror(service).catch_up()
    async with service.engine.ledger.engine.connect() as connection:
        assert (await connection.execute(graph_outbox.select())).all() == []
    return sorted(await graph(service, entity=name, **params))


async def in_ledger(service: Service, name: str, **params: object) -> list[str]:
    """The same from the ledger, because the server is not registered."""
    await run(service, update(graph_mirrors).values(filled_at=None))
    rows = sorted(await graph(service, entity=name, **params))
    await mirror(service).rebuild()
    return rows


async def run(service: Service, statement: Any) -> None:
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(statement)


async def test_a_search_follows_relations_in_the_server(service: Service) -> None:
    await drawn(service, *FAMILY)
    await mirror(service).catch_up()
    await run(service, delete(graph_outbox))
    first = (await searched(service, "Where is the employer of my sister located?"))["relations"][0]
    assert texts([first]) == ["Bosch located_in Stuttgart"]
    assert texts(first["path"]) == ["User has_sister Ines", "Ines works_at Bosch"]


async def test_edits_and_new_facts_reach_the_server(service: Service) -> None:
    await drawn(service, *FAMILY, ("Nes", "lives_in", "Porto"))
    server = mirror(service).mirror
    before = await walked(service, "ines", hops=2)
    assert await server.counts() == (7, 6)
    known = await ids(service)
    await act(service, "POST", f"{known['Nes']}/merge/", into=known["Ines"])
    merged = await walked(service, "ines")
    assert merged == ["Ines lives_in Porto", "Ines works_at Bosch", "User has_sister Ines"]
    assert merged == await in_ledger(service, "ines")
    await act(service, "POST", f"{known['Nes']}/split/")
    assert await walked(service, "ines", hops=2) == before
    await act(service, "PUT", f"{known['Ines']}/", name="Inês Costa")
    assert "User has_sister Inês Costa" in await walked(service, "inês costa")
    await act(service, "DELETE", f"{known['Bosch']}/")
    assert await walked(service, "bosch") == []
    assert await server.counts() == (6, 4)


async def test_endings_and_an_undo_reach_the_server(service: Service) -> None:
    await service.add("I work at Acme.", timestamp="2026-02-01T10:00:00Z")
    event_id = await service.add("I work at Bosch now.", timestamp="2026-05-01T10:00:00Z")
    assert await walked(service, "me") == ["User works_at Bosch"]
    assert await walked(service, "me", valid_at="2026-03-15") == ["User works_at Acme"]
    answer = await service.client.post(f"/v1/event/{event_id}/undo/")
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    assert await walked(service, "me") == ["User works_at Acme"]
    assert await mirror(service).mirror.counts() == (3, 2)  # nothing is deleted


async def test_an_erasure_is_complete_once_the_server_has_nothing(service: Service) -> None:
    await drawn(service, *FAMILY)
    await drawn(service, ("User", "likes", "Jazz"), user_id="noor")
    await walked(service, "ines")
    ledger, index = service.engine.ledger, service.engine.services.index
    event_id = await erasure.erase(
        service.engine.project.id, OwnerKey("user", MAYA["user_id"]), erasures=ledger.erasures
    )
    down = Mirroring(away(), ledger.graph_outbox)
    await run(service, update(graph_mirrors).values(name=down.mirror.name))
    with pytest.raises(StoreUnavailable):
        await erasure.finish(erasures=ledger.erasures, index=index, mirroring=down)
    await down.close()
    assert (await service.event(str(event_id)))["status"] == "RUNNING"
    assert await mirror(service).mirror.counts() == (8, 6)
    await run(service, update(graph_mirrors).values(name=mirror(service).mirror.name))
    await mirror(service).settle()
    assert await mirror(service).mirror.counts() == (2, 1)
    assert await walked(service, "me", user_id="noor") == ["User likes Jazz"]


async def test_a_deleted_organization_leaves_the_server(service: Service, ledger: Ledger) -> None:
    await drawn(service, *FAMILY)
    await walked(service, "ines")
    assert (await service.client.delete("/v1/memories/", params=MAYA)).status_code == 200
    await service.engine.drain()
    index = service.engine.services.index
    while await index.catch_up():
        pass
    gone = service.engine.project.organization_id
    await erasure.remove(gone, deletion=ledger.project_deletion, index=index)
    await mirror(service).catch_up()
    assert await mirror(service).mirror.counts() == (0, 0)


def away() -> BoltGraph:
    """A server that is down."""
    return BoltGraph(f"bolt://127.0.0.1:{ports.choose()}", timeout_s=1.0)


async def test_a_server_that_is_down_degrades_searches_and_delays_no_add(service: Service) -> None:
    await service.add("My sister Ines lives in Porto.")
    up = mirror(service)
    await up.catch_up()
    assert (await service.client.get("/readyz")).json()["graph"] == "ok"
    down = use(service, away())
    await run(service, update(graph_mirrors).values(name=down.mirror.name))
    answer = await searched(service, "Porto")
    assert "Porto" in answer["results"][0]["memory"]
    assert (answer["relations"], answer["degraded"]) == ([], True)
    assert (
        await service.client.get("/v1/graph/", params=MAYA | {"entity": "me"})
    ).status_code == 503
    ready = await service.client.get("/readyz")
    assert (ready.status_code, ready.json()["graph"]) == (200, "StoreUnavailable")
    # A change that waits: the ledger answers.
    await service.add("My brother Sam lives in Oslo.")
    with pytest.raises(StoreUnavailable):
        await down.catch_up()
    answer = await searched(service, "Where does my brother live?")
    assert "Sam lives_in Oslo" in texts(answer["relations"])
    assert not answer["degraded"]
    assert "memlane_graph_mirror_lag_seconds" in (await service.client.get("/metrics")).text
    await run(service, update(graph_mirrors).values(name=up.mirror.name))
    use(service, up.mirror)  # type: ignore[arg-type]
    assert "Sam lives_in Oslo" in await walked(service, "sam")
    await down.close()


async def test_what_was_deleted_is_not_returned_while_the_server_still_has_it(
    service: Service,
) -> None:
    await drawn(service, *FAMILY)
    await walked(service, "ines")
    await run(service, delete(relations).where(relations.c.relation == "works_at"))
    await run(service, delete(graph_outbox))  # as if the server had it
    assert await graph(service, entity="ines") == ["User has_sister Ines"]
    server = mirror(service).mirror
    assert await server.counts() == (6, 5)


async def test_ids_of_another_project_are_not_found_in_the_server(service: Service) -> None:
    await drawn(service, *FAMILY)
    await walked(service, "ines")
    known = await ids(service)
    async with serving(service.engine.ledger) as stranger:
        use(stranger, mirror(service).mirror)  # type: ignore[arg-type]
        await drawn(stranger, ("Ines", "likes", "Tea"))
        await mirror(stranger).catch_up()
        assert await graph(stranger, entity_id=str(UUID(known["Ines"]))) == []
        assert await graph(stranger, entity="ines") == ["Ines likes Tea"]


END_LOCK = text(
    """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_locks
    WHERE locktype = 'advisory'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    """
)


WRITES = "LOCK TABLE relations IN ROW EXCLUSIVE MODE"
WAITS = """SELECT count(*) FROM pg_locks
WHERE relation = 'relations'::regclass AND mode = 'ShareLock' AND NOT granted"""


async def test_no_write_queues_behind_a_filling_that_waits_for_a_long_writer(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "WRITERS_PAUSE_S", 0.01)
    await ledger.graph_outbox.register("server")
    async with ledger.engine.connect() as long, ledger.engine.connect() as other:
        await long.execute(text(WRITES))  # an erasure may hold it for minutes
        filling = asyncio.create_task(ledger.graph_outbox.fill())

        async def waits() -> bool:
            return bool(await other.scalar(text(WAITS)))

        await wait_until(waits, within_s=30, what="the filling waits for the writer")
        await other.execute(text("SET LOCAL lock_timeout = '20s'"))
        await other.execute(text(WRITES))  # raises if it waits behind the filling
        await other.rollback()
        assert not await ledger.graph_outbox.filled("server")
        await long.rollback()
        await filling
    assert await ledger.graph_outbox.filled("server")


class Late(BoltGraph):
    """A server that the first write of a process reaches late."""

    def __init__(self, server: BoltGraph) -> None:
        vars(self).update(vars(server))
        self.writing, self.proceed = asyncio.Event(), asyncio.Event()

    async def write(self, changes: MirrorChanges) -> None:
        self.writing.set()
        await self.proceed.wait()
        await super().write(changes)


async def test_a_process_that_lost_its_lock_writes_nothing_after_its_successor(
    service: Service, bolt: BoltAddress
) -> None:
    await drawn(service, *FAMILY)
    late = Late(bolt.connect())
    old = Mirroring(late, service.engine.ledger.graph_outbox)
    catching_up = asyncio.create_task(old.catch_up())
    await late.writing.wait()
    await run(service, END_LOCK)
    await run(service, delete(relations).where(relations.c.relation == "works_at"))
    server = mirror(service).mirror
    assert await walked(service, "ines") == ["User has_sister Ines"]
    counts = await server.counts()
    late.proceed.set()
    [outcome] = await asyncio.gather(catching_up, return_exceptions=True)
    assert isinstance(outcome, Exception)
    assert await server.counts() == counts
    # It goes on once it has the lock again.
    await drawn(service, ("Ines", "likes", "Tea"))
    assert await old.catch_up() > 0
    assert await walked(service, "ines") == ["Ines likes Tea", "User has_sister Ines"]
    await late.close()
