"""Contract of CompactableStore: in memory, and a real Chroma server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from deploy.stack.servers import Chroma as ChromaServer
from pipeline.domain.errors import CollectionMissing
from pipeline.ports import CollectionInfo, CompactableStore
from tests.contracts.test_vector_store import (
    EAST,
    EMBEDDER,
    NORTH,
    NORTH_EAST,
    WEST,
    A,
    B,
    C,
    D,
    connected,
    ids_found,
    record,
)
from tests.support.vectors_memory import InMemoryVectors


@pytest.fixture(params=["memory", "chroma"])
async def compactable(request: pytest.FixtureRequest) -> AsyncIterator[CompactableStore]:
    if request.param == "memory":
        yield InMemoryVectors()
        return
    async with connected(request.getfixturevalue("chroma").url) as client:
        yield client
        await client.reset()


async def test_a_mirror_has_the_same_records_and_follows_changes(
    compactable: CompactableStore,
) -> None:
    store, name, copy = compactable, f"memories-{uuid4().hex}", f"memories-{uuid4().hex}"
    await store.create_col(name, dimensions=3, embedder=EMBEDDER)
    await store.insert(name, [record(A, WEST), record(B, NORTH), record(C, EAST)])
    await store.mirror(name, copy)
    assert await ids_found(store, copy, user_id="maya") == [C, B, A]
    await store.insert(name, [record(B, EAST, version=2), record(D, NORTH_EAST)])
    await store.delete(name, [A])
    await store.mirror(name, copy)
    assert set(await ids_found(store, copy, limit=2)) == {B, C}
    assert await ids_found(store, copy) == await ids_found(store, name)
    [changed] = await store.get(copy, [B])
    assert changed.payload["version"] == 2
    assert await store.col_info(copy) == CollectionInfo(copy, 3, 3, EMBEDDER)


async def test_a_collection_is_replaced_by_its_mirror(compactable: CompactableStore) -> None:
    store, name, copy = compactable, f"memories-{uuid4().hex}", f"memories-{uuid4().hex}"
    await store.create_col(name, dimensions=3, embedder=EMBEDDER)
    await store.insert(name, [record(A), record(B)])
    await store.delete(name, [B])
    await store.mirror(name, copy)
    await store.replace(name, copy, former=f"{name}-former")
    assert await store.list_cols() == [name]
    assert await ids_found(store, name, user_id="maya") == [A]
    await store.insert(name, [record(C)])
    assert set(await ids_found(store, name)) == {A, C}


async def test_a_mirror_of_nothing_is_missing(compactable: CompactableStore) -> None:
    with pytest.raises(CollectionMissing):
        await compactable.mirror("memories-none", "memories-copy")
    assert await compactable.list_cols() == []


async def test_another_client_uses_a_replaced_collection(chroma: ChromaServer) -> None:
    name = f"memories-{uuid4().hex}"
    async with connected(chroma.url) as client, connected(chroma.url) as other:
        await client.create_col(name, dimensions=3, embedder=EMBEDDER)
        await client.insert(name, [record(A)])
        assert await ids_found(other, name) == [A]
        await client.mirror(name, f"{name}-copy")
        await client.replace(name, f"{name}-copy", former=f"{name}-former")
        await other.insert(name, [record(B)])
        assert set(await ids_found(client, name)) == {A, B}
        await client.delete_col(name)
