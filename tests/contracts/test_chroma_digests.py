"""Records of Chroma's collections of digests that a process of the release before wrote."""

from __future__ import annotations

from uuid import uuid4

import httpx

from deploy.stack.servers import Chroma as ChromaServer
from pipeline.adapters.vectors_chroma import ROOT
from tests.contracts.test_vector_store import EMBEDDER, A, connected, ids_found, record


async def test_a_record_with_its_ids_differs_in_a_collection_of_digests(
    chroma: ChromaServer,
) -> None:
    """A process of the release before wrote it during a rolling upgrade."""
    name = f"memories-{uuid4().hex}"
    collections = f"{chroma.url}{ROOT}"
    async with httpx.AsyncClient() as http, connected(chroma.url) as client:
        await client.create_col(name, dimensions=3, embedder=EMBEDDER)
        made = await http.get(f"{collections}/{name}")
        stored = {"project_id": "p", "user_id": "maya", "owner": "p/maya", "version": 1}
        rows = {"ids": [str(A)], "embeddings": [[1.0, 0.0, 0.0]], "metadatas": [stored]}
        answer = await http.post(f"{collections}/{made.json()['id']}/upsert", json=rows)
        assert answer.is_success, answer.text
        row = record(A, project_id="p")
        assert await client.differing(name, [row]) == [A]
        await client.insert(name, [row])
        assert await client.differing(name, [row]) == []
        assert await ids_found(client, name, project_id="p", user_id="maya") == [A]
        await client.delete_col(name)
