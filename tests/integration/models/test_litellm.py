"""Both chat clients against a test server: transient errors are retried, all others are named.

`Direct` speaks HTTP itself, `LiteLLM` is the real library.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from tenacity import wait_none

from pipeline.adapters.litellm_client import load, translated
from pipeline.adapters.llm_json import MAX_TOKENS, JsonLLM, LimitRefused
from pipeline.adapters.llm_litellm import LiteLLM
from pipeline.adapters.llm_openai import OpenAIChat
from pipeline.adapters.model_table import known_models
from pipeline.adapters.openai_http import OpenAIHttp
from pipeline.adapters.provider_calls import RemoteModel, RetryPolicy, retry_after_s
from pipeline.bootstrap import build_embedder, build_model
from pipeline.domain.errors import (
    MalformedAnswer,
    ModelRejected,
    ModelUnavailable,
    SettingRejected,
)
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Neighbour, Outcome
from pipeline.domain.graph.values import RelationRequest, StoredRelation
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.model_settings import ModelSettings
from pipeline.models.prompted import PromptedModel
from pipeline.ports import ChatTurn, Completion, ExtractionRequest
from tests.support.engine import Engine
from tests.support.llm_server import Do, LLMServer

AT_ONCE = RetryPolicy(wait=wait_none())
SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}
KEY = "sk-very-secret"
TURN = "My name is Ann and I live in Rome."


@pytest.fixture
async def server() -> AsyncIterator[LLMServer]:
    async with LLMServer() as running:
        yield running


Build = Callable[..., JsonLLM]


@pytest.fixture(params=[LiteLLM, OpenAIChat], ids=["litellm", "direct"])
async def build(request: pytest.FixtureRequest) -> AsyncIterator[Build]:
    """Factory of the client under test; closes each client it has built."""
    built: list[JsonLLM] = []

    def build(model: str, **options: Any) -> JsonLLM:
        built.append(request.param(RemoteModel(model, **{"retry": AT_ONCE, **options})))
        return built[-1]

    yield build
    for llm in built:
        await llm.close()


@pytest.fixture
def llm(server: LLMServer, build: Build) -> JsonLLM:
    return build("openai/stand-in", api_base=server.base_url, api_key=KEY)


async def ask(llm: JsonLLM) -> Completion:
    return await llm.complete([ChatTurn("user", TURN)], schema_name="facts", schema=SCHEMA)


def said(content: str = TURN) -> ExtractionRequest:
    at = datetime(2023, 5, 8, tzinfo=UTC)
    return ExtractionRequest([SourcedMessage(Source(0, 0), Message(Role.USER, content), at)])


# ── the conversation, end to end ─────────────────────────────────────────────────────────────────


async def test_facts_are_extracted_decided_and_related(server: LLMServer, llm: JsonLLM):
    model = PromptedModel(llm)
    extracted = await model.extract(said())
    assert any("Rome" in fact.text for fact in extracted.value)
    stored = [Neighbour(UUID(int=1), "User lives in Paris.", 0.8)]
    decided = await model.decide(extracted.value, stored, Instructions())
    assert len(decided.value) == len(extracted.value)
    related = await model.relate(
        RelationRequest(extracted.value, [StoredRelation(UUID(int=2), "User", "lives_in", "Paris")])
    )
    assert all(edge.relation == edge.relation.lower() for edge in related.value.relations)
    assert [server.count(kind) for kind in ("extract", "decide", "relate")] == [1, 1, 1]


async def test_a_repeated_fact_is_a_noop_on_what_was_stored(llm: JsonLLM):
    model = PromptedModel(llm)
    facts = (await model.extract(said())).value
    stored = [Neighbour(UUID(int=n), fact.text, 1.0) for n, fact in enumerate(facts, start=1)]
    decided = (await model.decide(facts, stored, Instructions())).value
    assert [d.outcome for d in decided] == [Outcome.NOOP] * len(facts)
    assert [d.memory_id for d in decided] == [neighbour.memory_id for neighbour in stored]


async def test_usage_is_counted_and_an_unknown_price_is_none(llm: JsonLLM):
    usage = (await ask(llm)).usage
    assert (usage.model, usage.calls, usage.cost_usd) == ("openai/stand-in", 1, None)
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0


async def test_a_known_price_is_returned(server: LLMServer, build: Build):
    llm = build("openai/gpt-4o-mini", api_base=server.base_url)
    usage = (await ask(llm)).usage
    assert usage.cost_usd == pytest.approx(
        usage.prompt_tokens * 0.15e-6 + usage.completion_tokens * 0.6e-6
    )


# ── errors that a retry mends ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("do", ["429", "500", "close"])
async def test_a_passing_fault_is_tried_again(server: LLMServer, llm: JsonLLM, do: Do):
    server.on("any", do, times=2, retry_after_s=0)
    await ask(llm)
    assert len(server.calls) == 3


@pytest.mark.parametrize("do", ["429", "500", "close"])
async def test_three_tries_and_no_more(server: LLMServer, llm: JsonLLM, do: Do):
    server.on("any", do, retry_after_s=0)
    with pytest.raises(ModelUnavailable):
        await ask(llm)
    assert len(server.calls) == 3


async def test_the_wait_a_provider_asks_for_is_kept(server: LLMServer, llm: JsonLLM):
    server.on("any", "429", times=1, retry_after_s=0.2)
    began = asyncio.get_running_loop().time()
    await ask(llm)
    assert asyncio.get_running_loop().time() - began >= 0.2


@pytest.mark.parametrize("wait", [None, 11])
async def test_a_429_without_a_short_wait_is_the_ledgers_to_wait_for(
    server: LLMServer, llm: JsonLLM, wait: float | None
):
    server.on("any", "429", retry_after_s=wait)
    with pytest.raises(ModelUnavailable) as caught:
        await ask(llm)
    assert caught.value.retry_after_s == wait
    assert len(server.calls) == 1


async def test_a_hanging_server_is_given_up(server: LLMServer, build: Build):
    server.on("any", "hang")
    llm = build("openai/x", api_base=server.base_url, timeout_s=0.2)
    with pytest.raises(ModelUnavailable):
        await ask(llm)
    assert len(server.calls) == 3


async def test_no_further_try_begins_after_the_total(server: LLMServer, build: Build):
    server.on("any", "hang")
    once = RetryPolicy(wait=wait_none(), total_s=0.1)
    llm = build("openai/x", api_base=server.base_url, retry=once, timeout_s=0.2)
    with pytest.raises(ModelUnavailable):
        await ask(llm)
    assert len(server.calls) == 1


async def test_an_unreachable_server_is_a_transient_error(build: Build):
    llm = build("openai/x", api_base="http://127.0.0.1:1/v1")
    with pytest.raises(ModelUnavailable):
        await ask(llm)


async def test_the_length_of_an_answer_is_limited_where_the_server_lets_it(
    server: LLMServer, llm: JsonLLM
):
    server.on("any", "refuse_limit")
    assert (await ask(llm)).text
    assert [call.max_tokens for call in server.calls] == [MAX_TOKENS, None]


async def test_a_parameter_that_the_model_does_not_support_is_left_out_from_then_on(
    server: LLMServer, llm: JsonLLM
):
    """As a reasoning model behind a name that LiteLLM does not know, such as a deployment's."""
    server.on("any", "refuse_max_tokens")
    server.on("any", "refuse_temperature")
    assert (await ask(llm)).text
    tried = [(call.max_tokens is not None, call.temperature is not None) for call in server.calls]
    assert tried == [(True, True), (False, True), (False, False)]
    server.calls.clear()
    assert (await ask(llm)).text
    assert [(call.max_tokens, call.temperature) for call in server.calls] == [(None, None)]
    assert server.calls[0].max_completion_tokens == MAX_TOKENS


async def test_an_answer_that_the_provider_withholds_as_broken_is_asked_for_less_strictly(
    server: LLMServer, llm: JsonLLM
):
    """As Groq does. The format stays the first choice: most answers are in it."""
    text = "Failed to generate JSON. Please adjust your prompt. (json_validate_failed)"
    server.on("any", "400", times=1, text=text)
    assert (await ask(llm)).text
    assert (await ask(llm)).text
    assert [call.form for call in server.calls] == ["json_schema", "function", "json_schema"]


async def test_a_prompt_that_repeats_words_about_a_parameter_keeps_it(
    server: LLMServer, llm: JsonLLM
):
    server.on("any", "400", times=2, text="The temperature in Rome is high.")
    with pytest.raises(ModelRejected):
        await ask(llm)
    server.rules.clear()
    await ask(llm)
    assert server.calls[-1].temperature == 0


@pytest.mark.parametrize(
    "text", ["'max_tokens' is too large: 16384", "the maximum context length is 8192 tokens"]
)
def test_a_refused_limit_is_known_by_its_text(text: str):
    error = type("Refusal", (Exception,), {"status_code": 400})(text)
    assert isinstance(translated(error, RemoteModel("openai/x")), LimitRefused)


# ── errors that no retry mends ───────────────────────────────────────────────────────────────────


async def test_a_refused_prompt_is_final(server: LLMServer, llm: JsonLLM):
    server.on("any", "400")
    with pytest.raises(ModelRejected, match="HTTP 400"):
        await ask(llm)
    assert len(server.calls) == (2 if isinstance(llm, OpenAIChat) else 1)  # through LiteLLM too


async def test_a_refused_key_names_its_setting_and_is_not_repeated(server: LLMServer, llm: JsonLLM):
    server.on("any", "401")
    with pytest.raises(SettingRejected, match=r"HTTP 401. Check MEMLANE_LLM__API_KEY."):
        await ask(llm)
    assert len(server.calls) == 1


async def test_a_refused_key_quotes_the_provider_without_the_key(server: LLMServer, llm: JsonLLM):
    text = f"Incorrect API key provided: {KEY}, or sk-ab***yz. See your account."
    server.on("any", "401", text=text)
    with pytest.raises(SettingRejected) as caught:
        await ask(llm)
    assert "“Incorrect API key provided: …, or … See your account”" in str(caught.value)


@pytest.mark.parametrize("do", ["400", "spread"])
async def test_what_the_direct_client_does_not_understand_goes_through_litellm_from_then_on(
    server: LLMServer, build: Build, do: Do
):
    server.on("any", do, times=1)
    llm = build("openai/stand-in", api_base=server.base_url)
    if isinstance(llm, LiteLLM):
        server.rules.clear()
    first = await ask(llm)
    assert first.text.startswith("{")
    assert (await ask(llm)).text == first.text
    agents = [call.headers["user-agent"].partition("/")[0] for call in server.calls]
    direct = isinstance(llm, OpenAIChat)
    assert agents == ["Python", "AsyncOpenAI", "AsyncOpenAI"] if direct else ["AsyncOpenAI"] * 2


async def test_both_clients_tell_the_same_price(server: LLMServer):
    """Also for cached tokens, which cost less."""
    details = {"prompt_tokens_details": {"cached_tokens": 1_000}}
    server.usage = {
        "prompt_tokens": 1_500,
        "completion_tokens": 70,
        "total_tokens": 1_570,
    } | details
    remote = RemoteModel("openai/gpt-4o-mini", api_base=server.base_url, retry=AT_ONCE)
    direct = OpenAIChat(remote)
    paid = [(await ask(llm)).usage for llm in (direct, LiteLLM(remote))]
    await direct.close()
    assert paid[0] == paid[1]
    assert paid[0].cost_usd == pytest.approx(500 * 0.15e-6 + 1_000 * 0.075e-6 + 70 * 0.6e-6)


async def test_a_known_model_behind_another_address_has_its_price(server: LLMServer, build: Build):
    """As DeepSeek's and Google's own addresses with OpenAI's API."""
    for name in ("deepseek-chat", "gemini-2.5-flash"):
        llm = build(f"openai/{name}", api_base=server.base_url)
        usage = (await ask(llm)).usage
        assert usage.calls == 1
        if isinstance(llm, OpenAIChat):
            assert usage.cost_usd is not None
            assert usage.cost_usd > 0


@pytest.mark.parametrize("cached", [0, 512])
async def test_the_table_has_the_prices_and_abilities_that_litellm_computes(cached: int):
    """For each chat model of OpenAI that has a price."""
    litellm, compared = load(), 0
    usage: dict[str, Any] = {"prompt_tokens": 1_000, "completion_tokens": 50, "total_tokens": 1_050}
    usage["prompt_tokens_details"] = {"cached_tokens": cached}
    for name, model in (await known_models()).items():
        if litellm.model_cost[name]["litellm_provider"] != "openai" or model.input_usd is None:
            continue
        response = litellm.ModelResponse(model=name, usage=usage)
        price = litellm.completion_cost(response, model=name, custom_llm_provider="openai")
        assert model.price(usage) == pytest.approx(price), name
        assert model.schema == bool(litellm.supports_response_schema(f"openai/{name}")), name
        assert model.functions == bool(litellm.supports_function_calling(f"openai/{name}")), name
        compared += 1
    assert compared > 50


def test_a_direct_client_answers_with_its_price_without_litellm():
    program = """
import asyncio, sys
from pipeline.adapters.llm_openai import OpenAIChat
from pipeline.adapters.model_table import known_models
from pipeline.adapters.provider_calls import RemoteModel
from pipeline.ports import ChatTurn
from tests.support.llm_server import LLMServer

async def main():
    async with LLMServer() as server:
        llm = OpenAIChat(RemoteModel("openai/gpt-4o-mini", api_base=server.base_url))
        completion = await llm.complete([ChatTurn("user", "Hi")], schema_name="x", schema={})
        await llm.close()
        print(completion.usage.cost_usd > 0, "litellm" in sys.modules)

asyncio.run(main())
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["True", "False"]


async def test_an_unknown_provider_is_rejected():
    with pytest.raises(ModelRejected):
        await ask(LiteLLM(RemoteModel("nosuch/model", retry=AT_ONCE)))


async def test_a_key_that_was_never_given_is_rejected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SettingRejected, match=r"no API key is set\. Set MEMLANE_LLM__API_KEY"):
        await ask(LiteLLM(RemoteModel("openai/gpt-4o-mini", retry=AT_ONCE)))


async def test_only_the_given_key_goes_to_a_given_base(
    server: LLMServer, build: Build, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    await ask(build("openai/x", api_base=server.base_url))
    assert KEY not in server.calls[0].headers["authorization"]


@pytest.mark.parametrize("do", ["400", "401", "429", "500"])
async def test_no_error_or_log_tells_the_key_or_what_was_said(
    server: LLMServer, llm: JsonLLM, do: Do, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    server.on("any", do, retry_after_s=0)  # errors of the test server repeat the prompt
    with capture_logs() as logged, pytest.raises((ModelUnavailable, ModelRejected)) as caught:
        await ask(llm)
    shown = f"{caught.value!r} {caught.value.__cause__!r} {logged} {caplog.text}"
    assert KEY not in shown
    assert "Rome" not in shown


# ── the form of the answer ───────────────────────────────────────────────────────────────────────


async def test_an_unknown_model_is_asked_for_a_schema(server: LLMServer, llm: JsonLLM):
    await ask(llm)
    assert server.calls[0].response_format == "json_schema"


async def test_a_model_known_to_take_no_schema_is_given_a_function(server: LLMServer, build: Build):
    llm = build("openai/gpt-3.5-turbo", api_base=server.base_url)
    completion = await ask(llm)
    assert (server.calls[0].response_format, server.calls[0].function) == (None, "facts")
    assert completion.text == "{}"  # the arguments


async def test_a_model_known_to_take_neither_is_asked_for_json(server: LLMServer, build: Build):
    await ask(build("openai/gpt-3.5-turbo-16k", api_base=server.base_url))
    # LiteLLM leaves out a parameter that it does not know for the model.
    assert server.calls[0].response_format in ("json_object", None)
    assert server.calls[0].function is None


@pytest.mark.parametrize(
    ("refused", "tried"),
    [
        (["json_schema"], ["json_schema", "facts", "facts"]),
        (["json_schema", "function"], ["json_schema", "facts", "json_object", "json_object"]),
        (
            ["json_schema", "function", "json_object"],
            ["json_schema", "facts", "json_object", None, None],
        ),
    ],
)
async def test_a_refused_format_is_remembered(
    server: LLMServer, llm: JsonLLM, refused: list[str], tried: list[str | None]
):
    server.on("any", "refuse_format", formats=refused)
    await ask(llm)
    await ask(llm)
    assert [call.function or call.response_format for call in server.calls] == tried


@pytest.mark.parametrize("do", ["malformed", "truncated"])
async def test_the_arguments_of_a_function_are_repaired(server: LLMServer, llm: JsonLLM, do: Do):
    server.on("any", "refuse_format", formats=["json_schema"])
    server.on("extract", do, times=2)  # the refused request counts too
    answer = await PromptedModel(llm).extract(said())
    assert answer.value
    assert answer.usage.calls == 2
    assert (server.calls[-1].function, server.calls[-1].repair) == ("facts", True)


async def test_a_malformed_answer_is_repaired(server: LLMServer, llm: JsonLLM):
    server.on("extract", "malformed", times=1)
    answer = await PromptedModel(llm).extract(said())
    assert answer.usage.calls == 2
    assert [call.repair for call in server.calls] == [False, True]
    assert "facts: Field required" in server.calls[1].prompt


@pytest.mark.parametrize("do", ["malformed", "truncated"])
async def test_an_answer_that_stays_unusable_is_an_error(server: LLMServer, llm: JsonLLM, do: Do):
    server.on("any", do)
    with pytest.raises(MalformedAnswer):
        await PromptedModel(llm).extract(said())
    assert len(server.calls) == 2


async def test_with_a_key_alone_the_openai_variables_name_server_and_organization(
    engine: Engine, server: LLMServer, monkeypatch: pytest.MonkeyPatch
):
    """LiteLLM reads the same variables."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_ORGANIZATION", "org-memlane")
    settings = ModelSettings(model="openai/stand-in", api_key=SecretStr(KEY))
    embedder = build_embedder(settings)
    model = build_model(settings, engine.ledger.circuits)
    await embedder.embed(["I like tea."])
    await model.extract(said())
    await embedder.close()
    await model.close()
    assert [call.headers["openai-organization"] for call in server.calls] == ["org-memlane"] * 2
    assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {KEY}"}


async def test_a_configured_base_goes_before_the_variable(
    server: LLMServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://provider.invalid/v1")
    embedder = build_embedder(ModelSettings(model="openai/stand-in", api_base=server.base_url))
    await embedder.embed(["I like tea."])
    await embedder.close()
    assert server.count("embed") == 1


async def test_the_direct_client_uses_the_proxy_of_the_environment(
    server: LLMServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    base = "http://provider.invalid/v1"
    http = OpenAIHttp(RemoteModel("openai/x", api_base=base), "/embeddings", connections=1)
    response = await http.post({"input": "tea"}, limit_s=10)
    await http.close()
    assert response.status == 200
    assert server.count("embed") == 1


# ── the client and the test server themselves ────────────────────────────────────────────────────


async def test_many_calls_share_one_loop(server: LLMServer, llm: JsonLLM):
    await asyncio.to_thread(load)
    answers = await asyncio.gather(*(ask(llm) for _ in range(50)))
    assert len(answers) == len(server.calls) == 50


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("soon", None), ("inf", None), ("", None),
        ("1e300", 366 * 86_400),
    ],
)  # fmt: skip
def test_retry_after_is_read_or_left(value: str, seconds: float | None):
    assert retry_after_s({"retry-after": value}) == seconds


def test_retry_after_may_be_a_date():
    assert retry_after_s({"retry-after": format_datetime(datetime(2020, 1, 1, tzinfo=UTC))}) == 0.0
    assert (retry_after_s({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}) or 0.0) > 1e6


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "3", "x-ratelimit-reset-requests": "1m30s"}, 3.0),
        ({"x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-reset-requests": "120ms", "x-ratelimit-reset-tokens": "6m0.5s"}, 360.5),
        ({"x-ratelimit-reset-requests": "1d2h"}, 93_600.0),
        (
            {"x-ratelimit-reset-requests": "1h", "x-ratelimit-remaining-requests": "7",
             "x-ratelimit-reset-tokens": "2s", "x-ratelimit-remaining-tokens": "0"},
            2.0,
        ),
        ({"x-ratelimit-reset-requests": "1h", "x-ratelimit-remaining-requests": "7"}, None),
        ({"anthropic-ratelimit-requests-reset": "2020-01-01T00:00:00Z"}, 0.0),
        ({"anthropic-ratelimit-tokens-reset": "9999-01-01T00:00:00Z"}, None),
        ({"x-ratelimit-reset-requests": "soon"}, None),
        ({"x-ratelimit-reset-requests": "1796000000"}, None),
        ({"x-ratelimit-reset-requests": "9" * 5_000 + "d"}, None),
    ],
)  # fmt: skip
def test_the_reset_of_a_used_up_limit_is_read(headers: dict[str, str], seconds: float | None):
    assert retry_after_s(headers, throttled=True) == seconds
    requested = [name for name in headers if name.startswith("retry-after")]
    assert (retry_after_s(headers) is not None) is bool(requested)


def test_the_words_of_a_user_in_a_refusal_ask_for_no_wait():
    error = load().RateLimitError("'retryDelay': '34s'", "gemini", "gemini/m")
    remote = RemoteModel("gemini/m")
    assert getattr(translated(error, remote), "retry_after_s", 0) == 34.0
    assert getattr(translated(error, remote, "my 'retryDelay': '34s'"), "retry_after_s", 0) is None


def test_importing_the_adapters_is_cheap():
    code = (
        "import sys, pipeline.adapters.llm_openai, pipeline.adapters.embedder_litellm,"
        " pipeline.adapters.embedder_minilm;"
        "print(sorted({'litellm', 'openai', 'onnxruntime'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_the_stand_in_runs_as_a_process_and_takes_orders():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.llm_server", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        settings = json.loads(await process.stdout.readline())
        async with httpx.AsyncClient(base_url=settings["base_url"].removesuffix("/v1")) as client:
            rule = {"on": "any", "do": "malformed", "probability": 0.5}
            await client.post("/admin/rules", json={"seed": 1, "rules": [rule]})
            body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
            replies = [await client.post("/v1/chat/completions", json=body) for _ in range(20)]
            texts = [reply.json()["choices"][0]["message"]["content"] for reply in replies]
            assert 3 < sum("that depends" in text for text in texts) < 17
            calls = (await client.get("/admin/calls")).json()["calls"]
            assert [call["kind"] for call in calls] == ["other"] * 20
    finally:
        process.terminate()
        await process.wait()
