"""A stand-in for Qdrant, in process: the part of its REST API that the adapter uses.

It refuses, with 400, each request that is invalid by Qdrant's OpenAPI description (1.16): unknown
fields, missing fields, wrong types. Its answers have the described form.
"""

from __future__ import annotations

import json
from typing import Any, Literal
from uuid import UUID

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.domain.errors import CollectionMissing
from pipeline.domain.vectors import as_vector
from pipeline.ports import VectorRecord
from tests.support.vectors_memory import InMemoryVectors


class QdrantBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Vectors(QdrantBody):
    size: int = Field(ge=1)
    distance: Literal["Cosine"]


class Create(QdrantBody):
    vectors: Vectors
    metadata: dict[str, Any]


class Keyword(QdrantBody):
    type: Literal["keyword"]
    is_tenant: bool | None = None


class FieldIndex(QdrantBody):
    field_name: str
    field_schema: Keyword


class Point(QdrantBody):
    id: str
    vector: list[float]
    payload: dict[str, str | int]


class Upsert(QdrantBody):
    points: list[Point] = Field(min_length=1)


class Match(QdrantBody):
    value: str | int


class Condition(QdrantBody):
    key: str
    match: Match


class Must(QdrantBody):
    must: list[Condition]

    def equal(self) -> dict[str, str | int]:
        return {condition.key: condition.match.value for condition in self.must}


NOTHING = Must(must=[])


class PointQuery(QdrantBody):
    query: list[float]
    limit: int = Field(ge=1)
    filter: Must = NOTHING
    with_payload: bool


class Queries(QdrantBody):
    searches: list[PointQuery]


class Get(QdrantBody):
    ids: list[str]
    with_payload: bool
    with_vector: bool


class Scroll(QdrantBody):
    limit: int = Field(ge=1)
    filter: Must = NOTHING
    with_payload: bool
    with_vector: bool


class Delete(QdrantBody):
    points: list[str]


class Count(QdrantBody):
    exact: bool


class QdrantServer(httpx.AsyncBaseTransport):
    """Qdrant's REST API in memory. With `down`, connections are refused."""

    def __init__(self, *, api_key: str | None = None) -> None:
        self.down = False
        self.indexed: dict[str, set[str]] = {}
        self._api_key = api_key
        self._held = InMemoryVectors()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            raise httpx.ConnectError("refused", request=request)
        if request.headers.get("api-key") != self._api_key:
            return httpx.Response(401)
        root, *path = request.url.path.strip("/").split("/")
        assert root == "collections"
        try:
            result = await self._answer(request, path, await request.aread() or b"null")
        except CollectionMissing as error:
            return httpx.Response(404, json={"status": {"error": str(error)}})
        except FileExistsError as error:
            return httpx.Response(409, json={"status": {"error": str(error)}})
        except ValidationError as error:
            return httpx.Response(400, json={"status": {"error": str(error)}})
        return httpx.Response(200, json={"time": 0.0, "status": "ok", "result": result})

    async def _answer(self, request: httpx.Request, path: list[str], body: bytes) -> Any:
        if not path:
            return {"collections": [{"name": name} for name in await self._held.list_cols()]}
        name, rest = path[0], "/".join(path[1:])
        if rest:
            # CollectionMissing comes before other errors
            await self._held.list(name, where={}, limit=1)
        match request.method, rest:
            case "PUT", "":
                return await self._create(name, Create.model_validate_json(body))
            case "GET", "":
                return await self._info(name)
            case "DELETE", "":
                gone = await self._held.col_info(name) is not None
                await self._held.delete_col(name)
                return gone
            case "PUT", "index":
                self.indexed.setdefault(name, set()).add(
                    FieldIndex.model_validate_json(body).field_name
                )
                return {"operation_id": 0, "status": "completed"}
        return await self._points(request, name, rest, body)

    async def _create(self, name: str, request: Create) -> bool:
        if await self._held.col_info(name):
            raise FileExistsError(name)
        await self._held.create_col(
            name, dimensions=request.vectors.size, embedder=json.dumps(request.metadata)
        )
        return True

    async def _info(self, name: str) -> dict[str, Any]:
        info = await self._held.col_info(name)
        if info is None:
            raise CollectionMissing(name)
        vectors = {"size": info.dimensions, "distance": "Cosine"}
        config = {"params": {"vectors": vectors}, "metadata": json.loads(info.embedder)}
        return {"status": "green", "points_count": info.count, "config": config}

    async def _points(self, request: httpx.Request, name: str, rest: str, body: bytes) -> Any:
        match request.method, rest:
            case "PUT", "points":
                points = Upsert.model_validate_json(body).points
                await self._held.insert(
                    name, [VectorRecord(UUID(p.id), as_vector(p.vector), p.payload) for p in points]
                )
            case "POST", "points/delete":
                gone = Delete.model_validate_json(body).points
                await self._held.delete(name, [UUID(key) for key in gone])
            case "POST", "points/query/batch":
                searches = Queries.model_validate_json(body).searches
                return [await self._query(name, search) for search in searches]
            case "POST", "points":
                ids = [UUID(key) for key in Get.model_validate_json(body).ids]
                return [_point(record) for record in await self._held.get(name, ids)]
            case "POST", "points/scroll":
                page = Scroll.model_validate_json(body)
                records = await self._held.list(name, where=page.filter.equal(), limit=page.limit)
                return {"points": [_point(record) for record in records], "next_page_offset": None}
            case "POST", "points/count":
                Count.model_validate_json(body)
                return {"count": len(await self._held.list(name, where={}, limit=10**9))}
            case other:
                raise AssertionError(f"Qdrant has no {other}")
        # Without `wait`, the next search may miss the write.
        assert request.url.params.get("wait") == "true"
        return {"operation_id": 0, "status": "completed"}

    async def _query(self, name: str, query: PointQuery) -> dict[str, Any]:
        [hits] = await self._held.search(
            name, [as_vector(query.query)], limit=query.limit, where=query.filter.equal()
        )
        points = [{"id": str(hit.id), "version": 0, "score": hit.similarity} for hit in hits]
        return {"points": points}


def _point(record: VectorRecord) -> dict[str, Any]:
    return {
        "id": str(record.id),
        "payload": dict(record.payload),
        "vector": record.vector.tolist(),
    }
