"""The VectorStore port over ChromaDB's HTTP API (v2), through aiohttp.

`chromadb.AsyncHttpClient` is not used: it has no timeout, raises bare `Exception` for unexpected
responses, and costs each process 1.7 CPU seconds and 50 MB. CPU of one search: 0.24 ms with
aiohttp, 0.64 ms with httpx.

Source: chromadb 1.5.9, api/async_fastapi.py and api/base_http_client.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from http import HTTPStatus
from typing import Any
from uuid import UUID

import aiohttp
import orjson
from asyncpg.pgproto import pgproto

from pipeline.domain.errors import CollectionMissing, InvalidInput, StoreUnavailable
from pipeline.domain.filters import ENTITY_IDS
from pipeline.domain.vectors import Vector, as_vector, pack, wider
from pipeline.ports import CollectionInfo, VectorHit, VectorRecord

# Inside the class the method `list` hides the built-in type.
Records = list[VectorRecord]
Names = list[str]
Ids = list[UUID]
Hits = list[list[VectorHit]]

ROOT = "/api/v2/tenants/default_tenant/databases/default_database/collections"
# Long enough for a write that waits for Chroma's compaction.
TIMEOUT_S = 20.0
PAGE = 1000
# See VectorStore.reach. They find 98 % or more of the ten nearest of 20,000 and of 100,000.
# Source: tests/bench/growth/scope.py.
REACH, RECORDS = 400, 45_000
CONNECTIONS = 8
# Writes of a collection after which Chroma saves its graph, and drops them from the write-ahead
# log. All collections share the log, and a write reads it from the collection's last save on. CPU
# of a record in 64 collections of 250: 1.4 ms; with Chroma's 1,000 it is 2.7 ms, and grows.
# Source: docs/decisions/0039-chroma-keeps-a-short-log.md.
LOGGED = 50
# A list of all records of a collection, without their vectors.
LISTING = aiohttp.ClientTimeout(total=120.0)
# Records in one request of a copy: their vectors come as JSON, which blocks the loop for 10 ms.
COPIED_AT_ONCE = 50
JSON = {"content-type": "application/json"}
# Chroma evaluates each condition of a filter on its own and intersects the results; the condition
# on the project alone matches everything. So project and user also have a combined key.
OWNER = "owner"
OWNED_BY = {"project_id", "user_id"}
# Metadata of a collection that has digests instead of entity ids. Chroma's write-ahead log and
# index files keep parts of deleted records, and a digest names no person. Collections of earlier
# releases have the ids themselves until the next reindex.
IDS, DIGESTS = "entity_ids", "digests"
Payload = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class _Collection:
    """A collection by Chroma's id. `digests`: it has digests instead of entity ids."""

    id: str
    digests: bool

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> _Collection:
        """The collection of Chroma's answer."""
        metadata = answer.get("metadata") or {}
        return cls(answer["id"], metadata.get(IDS) == DIGESTS)

    def stored(self, payload: Payload) -> Payload:
        """The payload as it is stored, with the combined key of project and user."""
        compared = self._compared(payload)
        return {**compared, OWNER: _owner(compared)} if payload.keys() >= OWNED_BY else compared

    def where(self, equal: Payload) -> dict[str, Any] | None:
        """Chroma's filter: a single condition as it is, several in `$and`."""
        compared = self._compared(equal)
        if compared.keys() >= OWNED_BY:
            rest = {key: value for key, value in compared.items() if key not in OWNED_BY}
            compared = {**rest, OWNER: _owner(compared)}
        conditions = [{key: {"$eq": value}} for key, value in sorted(compared.items())]
        if len(conditions) > 1:
            return {"$and": conditions}
        return conditions[0] if conditions else None

    def payload(self, stored: Payload) -> Payload:
        """The payload of a stored one, without what was added, and without digests."""
        hidden = {OWNER, *ENTITY_IDS} if self.digests else {OWNER}
        return {key: value for key, value in stored.items() if key not in hidden}

    def _compared(self, payload: Payload) -> Payload:
        if not self.digests:
            return payload
        return {
            key: digest(key, value) if key in ENTITY_IDS else value
            for key, value in payload.items()
        }


def digest(name: str, value: str | int) -> str:
    """A digest of an entity id, the same for equal ids of the same kind."""
    return blake2b(f"{name}/{value}".encode(), digest_size=16).hexdigest()


class ChromaVectors:
    """The VectorStore port on a Chroma server. Ids of collections are cached."""

    name = "chroma"

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._url = url.rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._collections: dict[str, _Collection] = {}

    @cached_property
    def _http(self) -> aiohttp.ClientSession:
        """HTTP session, created at the first request: it belongs to the running event loop."""
        # More connections are not faster: Chroma is limited by its CPU.
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        return aiohttp.ClientSession(connector=connector, timeout=self._timeout, headers=JSON)

    async def close(self) -> None:
        if "_http" in vars(self):
            await self._http.close()

    def reach(self, records: int) -> int:
        return wider(REACH, records, than=RECORDS)

    async def ping(self) -> None:
        await self._request("GET", "/api/v2/heartbeat")

    async def create_col(self, name: str, *, dimensions: int, embedder: str) -> None:
        metadata = {"embedder": embedder, "dimensions": dimensions, IDS: DIGESTS}
        collection = await self._create(name, metadata)
        built_with = (collection.get("metadata") or {}).get("embedder", embedder)
        if built_with != embedder:
            raise InvalidInput(
                f"Collection {name} holds vectors of {built_with}, not of {embedder}: "
                "vectors of two models cannot be compared."
            )
        self._collections[name] = _Collection.of(collection)
        await self._limit_log(collection)

    async def _limit_log(self, collection: Mapping[str, Any]) -> None:
        """Set the number of logged writes of a collection that an earlier release has created.

        A server that has the collection in memory takes it from its next start on.
        """
        current = (collection.get("configuration_json") or {}).get("hnsw") or {}
        if current.get("sync_threshold") != LOGGED:
            change = {"new_configuration": {"hnsw": {"sync_threshold": LOGGED}}}
            await self._request("PUT", f"{ROOT}/{collection['id']}", change)

    async def _create(self, name: str, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create a collection unless it exists. Returns it as Chroma describes it."""
        body = {
            "name": name,
            "get_or_create": True,
            "metadata": metadata,
            "configuration": {"hnsw": {"space": "cosine", "sync_threshold": LOGGED}},
        }
        created: Mapping[str, Any] = await self._request("POST", ROOT, body)
        return created

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        await self._on(
            name,
            "upsert",
            lambda collection: {
                "ids": [str(record.id) for record in records],
                "embeddings": [pack(record.vector) for record in records],
                "metadatas": [collection.stored(record.payload) for record in records],
            },
        )

    async def search(
        self, name: str, vectors: Sequence[Vector], *, limit: int, where: Mapping[str, str | int]
    ) -> Hits:
        body = {"query_embeddings": list(vectors), "n_results": limit, "include": ["distances"]}
        _, answer = await self._on(name, "query", lambda here: body | {"where": here.where(where)})
        return [
            # Chroma's cosine distance is 1 - cosine. asyncpg's UUID type is five times as fast to
            # parse and compare as Python's, and a search has hundreds of ids.
            [VectorHit(pgproto.UUID(key), 1 - far) for key, far in zip(ids, distances, strict=True)]
            for ids, distances in zip(answer["ids"], answer["distances"], strict=True)
        ]

    async def update(self, name: str, records: Sequence[VectorRecord]) -> None:
        await self.insert(name, records)

    async def delete(self, name: str, ids: Sequence[UUID]) -> None:
        if ids:
            await self._on(name, "delete", lambda _: {"ids": [str(key) for key in ids]})

    async def get(self, name: str, ids: Sequence[UUID]) -> Records:
        return await self._get(name, lambda _: {"ids": [str(key) for key in ids]})

    async def differing(self, name: str, records: Sequence[VectorRecord]) -> Ids:
        body = {"ids": [str(row.id) for row in records], "include": ["metadatas"]}
        collection, answer = await self._on(name, "get", lambda _: body)
        stored = dict(zip(answer["ids"], answer["metadatas"], strict=True))
        return [
            row.id for row in records if stored.get(str(row.id)) != collection.stored(row.payload)
        ]

    async def list(self, name: str, *, where: Mapping[str, str | int], limit: int) -> Records:
        return await self._get(
            name, lambda collection: {"where": collection.where(where), "limit": limit}
        )

    async def list_cols(self) -> Names:
        names: Names = []
        while True:
            page = await self._request("GET", f"{ROOT}?limit={PAGE}&offset={len(names)}")
            names += [collection["name"] for collection in page]
            if len(page) < PAGE:
                return names

    async def delete_col(self, name: str) -> None:
        self._collections.pop(name, None)
        try:
            await self._request("DELETE", f"{ROOT}/{name}")
        except CollectionMissing:
            return

    async def col_info(self, name: str) -> CollectionInfo | None:
        try:
            collection = await self._request("GET", f"{ROOT}/{name}")
            count = await self._request("GET", f"{ROOT}/{collection['id']}/count")
        except CollectionMissing:
            return None
        metadata = collection.get("metadata") or {}
        return CollectionInfo(
            name, count, metadata.get("dimensions", 0), metadata.get("embedder", "")
        )

    async def mirror(self, name: str, copy: str) -> None:
        source, here = await self._versions(name)
        await self._create(copy, source["metadata"])
        _, there = await self._versions(copy)
        lacking = [key for key, version in here.items() if there.get(key) != version]
        for start in range(0, len(lacking), COPIED_AT_ONCE):
            await self._copy(name, copy, lacking[start : start + COPIED_AT_ONCE])
        await self.delete(copy, [UUID(key) for key in there.keys() - here.keys()])

    async def replace(self, name: str, copy: str, *, former: str) -> None:
        await self._rename(name, former)
        await self._rename(copy, name)
        await self.delete_col(former)

    async def _versions(self, name: str) -> tuple[Mapping[str, Any], dict[str, int]]:
        """A collection as Chroma describes it, and the versions of its records by id.

        In one request: pages would miss records if others are deleted in between.
        """
        collection = await self._request("GET", f"{ROOT}/{name}")
        path = f"{ROOT}/{collection['id']}/get"
        answer = await self._request("POST", path, {"include": ["metadatas"]}, within=LISTING)
        pairs = zip(answer["ids"], answer["metadatas"], strict=True)
        return collection, {key: metadata.get("version", 0) for key, metadata in pairs}

    async def _copy(self, name: str, copy: str, ids: Sequence[str]) -> None:
        """Copy records as they are stored."""
        include = ["metadatas", "embeddings"]
        _, answer = await self._on(name, "get", lambda _: {"ids": ids, "include": include})
        vectors = [as_vector(vector) for vector in answer["embeddings"]]
        body = {
            "ids": answer["ids"],
            "embeddings": [pack(vector) for vector in vectors],
            "metadatas": answer["metadatas"],
        }
        if vectors:
            await self._on(copy, "upsert", lambda _: body)

    async def _rename(self, name: str, new_name: str) -> None:
        self._collections.pop(name, None)
        collection = await self._request("GET", f"{ROOT}/{name}")
        await self._request("PUT", f"{ROOT}/{collection['id']}", {"new_name": new_name})

    async def reset(self) -> None:
        for name in await self.list_cols():
            await self.delete_col(name)

    async def _get(self, name: str, query: Callable[[_Collection], dict[str, Any]]) -> Records:
        collection, answer = await self._on(
            name, "get", lambda here: query(here) | {"include": ["metadatas", "embeddings"]}
        )
        rows = zip(answer["ids"], answer["embeddings"], answer["metadatas"], strict=True)
        return [
            VectorRecord(UUID(key), as_vector(vector), collection.payload(metadata))
            for key, vector, metadata in rows
        ]

    async def _on(
        self, name: str, operation: str, body: Callable[[_Collection], dict[str, Any]]
    ) -> tuple[_Collection, Any]:
        """Run an operation of a collection, which the API addresses by id.

        If Chroma does not know a cached id, the id is looked up again, because another process may
        have deleted the collection and created it again. Errors: CollectionMissing,
        StoreUnavailable.
        """
        if cached := self._collections.get(name):
            try:
                return cached, await self._operate(cached, operation, body)
            except CollectionMissing:
                self._collections.pop(name, None)
        current = _Collection.of(await self._request("GET", f"{ROOT}/{name}"))
        answer = await self._operate(current, operation, body)
        self._collections[name] = current
        return current, answer

    async def _operate(
        self,
        collection: _Collection,
        operation: str,
        body: Callable[[_Collection], dict[str, Any]],
    ) -> Any:
        path = f"{ROOT}/{collection.id}/{operation}"
        return await self._request("POST", path, body(collection))

    async def _request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        within: aiohttp.ClientTimeout | None = None,
    ) -> Any:
        """Send a request and return the parsed JSON, or None for an empty body.

        `within`: replaces the timeout of the session. Errors: CollectionMissing for 404,
        StoreUnavailable.
        """
        data = None if body is None else orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
        try:
            async with self._http.request(
                method, self._url + path, data=data, timeout=within or self._timeout
            ) as response:
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise StoreUnavailable(f"Chroma does not answer: {type(error).__name__}") from error
        if response.status == HTTPStatus.NOT_FOUND:
            raise CollectionMissing("Chroma knows no such collection.")
        if not response.ok:
            raise StoreUnavailable(f"Chroma answered {response.status}.")
        try:
            return orjson.loads(content) if content else None
        except orjson.JSONDecodeError as error:  # such as a proxy's page with status 200
            raise StoreUnavailable("Chroma's answer is not JSON.") from error


def _owner(ids: Mapping[str, str | int]) -> str:
    return f"{ids['project_id']}/{ids['user_id']}"
