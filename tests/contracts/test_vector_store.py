"""Contract of VectorStore: in memory, real Chroma and PostgreSQL servers, a stand-in for Qdrant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import text

from deploy.stack.servers import Chroma as ChromaServer
from deploy.stack.servers import Postgres
from pipeline.adapters import vectors_pgvector
from pipeline.adapters.vectors_chroma import ROOT, ChromaVectors
from pipeline.adapters.vectors_pgvector import Pgvector
from pipeline.adapters.vectors_qdrant import INDEXED, Qdrant
from pipeline.domain.errors import CollectionMissing, InvalidInput, StoreUnavailable
from pipeline.domain.filters import ENTITY_IDS
from pipeline.domain.vectors import Vector, as_vector
from pipeline.ledger.engine import connect
from pipeline.ports import CollectionInfo, VectorRecord, VectorStore
from tests.support.qdrant_server import QdrantServer
from tests.support.vectors_memory import InMemoryVectors

EMBEDDER = "fake/hash"
EAST, NORTH, WEST = (as_vector(v) for v in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)))
NORTH_EAST = as_vector((0.6, 0.8, 0.0))
A, B, C, D = (UUID(int=n) for n in range(1, 5))


def without_entities(record: VectorRecord) -> dict[str, str | int]:
    """The payload without entity ids, which a store may keep as digests."""
    return {key: value for key, value in record.payload.items() if key not in ENTITY_IDS}


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[ChromaVectors]:
    client = ChromaVectors(url)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def on_postgres(url: str) -> AsyncIterator[Pgvector]:
    engine = connect(url, pool_size=4)
    try:
        yield Pgvector(engine)
    finally:
        await engine.dispose()


@pytest.fixture(params=["memory", "chroma", "pgvector", "qdrant"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[VectorStore]:
    match request.param:
        case "memory":
            yield InMemoryVectors()
        case "chroma":
            async with connected(request.getfixturevalue("chroma").url) as client:
                yield client
                await client.reset()
        case "pgvector":
            async with on_postgres(request.getfixturevalue("postgres").url) as tables:
                yield tables
                await tables.reset()
        case "qdrant":
            qdrant = Qdrant("http://qdrant", transport=QdrantServer())
            yield qdrant
            await qdrant.close()


@pytest.fixture
async def name(store: VectorStore) -> str:
    """Name of a new collection with vectors of three dimensions."""
    name = f"memories-{uuid4().hex}"
    await store.create_col(name, dimensions=3, embedder=EMBEDDER)
    return name


def record(key: UUID, vector: Vector = EAST, **payload: str | int) -> VectorRecord:
    return VectorRecord(key, vector, {"user_id": "maya", "version": 1, **payload})


async def ids_found(
    store: VectorStore, name: str, *, limit: int = 10, **where: str | int
) -> list[UUID]:
    [hits] = await store.search(name, [EAST], limit=limit, where=where)
    return [hit.id for hit in hits]


# ── records ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_write_is_visible_to_the_next_search(store: VectorStore, name: str) -> None:
    for count in range(1, 6):
        await store.insert(name, [record(UUID(int=count))])
        assert len(await ids_found(store, name)) == count
    await store.delete(name, [UUID(int=1)])
    assert len(await ids_found(store, name)) == 4


async def test_the_nearest_come_first_with_their_cosine(store: VectorStore, name: str) -> None:
    await store.insert(
        name, [record(A, WEST), record(B, NORTH), record(C, EAST), record(D, NORTH_EAST)]
    )
    [hits] = await store.search(name, [EAST], limit=10, where={})
    assert [hit.id for hit in hits] == [C, D, B, A]
    assert [hit.similarity for hit in hits] == pytest.approx([1.0, 0.6, 0.0, -1.0], abs=1e-6)


async def test_several_vectors_are_each_answered_in_their_place(
    store: VectorStore, name: str
) -> None:
    await store.insert(name, [record(A, WEST), record(B, NORTH), record(C, EAST)])
    hit_lists = await store.search(name, [NORTH, EAST, NORTH], limit=1, where={})
    assert [[hit.id for hit in hits] for hits in hit_lists] == [[B], [C], [B]]


async def test_a_search_brings_no_more_than_its_limit(store: VectorStore, name: str) -> None:
    await store.insert(name, [record(A, WEST), record(B, NORTH), record(C, EAST)])
    assert await ids_found(store, name, limit=2) == [C, B]
    assert await ids_found(store, name, limit=1) == [C]


async def test_a_search_of_nothing_finds_nothing(store: VectorStore, name: str) -> None:
    assert await ids_found(store, name) == []
    assert await ids_found(store, name, user_id="maya") == []


async def test_an_insert_repeated_changes_nothing(store: VectorStore, name: str) -> None:
    for _ in range(3):
        await store.insert(name, [record(A), record(B, NORTH)])
    assert await ids_found(store, name) == [A, B]
    assert (await store.col_info(name)) == CollectionInfo(name, 2, 3, EMBEDDER)


@pytest.mark.parametrize("operation", ["insert", "update"])
async def test_a_record_of_the_same_id_is_replaced(
    store: VectorStore, name: str, operation: str
) -> None:
    await store.insert(name, [record(A, WEST, version=1), record(B, NORTH)])
    again = record(A, EAST, version=2)
    await (store.insert if operation == "insert" else store.update)(name, [again])
    [[first, second]] = await store.search(name, [EAST], limit=10, where={})
    assert (first.id, second.id) == (A, B)
    assert first.similarity == pytest.approx(1.0, abs=1e-6)
    assert await ids_found(store, name, version=1) == [B]


async def test_where_holds_in_every_key(store: VectorStore, name: str) -> None:
    await store.insert(
        name,
        [
            record(A, user_id="maya", run_id="r1"),
            record(B, NORTH_EAST, user_id="maya", run_id="r2"),
            record(C, NORTH, user_id="jon", run_id="r1", version=7),
            record(D, WEST, user_id="jon"),
        ],
    )
    assert await ids_found(store, name, user_id="maya") == [A, B]
    assert await ids_found(store, name, run_id="r1") == [A, C]
    assert await ids_found(store, name, user_id="maya", run_id="r1") == [A]
    assert await ids_found(store, name, user_id="jon", run_id="r1", version=7) == [C]
    assert await ids_found(store, name, version=7) == [C]
    assert await ids_found(store, name, user_id="maya", version=7) == []
    assert await ids_found(store, name, agent_id="a") == []


async def test_users_of_one_name_in_two_projects_are_apart(store: VectorStore, name: str) -> None:
    await store.insert(
        name,
        [
            record(A, project_id="p", run_id="r"),
            record(B, project_id="q"),
            record(C, NORTH, project_id="p", user_id="jon", run_id="r"),
        ],
    )
    assert await ids_found(store, name, project_id="p", user_id="maya") == [A]
    assert await ids_found(store, name, project_id="p") == [A, C]
    assert await ids_found(store, name, user_id="maya") == [A, B]
    assert await ids_found(store, name, project_id="p", user_id="jon", run_id="r") == [C]
    assert await ids_found(store, name, project_id="q", user_id="jon") == []
    [stored] = await store.get(name, [B])
    assert without_entities(stored) == {"project_id": "q", "version": 1}


async def test_the_limit_counts_only_what_where_lets_through(store: VectorStore, name: str) -> None:
    far = [record(UUID(int=100 + n), WEST, user_id="jon") for n in range(5)]
    near = [record(UUID(int=200 + n), EAST, user_id="maya") for n in range(20)]
    await store.insert(name, [*near, *far])
    assert len(await ids_found(store, name, limit=5, user_id="jon")) == 5


@pytest.mark.parametrize("value", ["Köln 🙂", "a'b", '"', "$and", "", "*", "x" * 512])
async def test_an_id_is_compared_as_it_is(store: VectorStore, name: str, value: str) -> None:
    await store.insert(name, [record(A, user_id=value), record(B, user_id="other")])
    assert await ids_found(store, name, user_id=value) == [A]


async def test_what_is_deleted_is_gone_and_deleting_it_again_is_no_error(
    store: VectorStore, name: str
) -> None:
    await store.insert(name, [record(A), record(B)])
    for _ in range(2):
        await store.delete(name, [A, D])
    assert await ids_found(store, name) == [B]
    assert await store.get(name, [A]) == []


async def test_get_brings_the_records_that_are_there(store: VectorStore, name: str) -> None:
    await store.insert(name, [record(A, NORTH_EAST, run_id="r"), record(B)])
    [stored] = await store.get(name, [A, D])
    assert stored.id == A
    assert list(stored.vector) == pytest.approx(NORTH_EAST)
    assert without_entities(stored) == {"version": 1}
    assert {record.id for record in await store.get(name, [B, A])} == {A, B}


async def test_records_that_differ_are_named(store: VectorStore, name: str) -> None:
    ids: dict[str, Any] = {each: f"{each}-of-maya" for each in ENTITY_IDS}
    same, other, elsewhere = record(A, project_id="p", **ids), record(B, NORTH), record(C)
    await store.insert(name, [same, other, elsewhere])
    later, moved = record(B, NORTH, version=2), record(C, user_id="jon")
    assert await store.differing(name, [same, later, moved, record(D)]) == [B, C, D]
    assert await store.differing(name, [same, other, elsewhere]) == []


async def test_no_records_and_no_ids_are_nothing_to_do(store: VectorStore, name: str) -> None:
    await store.insert(name, [record(A), record(B)])
    assert await store.get(name, []) == []
    await store.insert(name, [])
    await store.update(name, [])
    assert len(await ids_found(store, name)) == 2


async def test_deleting_no_ids_deletes_nothing(store: VectorStore, name: str) -> None:
    await store.insert(name, [record(A), record(B)])
    await store.delete(name, [])
    assert len(await ids_found(store, name)) == 2


async def test_list_brings_what_matches_up_to_its_limit(store: VectorStore, name: str) -> None:
    await store.insert(name, [record(A), record(B), record(C, user_id="jon", run_id="r")])
    all_records = await store.list(name, where={}, limit=10)
    assert {record.id for record in all_records} == {A, B, C}
    assert len(await store.list(name, where={}, limit=2)) == 2
    [stored] = await store.list(name, where={"user_id": "jon", "run_id": "r"}, limit=10)
    assert stored.id == C
    assert list(stored.vector) == pytest.approx(EAST)


# ── collections ──────────────────────────────────────────────────────────────────────────────────


async def test_creating_a_collection_again_keeps_what_it_holds(
    store: VectorStore, name: str
) -> None:
    await store.insert(name, [record(A)])
    await store.create_col(name, dimensions=3, embedder=EMBEDDER)
    assert await ids_found(store, name) == [A]
    assert (await store.list_cols()).count(name) == 1


async def test_a_collection_refuses_the_vectors_of_another_model(
    store: VectorStore, name: str
) -> None:
    await store.insert(name, [record(A)])
    with pytest.raises(InvalidInput, match=f"{name} holds vectors of {EMBEDDER}"):
        await store.create_col(name, dimensions=3, embedder="other/model")
    assert await store.col_info(name) == CollectionInfo(name, 1, 3, EMBEDDER)


async def test_collections_are_listed_and_kept_apart(store: VectorStore, name: str) -> None:
    other = f"{name}-other"
    await store.create_col(other, dimensions=3, embedder=EMBEDDER)
    await store.insert(name, [record(A)])
    assert {name, other} <= set(await store.list_cols())
    assert await ids_found(store, other) == []


async def test_a_deleted_collection_is_gone_and_its_neighbours_stay(
    store: VectorStore, name: str
) -> None:
    other = f"{name}-other"
    await store.create_col(other, dimensions=3, embedder=EMBEDDER)
    for _ in range(2):  # the second delete does nothing
        await store.delete_col(name)
    assert name not in await store.list_cols()
    assert await store.col_info(name) is None
    assert await store.col_info(other) == CollectionInfo(other, 0, 3, EMBEDDER)


async def test_a_reset_leaves_no_collection(store: VectorStore, name: str) -> None:
    await store.create_col(f"{name}-other", dimensions=3, embedder=EMBEDDER)
    await store.reset()
    assert await store.list_cols() == []


Use = Callable[[VectorStore, str], Awaitable[object]]
USES: dict[str, Use] = {
    "insert": lambda store, name: store.insert(name, [record(A)]),
    "update": lambda store, name: store.update(name, [record(A)]),
    "search": lambda store, name: store.search(name, [EAST], limit=1, where={}),
    "delete": lambda store, name: store.delete(name, [A]),
    "get": lambda store, name: store.get(name, [A]),
    "list": lambda store, name: store.list(name, where={}, limit=1),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
async def test_a_name_that_was_never_created_is_missing(store: VectorStore, use: Use) -> None:
    with pytest.raises(CollectionMissing):
        await use(store, f"memories-{uuid4().hex}")


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
async def test_a_collection_that_was_in_use_and_was_wiped_is_missing(
    store: VectorStore, name: str, use: Use
) -> None:
    await store.insert(name, [record(A)])
    await store.reset()
    for _ in range(2):
        with pytest.raises(CollectionMissing):
            await use(store, name)


async def test_a_collection_wiped_and_made_again_is_used_as_new(
    store: VectorStore, name: str
) -> None:
    await store.insert(name, [record(A)])
    await store.delete_col(name)
    await store.create_col(name, dimensions=3, embedder=EMBEDDER)
    assert await ids_found(store, name) == []
    await store.insert(name, [record(B)])
    assert await ids_found(store, name) == [B]


# ── Chroma only: two clients, and a server that goes away ────────────────────────────────────────


LEFT: dict[str, list[UUID]] = {"insert": [A, B], "update": [A, B], "delete": []}


@pytest.mark.parametrize("use", USES)
async def test_a_client_uses_a_collection_that_another_one_deleted_and_made_again(
    chroma: ChromaServer, use: str
) -> None:
    """The client has the id of the deleted collection in its cache."""
    name = f"memories-{uuid4().hex}"
    async with connected(chroma.url) as ours, connected(chroma.url) as theirs:
        await ours.create_col(name, dimensions=3, embedder=EMBEDDER)
        await ours.insert(name, [record(C)])
        await theirs.delete_col(name)
        await theirs.create_col(name, dimensions=3, embedder=EMBEDDER)
        await theirs.insert(name, [record(A if use == "delete" else B)])
        await USES[use](ours, name)
        assert sorted(await ids_found(theirs, name)) == LEFT.get(use, [B])
        assert sorted(await ids_found(ours, name)) == LEFT.get(use, [B])
        await ours.delete_col(name)


async def test_a_server_that_is_gone_is_unavailable_and_back_with_its_data(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    name = f"memories-{uuid4().hex}"
    with ChromaServer(tmp_path_factory.mktemp("chroma")) as server:
        async with connected(server.url) as client:
            await client.create_col(name, dimensions=3, embedder=EMBEDDER)
            await client.insert(name, [record(A)])
            server.kill()
            uses: list[Use] = [
                *USES.values(),
                lambda store, name: store.create_col(name, dimensions=3, embedder=EMBEDDER),
                lambda store, name: store.col_info(name),
                lambda store, name: store.delete_col(name),
                lambda store, _: store.list_cols(),
                lambda store, _: store.reset(),
                lambda *_: client.ping(),
            ]
            for use in uses:
                with pytest.raises(StoreUnavailable) as caught:
                    await use(client, name)
                assert not isinstance(caught.value, CollectionMissing)
            server.start()
            await client.ping()
            assert await ids_found(client, name) == [A]
            await client.insert(name, [record(B)])
            assert len(await ids_found(client, name)) == 2


async def test_no_file_of_a_server_has_an_entity_id(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    name, folder = f"memories-{uuid4().hex}", tmp_path_factory.mktemp("chroma")
    with ChromaServer(folder) as server:
        async with connected(server.url) as client:
            await client.create_col(name, dimensions=3, embedder=EMBEDDER)
            ids: dict[str, Any] = {each: f"{each}-of-vera" for each in ENTITY_IDS}
            await client.insert(name, [record(A, **ids)])
            assert await ids_found(client, name, **ids) == [A]
            await client.delete(name, [A])
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if b"of-vera" in file.read_bytes()]


async def test_a_collection_of_an_earlier_release_keeps_its_ids_and_is_searched(
    chroma: ChromaServer,
) -> None:
    """It has no mark in its metadata."""
    name = f"memories-{uuid4().hex}"
    collections = f"{chroma.url}{ROOT}"
    async with httpx.AsyncClient() as http, connected(chroma.url) as client:
        made = await http.post(
            collections,
            json={
                "name": name,
                "metadata": {"embedder": EMBEDDER, "dimensions": 3},
                "configuration": {"hnsw": {"space": "cosine"}},
            },
        )
        stored = {"project_id": "p", "user_id": "maya", "owner": "p/maya", "version": 1}
        rows = {"ids": [str(A)], "embeddings": [[1.0, 0.0, 0.0]], "metadatas": [stored]}
        answer = await http.post(f"{collections}/{made.json()['id']}/upsert", json=rows)
        assert answer.is_success, answer.text
        await client.create_col(name, dimensions=3, embedder=EMBEDDER)
        await client.insert(name, [record(B, NORTH, project_id="p", run_id="r")])
        assert await ids_found(client, name, project_id="p", user_id="maya") == [A, B]
        assert await ids_found(client, name, user_id="maya", run_id="r") == [B]
        [old] = await client.get(name, [A])
        assert dict(old.payload) == {"project_id": "p", "user_id": "maya", "version": 1}
        await client.delete_col(name)


async def test_a_server_that_never_was_is_unavailable() -> None:
    async with connected("http://127.0.0.1:9") as client:
        with pytest.raises(StoreUnavailable, match="Chroma does not answer"):
            await client.ping()


# ── pgvector only: the graph, and servers that do not fit ────────────────────────────────────────


async def test_beyond_what_is_compared_exactly_the_graph_finds_the_same(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"memories-{uuid4().hex}"
    turn = Random(7)
    spread = [as_vector([turn.gauss(0, 1) for _ in range(24)]) for _ in range(600)]
    owners = ("maya", "jon", "jon", "jon", "jon")
    async with on_postgres(postgres.url) as store:
        await store.create_col(name, dimensions=24, embedder=EMBEDDER)
        await store.insert(
            name,
            [
                VectorRecord(UUID(int=n), vector, {"project_id": "p", "user_id": owners[n % 5]})
                for n, vector in enumerate(spread)
            ],
        )
        for where in ({}, {"project_id": "p"}, {"project_id": "p", "user_id": "maya"}):
            [exact] = await store.search(name, [spread[0]], limit=60, where=where)
            monkeypatch.setattr(vectors_pgvector, "MOST_EXACT", 10)
            [walked] = await store.search(name, [spread[0]], limit=60, where=where)
            monkeypatch.undo()
            assert len(walked) == len(exact) == 60
            shared = {hit.id for hit in exact} & {hit.id for hit in walked}
            assert len(shared) >= 57
            assert [hit.similarity for hit in walked] == sorted(
                (hit.similarity for hit in walked), reverse=True
            )
        await store.delete_col(name)


APART = "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = to_regclass(:name)"


@pytest.mark.parametrize(("dimensions", "apart"), [(1_536, False), (3_072, True)])
async def test_vectors_are_stored_in_their_rows_if_a_page_has_room(
    postgres: Postgres, dimensions: int, apart: bool
) -> None:
    name = f"memories-{uuid4().hex}"
    turn = Random(7)
    vector = as_vector([turn.gauss(0, 1) for _ in range(dimensions)])
    async with on_postgres(postgres.url) as store:
        for _ in range(2):
            await store.create_col(name, dimensions=dimensions, embedder=EMBEDDER)
        await store.insert(name, [record(A, vector)])
        engine = connect(postgres.url, pool_size=1)
        async with engine.connect() as connection:
            table = {"name": vectors_pgvector._table(name)}
            assert bool(await connection.scalar(text(APART), table)) is apart
        await engine.dispose()
        [[hit]] = await store.search(name, [vector], limit=5, where={"user_id": "maya"})
        assert hit.similarity == pytest.approx(1.0)
        await store.delete_col(name)


@pytest.mark.parametrize("shape", ["positive", "sparse", "long"])
async def test_the_graph_finds_the_nearest_of_vectors_of_every_shape(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """Signs alone would tell nothing of numbers that are all positive, and little of zeros."""
    name = f"memories-{uuid4().hex}"
    turn = Random(7)
    dimensions = 4_100 if shape == "long" else 64

    def number() -> float:
        match shape:
            case "positive":
                return 1 + turn.random()
            case "sparse":
                return turn.random() if turn.random() < 0.1 else 0.0
            case _:
                return turn.gauss(0, 1)

    spread = [as_vector([number() for _ in range(dimensions)]) for _ in range(400)]
    monkeypatch.setattr(vectors_pgvector, "NARROWEST", 100)
    async with on_postgres(postgres.url) as store:
        await store.create_col(name, dimensions=dimensions, embedder=EMBEDDER)
        await store.insert(
            name,
            [VectorRecord(UUID(int=n), of, {"user_id": "maya"}) for n, of in enumerate(spread)],
        )
        shared = 0
        for query in spread[:10]:
            [exact] = await store.search(name, [query], limit=10, where={"user_id": "maya"})
            [walked] = await store.search(name, [query], limit=10, where={})
            assert len(walked) == 10
            shared += len({hit.id for hit in exact} & {hit.id for hit in walked})
        assert shared >= 90
        await store.delete_col(name)


EARLIER = """
ALTER TABLE {table} DROP COLUMN signs;
CREATE INDEX {index}_near ON {table} USING hnsw (CAST(embedding AS halfvec(3)) halfvec_cosine_ops)
"""


async def test_a_table_of_an_earlier_release_is_searched_by_its_graph_and_written_after_create(
    postgres: Postgres,
) -> None:
    name = f"memories-{uuid4().hex}"
    async with on_postgres(postgres.url) as store:
        await store.create_col(name, dimensions=3, embedder=EMBEDDER)
        await store.insert(name, [record(A, EAST), record(B, NORTH)])
        engine = connect(postgres.url, pool_size=1)
        async with engine.begin() as connection:
            table, index = vectors_pgvector._table(name), vectors_pgvector._digest(name)
            for earlier in EARLIER.format(table=table, index=index).split(";"):
                await connection.execute(text(earlier))
        await engine.dispose()
        assert await ids_found(store, name) == [A, B]
        with pytest.raises(CollectionMissing):
            await store.insert(name, [record(C, NORTH_EAST)])
        await store.create_col(name, dimensions=3, embedder=EMBEDDER)
        await store.insert(name, [record(C, NORTH_EAST)])
        assert await ids_found(store, name) == [A, C, B]
        assert await ids_found(store, name, user_id="maya") == [A, C, B]
        await store.delete_col(name)


async def test_a_postgresql_that_is_gone_is_unavailable() -> None:
    async with on_postgres("postgresql://memlane@127.0.0.1:9/memlane") as store:
        for use in USES.values():
            with pytest.raises(StoreUnavailable, match="PostgreSQL does not answer") as caught:
                await use(store, "memories")
            assert not isinstance(caught.value, CollectionMissing)


# ── Qdrant only ──────────────────────────────────────────────────────────────────────────────────


async def test_qdrant_gets_the_key_and_the_fields_to_index() -> None:
    server = QdrantServer(api_key="secret")
    stranger = Qdrant("http://qdrant", transport=server)
    with pytest.raises(StoreUnavailable, match="401"):
        await stranger.ping()
    client = Qdrant("http://qdrant", api_key="secret", transport=server)
    await client.create_col("memories", dimensions=3, embedder=EMBEDDER)
    assert server.indexed["memories"] == set(INDEXED)
    server.down = True
    with pytest.raises(StoreUnavailable, match="Qdrant does not answer"):
        await client.ping()
