"""`make up` with a setting that cannot work: an error names the setting within seconds."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from deploy.stack import ports
from deploy.stack.check import call_llm, check
from deploy.stack.journal import Report
from deploy.stack.servers import Chroma, Postgres, Redis
from pipeline.adapters.litellm_check import has_provider, missing_keys
from pipeline.model_settings import LLMSettings, ModelSettings
from pipeline.settings import Settings
from tests.support.llm_server import LLMServer

UNREACHABLE = f"127.0.0.1:{ports.choose()}"

REFUSED = {
    "database": (
        {"database_url": SecretStr(f"postgresql://me:a-secret@{UNREACHABLE}/db")},
        f"MEMLANE_DATABASE_URL ({UNREACHABLE}): ",
    ),
    "no database URL": ({"database_url": SecretStr("nonsense")}, "MEMLANE_DATABASE_URL: "),
    "broker": (
        {"broker_url": SecretStr(f"redis://:a-secret@{UNREACHABLE}/0")},
        f"MEMLANE_BROKER_URL ({UNREACHABLE}): ",
    ),
    "no broker URL": ({"broker_url": SecretStr("nonsense://x")}, "MEMLANE_BROKER_URL"),
    "chroma": ({"chroma_url": f"http://{UNREACHABLE}"}, f"MEMLANE_CHROMA_URL ({UNREACHABLE}): "),
    "qdrant": (
        {"vectors": "qdrant", "qdrant_url": f"http://{UNREACHABLE}"},
        f"MEMLANE_QDRANT_URL ({UNREACHABLE}): ",
    ),
    "provider": (
        {"llm": LLMSettings(model="bogus/none")},
        "MEMLANE_LLM__MODEL=bogus/none: LiteLLM knows no such provider.",
    ),
    "provider of the embedder": (
        {"embedder": ModelSettings(model="bogus/none", api_base=f"http://{UNREACHABLE}/v1")},
        "MEMLANE_EMBEDDER__MODEL=bogus/none: LiteLLM knows no such provider.",
    ),
}


@pytest.mark.parametrize(("given", "named"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_setting_that_cannot_work_is_refused_by_name(
    given: dict[str, object], named: str
) -> None:
    report = await check(Settings().model_copy(update=given))
    (text,) = report.refused
    assert text.startswith(named)
    assert text != named
    assert "a-secret" not in text
    assert report.warnings == []


WARNED = {
    "no key": (LLMSettings(model="openai/gpt-4o-mini"), "OPENAI_API_KEY"),
    "down": (
        LLMSettings(model="openai/any", api_base=f"http://{UNREACHABLE}/v1"),
        f"MEMLANE_LLM__API_BASE ({UNREACHABLE}): ",
    ),
    "no key of a fallback": (
        LLMSettings(model="local/rules", fallbacks=(ModelSettings(model="openai/gpt-4o-mini"),)),
        "MEMLANE_LLM__FALLBACKS=openai/gpt-4o-mini: no key.",
    ),
}


@pytest.mark.parametrize(("model", "named"), WARNED.values(), ids=WARNED.keys())
async def test_a_model_that_may_come_back_is_a_warning(
    model: LLMSettings, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    report = await check(Settings().model_copy(update={"llm": model}))
    assert report.refused == []
    (text,) = report.warnings
    assert named in text


async def test_an_embedder_that_does_not_answer_is_a_warning() -> None:
    embedder = ModelSettings(model="openai/any", api_base=f"http://{UNREACHABLE}/v1")
    report = await check(Settings().model_copy(update={"embedder": embedder}))
    assert report.refused == []
    (text,) = report.warnings
    assert text.startswith(f"MEMLANE_EMBEDDER__API_BASE ({UNREACHABLE}): ")


@pytest.mark.parametrize(
    ("status", "refused"), [(HTTPStatus.SERVICE_UNAVAILABLE, 0), (HTTPStatus.UNAUTHORIZED, 1)]
)
async def test_an_embedder_is_refused_only_for_what_no_time_mends(
    status: HTTPStatus, refused: int
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        embedder = ModelSettings(model="openai/any", api_base=str(server.make_url("/v1")))
        report = await check(Settings().model_copy(update={"embedder": embedder}))
    assert (len(report.refused), len(report.warnings)) == (refused, 1 - refused)


async def test_servers_that_answer_are_accepted(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres, Redis(tmp_path) as redis, Chroma(tmp_path) as chroma:
        configured = Settings().model_copy(
            update={
                "database_url": SecretStr(postgres.url),
                "broker_url": SecretStr(redis.url),
                "chroma_url": chroma.url,
            }
        )
        report = await check(configured)
    assert (report.refused, report.warnings) == ([], [])


def test_litellm_knows_providers_and_the_keys_they_want(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert has_provider("anthropic/claude-3-haiku", None)
    assert not has_provider("bogus/none", None)
    assert missing_keys("anthropic/claude-3-haiku") == ["ANTHROPIC_API_KEY"]


async def test_the_doctor_refuses_a_model_of_openai_without_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    model = LLMSettings(model="openai/gpt-4o-mini")
    report = await call_llm(Settings().model_copy(update={"llm": model}))
    (line,) = report.refused
    assert line.startswith(
        "MEMLANE_LLM__MODEL=openai/gpt-4o-mini: no key. Set MEMLANE_LLM__API_KEY"
    )


async def test_the_doctor_finds_a_wrong_key_by_one_call_and_names_its_setting() -> None:
    async with LLMServer() as server:
        model = LLMSettings(
            model="openai/gpt", api_base=server.base_url, api_key=SecretStr("sk-wrong-key-123")
        )
        configured = Settings().model_copy(update={"llm": model})
        assert await call_llm(configured) == Report()
        assert server.calls[0].max_tokens == 1
        server.on("any", "401", text="Incorrect API key provided: sk-wrong-key-123")
        (line,) = (await call_llm(configured)).refused
    assert line == (
        "MEMLANE_LLM__MODEL=openai/gpt: HTTP 401, “Incorrect API key provided: …”."
        " Check MEMLANE_LLM__API_KEY."
    )
