"""Routes that need no ledger: documentation pages, the OpenAPI description, and CORS."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import jsonschema
import pytest
from pydantic import ValidationError
from starlette.requests import Request

from api.app import MemlaneApp, create_app
from api.http.paging import PageRange
from api.http.shared_responses import PageJson
from api.pages import FILES
from pipeline.settings import Settings
from tests.support.described import description, fault_of, operation_of

# The answer of this route has the schema that the client has sent, so it is not described.
FREE = {"POST /v1/exports/get/"}
# Responses that are not JSON.
TEXTS = {"GET /v1/event/{event_id}/stream/", "GET /metrics", "GET /v1/transfer/export/"}


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(Settings(**settings)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://memlane") as client:
        yield client


# ── pages ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", FILES)
async def test_pages_and_their_files_come_from_here(path: str) -> None:
    async with serving() as client:
        answer = await client.get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith(FILES[path][2])
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "http" not in policy


async def test_the_description_is_built_once_and_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = []

    def describe(_: MemlaneApp) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return {}

    monkeypatch.setattr(MemlaneApp, "openapi", describe)
    async with serving() as client:
        await asyncio.gather(*(client.get("/openapi.json") for _ in range(5)))
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
async def test_a_page_names_files_of_this_server_only(path: str) -> None:
    async with serving() as client:
        html = (await client.get(path)).text
        named = re.findall(r'(?:src|href|spec-url)="([^"]+)"', html)
        assert named
        for name in named:
            if name != "data:,":
                assert "//" not in name
                assert (await client.get(f"/{name}")).status_code == 200
    assert "<script>" not in html


async def test_the_documentation_can_be_switched_off() -> None:
    async with serving(docs="off") as client:
        for path in (*FILES, "/openapi.json"):
            assert (await client.get(path)).status_code == 404
        assert (await client.get("/healthz")).status_code == 200


# ── the OpenAPI description ──────────────────────────────────────────────────────────────────────


async def test_the_description_has_the_errors_there_are_and_no_422() -> None:
    async with serving() as client:
        made = (await client.get("/openapi.json")).json()
    add = made["paths"]["/v3/memories/add/"]["post"]["responses"]
    assert set(add) == {"200", "400", "401", "403", "404", "409", "413", "429", "503"}
    assert add["429"]["headers"]["Retry-After"]
    ping = made["paths"]["/v1/ping/"]["get"]["responses"]
    assert set(ping) == {"200", "400", "401", "403", "404", "429", "503"}
    assert set(made["paths"]["/healthz"]["get"]["responses"]) == {"200"}
    assert "ValidationError" not in str(made)
    assert made["servers"] == [{"url": "/"}]


async def test_every_route_is_described_with_its_answer_and_its_errors() -> None:
    async with serving() as client:
        made = (await client.get("/openapi.json")).json()
    schemas = made["components"]["schemas"]
    undescribed = []
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            name = f"{method.upper()} {path}"
            for status, response in operation["responses"].items():
                [content] = response["content"].values()
                schema = content["schema"]
                if status >= "400":
                    assert schema == {"$ref": "#/components/schemas/Error"}
                elif not schema.keys() & {"$ref", "properties", "items", "anyOf"}:
                    undescribed.append(name)
    assert set(undescribed) == FREE | TEXTS
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(made)))
    assert named <= set(schemas)
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_response_type_has_a_name_of_its_own() -> None:
    names = description()["components"]["schemas"]
    assert {"Memory", "MemoryRow", "MemoryPage", "Hit", "Event", "KeyResults"} <= set(names)
    assert not [name for name in names if "__" in name or name.endswith("Json")]


def test_an_answer_that_is_not_as_described_is_found() -> None:
    operation = operation_of("POST", "/v3/memories/search")
    assert operation == "POST /v3/memories/search/"
    body = {"results": [], "relations": [], "degraded": False, "incomplete": False}
    body |= {"degraded_parts": [], "pending": 0, "reranked": False}
    assert fault_of(operation, body) is None
    assert fault_of(operation, body | {"pending": "0"}) is not None
    assert fault_of(operation, body | {"degraded_parts": ["speed"]}) is not None
    assert fault_of(operation, body | {"results": [{"id": "7"}]}) is not None


def test_the_examples_are_as_described() -> None:
    examples = {
        f"{method.upper()} {path}": operation["responses"]["200"]["content"]["application/json"]
        for path, operations in description()["paths"].items()
        for method, operation in operations.items()
        if "example" in str(operation["responses"].get("200"))
    }
    shown = {name: answer["example"] for name, answer in examples.items() if "example" in answer}
    assert {"POST /v3/memories/add/", "GET /v1/event/{event_id}/"} <= set(shown)
    assert len(shown) == 6
    for operation, example in shown.items():
        assert fault_of(operation, example) is None


async def test_the_description_names_the_public_url() -> None:
    async with serving(public_url="https://memory.example.com") as client:
        made = (await client.get("/openapi.json")).json()
    assert made["servers"] == [{"url": "https://memory.example.com"}]


# ── CORS ─────────────────────────────────────────────────────────────────────────────────────────

PAGE = "https://chat.example.com"
PREFLIGHT = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,mem0-user-id",
    "Access-Control-Request-Private-Network": "true",
}


async def test_no_origin_is_allowed_by_default() -> None:
    async with serving() as client:
        preflight = await client.options("/v3/memories/add/", headers=PREFLIGHT)
        answer = await client.get("/healthz", headers={"Origin": PAGE})
    assert preflight.status_code == 405
    for response in (preflight, answer):
        assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("origins", "allowed"),
    [(f"chrome-extension://abc, {PAGE}", PAGE), ("*", "*")],
    ids=["listed", "all"],
)
async def test_a_listed_origin_may_ask_with_any_header(origins: str, allowed: str) -> None:
    async with serving(cors_origins=origins) as client:
        preflight = await client.options("/v3/memories/add/", headers=PREFLIGHT)
        answer = await client.get("/v9/nothing", headers={"Origin": PAGE})
    assert preflight.status_code == 200
    assert preflight.headers["Access-Control-Allow-Origin"] == allowed
    assert preflight.headers["Access-Control-Allow-Private-Network"] == "true"
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    assert "mem0-user-id" in preflight.headers["Access-Control-Allow-Headers"]
    assert answer.status_code == 404
    assert answer.headers["Access-Control-Allow-Origin"] == allowed
    assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in answer.headers


async def test_another_origin_is_refused() -> None:
    async with serving(cors_origins="https://other.example.com") as client:
        preflight = await client.options("/v3/memories/add/", headers=PREFLIGHT)
        answer = await client.get("/healthz", headers={"Origin": PAGE})
    assert preflight.status_code == 400
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("origins", ["chat.example.com", f"{PAGE}/", "https://a b"])
def test_what_is_no_origin_is_refused_at_start(origins: str) -> None:
    with pytest.raises(ValidationError, match="is no origin"):
        Settings(cors_origins=origins)


# ── links to other pages ─────────────────────────────────────────────────────────────────────────


def listed(public_url: str | None) -> PageJson[Any]:
    settings = Settings(public_url=public_url)
    app = SimpleNamespace(state=SimpleNamespace(api=SimpleNamespace(settings=settings)))
    request = Request(
        {
            "type": "http",
            "app": app,
            "scheme": "http",
            "server": ("127.0.0.1", 8000),
            "path": "/v3/memories/",
            "query_string": b"page=2&page_size=2",
            "headers": [(b"host", b"evil.example")],
        }
    )
    return PageRange(2, 2).envelope([], 9, request)


def test_links_start_with_the_public_url_whatever_the_host_header_says() -> None:
    page = listed("https://memory.example.com/api/")
    link = "https://memory.example.com/api/v3/memories/?page_size=2&page={}"
    assert (page["next"], page["previous"]) == (link.format(3), link.format(1))


def test_links_name_the_host_of_the_request_without_a_public_url() -> None:
    assert listed(None)["next"] == "http://evil.example/v3/memories/?page_size=2&page=3"
