"""Shapes as older Mem0 clients and the documented API expect them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pipeline.ledger import Ledger
from tests.integration.test_api import ADD, LIVES, MAYA, Service, serving

MEMORIES = "/v1/memories/"


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as running:
        yield running


async def texts(service: Service, **query: Any) -> set[str]:
    answer = await service.client.get(MEMORIES, params=query)
    assert answer.status_code == 200, answer.text
    return {row["memory"] for row in answer.json()}


async def three(service: Service) -> None:
    await service.add("I like tea.", metadata={"trip": "lisbon", "n": 1})
    await service.add("I like rum.", metadata={"trip": "oslo", "n": "1"})
    await service.add("I live in Bern.", metadata={"trip": "lisbon", "n": 2})


async def test_a_list_is_narrowed_by_metadata_in_the_deep_object_style(service: Service) -> None:
    await three(service)
    lisbon = await texts(service, **MAYA, **{"metadata[trip]": "lisbon"})
    assert lisbon == {"User likes tea", "User lives in Bern"}
    both = {"metadata[trip]": "lisbon", "metadata[n]": "2"}
    assert await texts(service, **MAYA, **both) == {"User lives in Bern"}
    either_type = await texts(service, **MAYA, **{"metadata[n]": "1"})
    assert either_type == {"User likes tea", "User likes rum"}


async def test_a_delete_is_narrowed_by_metadata_in_the_deep_object_style(service: Service) -> None:
    await three(service)
    query = MAYA | {"metadata[trip]": "lisbon"}
    answer = await service.client.delete(MEMORIES, params=query)
    assert answer.status_code == 200, answer.text
    assert await texts(service, **MAYA) == {"User likes rum"}


@pytest.mark.parametrize("query", [{}, {"limit": "5"}, {"metadata[trip]": "lisbon"}])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_no_list_and_no_delete_without_an_id(
    method: str, query: dict[str, str], service: Service
) -> None:
    await three(service)
    answer = await service.client.request(method, MEMORIES, params=query)
    assert answer.status_code == 400, answer.text
    assert len(await texts(service, **MAYA)) == 3


async def test_a_bad_request_carries_its_reason_as_details_too(service: Service) -> None:
    for path, body in ((ADD, {"messages": "x"}), (MEMORIES, LIVES | {"user_id": "*"})):
        answer = await service.client.post(path, json=body)
        assert answer.status_code == 400
        assert answer.json()["details"] == {"message": answer.json()["error"]}
    missing = await service.client.get(f"/v1/event/{'0' * 32}/")
    assert (missing.status_code, "details" in missing.json()) == (404, False)
