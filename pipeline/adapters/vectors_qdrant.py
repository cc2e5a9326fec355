"""The VectorStore port over Qdrant's REST API, 1.16 or newer; older servers store no metadata.

Written to Qdrant's OpenAPI description and tested against a fake server that validates requests
with it, not against a real server.
Source: Qdrant's OpenAPI description, 1.16 to 1.19.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import httpx
import orjson

from pipeline.domain.errors import CollectionMissing, InvalidInput, StoreUnavailable
from pipeline.domain.vectors import Vector, as_vector, wider
from pipeline.ports import CollectionInfo, VectorHit, VectorRecord

# Inside the class the method `list` hides the built-in type.
Records = list[VectorRecord]
Names = list[str]
Ids = list[UUID]
Hits = list[list[VectorHit]]

TIMEOUT_S = 20.0
# See VectorStore.reach. Not measured: the values of Chroma.
REACH, RECORDS = 400, 45_000
# Payload keys with an index. `is_tenant` stores the records of one value next to each other.
INDEXED: Mapping[str, object] = {
    "user_id": {"type": "keyword", "is_tenant": True},
    "lane_id": {"type": "keyword"},
    "project_id": {"type": "keyword"},
    "agent_id": {"type": "keyword"},
    "run_id": {"type": "keyword"},
}
WHOLE = {"with_payload": True, "with_vector": True}


class Qdrant:
    """The VectorStore port on a Qdrant server."""

    name = "qdrant"

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`api_key`: key of the server, or None. `transport`: replaces the network in tests."""
        self._http = httpx.AsyncClient(
            base_url=url,
            timeout=timeout_s,
            headers={"api-key": api_key} if api_key else {},
            transport=transport,
        )

    async def close(self) -> None:
        await self._http.aclose()

    def reach(self, records: int) -> int:
        return wider(REACH, records, than=RECORDS)

    async def ping(self) -> None:
        await self._request("GET", "/collections")

    async def create_col(self, name: str, *, dimensions: int, embedder: str) -> None:
        if (known := await self.col_info(name)) is None:
            await self._create(name, dimensions, embedder)
        elif known.embedder != embedder:
            raise InvalidInput(
                f"Collection {name} holds vectors of {known.embedder}, not of {embedder}: "
                "vectors of two models cannot be compared."
            )

    async def insert(self, name: str, records: Sequence[VectorRecord]) -> None:
        if records:
            points = [
                {"id": str(record.id), "vector": record.vector.tolist(), "payload": record.payload}
                for record in records
            ]
            await self._request("PUT", f"{_of(name)}/points?wait=true", {"points": points})

    async def search(
        self, name: str, vectors: Sequence[Vector], *, limit: int, where: Mapping[str, str | int]
    ) -> Hits:
        alike = {"limit": limit, "with_payload": False, **_filter(where)}
        body = {"searches": [{"query": vector.tolist(), **alike} for vector in vectors]}
        answers = await self._request("POST", f"{_of(name)}/points/query/batch", body)
        return [
            [VectorHit(UUID(p["id"]), p["score"]) for p in answer["points"]] for answer in answers
        ]

    async def update(self, name: str, records: Sequence[VectorRecord]) -> None:
        await self.insert(name, records)

    async def delete(self, name: str, ids: Sequence[UUID]) -> None:
        if ids:
            gone = {"points": [str(key) for key in ids]}
            await self._request("POST", f"{_of(name)}/points/delete?wait=true", gone)

    async def get(self, name: str, ids: Sequence[UUID]) -> Records:
        body = {"ids": [str(key) for key in ids], **WHOLE}
        return _records(await self._request("POST", f"{_of(name)}/points", body))

    async def differing(self, name: str, records: Sequence[VectorRecord]) -> Ids:
        stored = {row.id: row.payload for row in await self.get(name, [row.id for row in records])}
        return [row.id for row in records if stored.get(row.id) != row.payload]

    async def list(self, name: str, *, where: Mapping[str, str | int], limit: int) -> Records:
        body = {"limit": limit, **WHOLE, **_filter(where)}
        answer = await self._request("POST", f"{_of(name)}/points/scroll", body)
        return _records(answer["points"])

    async def list_cols(self) -> Names:
        answer = await self._request("GET", "/collections")
        return [collection["name"] for collection in answer["collections"]]

    async def delete_col(self, name: str) -> None:
        try:
            await self._request("DELETE", _of(name))
        except CollectionMissing:
            return

    async def col_info(self, name: str) -> CollectionInfo | None:
        try:
            collection = await self._request("GET", _of(name))
            counted = await self._request("POST", f"{_of(name)}/points/count", {"exact": True})
        except CollectionMissing:
            return None
        config = collection["config"]
        embedder = (config.get("metadata") or {}).get("embedder", "")
        return CollectionInfo(name, counted["count"], config["params"]["vectors"]["size"], embedder)

    async def reset(self) -> None:
        for name in await self.list_cols():
            await self.delete_col(name)

    async def _create(self, name: str, dimensions: int, embedder: str) -> None:
        """Create the collection and the indexes of its payload."""
        made = {
            "vectors": {"size": dimensions, "distance": "Cosine"},
            "metadata": {"embedder": embedder},
        }
        # 409: another process has just created it.
        await self._request("PUT", _of(name), made, fine=httpx.codes.CONFLICT)
        for field, schema in INDEXED.items():
            index = {"field_name": field, "field_schema": schema}
            await self._request("PUT", f"{_of(name)}/index?wait=true", index)

    async def _request(
        self, method: str, path: str, body: object = None, *, fine: int | None = None
    ) -> Any:
        """Send a request and return the response's `result`. The status `fine` is not an error.

        Errors: CollectionMissing for 404, StoreUnavailable.
        """
        content = None if body is None else orjson.dumps(body, default=dict)
        json = {"content-type": "application/json"}
        try:
            response = await self._http.request(method, path, content=content, headers=json)
        except httpx.HTTPError as error:
            raise StoreUnavailable(f"Qdrant does not answer: {type(error).__name__}") from error
        if response.status_code == httpx.codes.NOT_FOUND:
            raise CollectionMissing("Qdrant knows no such collection.")
        if response.is_error and response.status_code != fine:
            raise StoreUnavailable(f"Qdrant answered {response.status_code}.")
        try:
            return orjson.loads(response.content).get("result")
        except (orjson.JSONDecodeError, AttributeError) as error:  # such as a proxy's page
            raise StoreUnavailable("Qdrant's answer is not a JSON object.") from error


def _of(name: str) -> str:
    return f"/collections/{name}"


def _filter(equal: Mapping[str, str | int]) -> dict[str, Any]:
    """Qdrant's filter: all conditions must match; without conditions no filter."""
    must = [{"key": key, "match": {"value": value}} for key, value in sorted(equal.items())]
    return {"filter": {"must": must}} if must else {}


def _records(points: Sequence[Mapping[str, Any]]) -> Records:
    return [VectorRecord(UUID(p["id"]), as_vector(p["vector"]), p["payload"]) for p in points]
