"""Answers of real providers that are no plain chat completion, through both chat clients."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from tenacity import wait_none

from pipeline.adapters.embedder_batched import BatchedEmbedder
from pipeline.adapters.embedder_litellm import LiteLLMEmbedder
from pipeline.adapters.embedder_openai import OpenAIEmbedder
from pipeline.adapters.llm_json import JsonLLM
from pipeline.adapters.llm_litellm import LiteLLM
from pipeline.adapters.llm_openai import OpenAIChat
from pipeline.adapters.provider_calls import RemoteModel, RetryPolicy
from pipeline.domain.errors import ModelRejected, ModelUnavailable, SettingRejected
from pipeline.domain.facts import Fact
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.domain.usage import Answer
from pipeline.models.prompted import PromptedModel
from pipeline.ports import ExtractionRequest
from tests.support.scripted_provider import GOOD, USAGE, ScriptedProvider, chat, completion

AT_ONCE = RetryPolicy(wait=wait_none())
SAID = ExtractionRequest(
    [
        SourcedMessage(
            Source(0, 0),
            Message(Role.USER, "My name is Ann and I live in Rome."),
            datetime(2023, 5, 8, tzinfo=UTC),
        )
    ]
)

both = pytest.mark.parametrize("client", [LiteLLM, OpenAIChat], ids=["litellm", "direct"])


@asynccontextmanager
async def built(
    client: type[JsonLLM], provider: ScriptedProvider, model: str = "openai/stand-in"
) -> AsyncIterator[JsonLLM]:
    """The client of a model at the provider."""
    async with provider.serve():
        llm = client(RemoteModel(model, api_base=provider.base_url, retry=AT_ONCE))  # type: ignore[arg-type]
        try:
            yield llm
        finally:
            await llm.close()


async def facts_of(
    client: type[JsonLLM], provider: ScriptedProvider, model: str = "openai/stand-in"
) -> Answer[tuple[Fact, ...]]:
    async with built(client, provider, model) as llm:
        return await PromptedModel(llm).extract(SAID)


@both
@pytest.mark.parametrize(
    "content",
    [
        f"```json\n{GOOD}\n```",
        f'<think>Perhaps {{"facts": []}}?</think>\n{GOOD}',
        f'Perhaps {{"facts": []}}? No.\n</think>\n\n{GOOD}',
        f"The facts: {GOOD.replace('Rome.', 'Rome </think>.')}",
        GOOD.replace("lives in", "lives\n\tin"),
    ],
    ids=[
        "fence",
        "thoughts",
        "thoughts whose opening tag is in the template",
        "a tag in a text",
        "raw line break",
    ],
)
async def test_an_answer_is_read_with_one_call(client: type[JsonLLM], content: str) -> None:
    provider = ScriptedProvider(chat(content))
    answer = await facts_of(client, provider)
    [fact] = answer.value
    assert " ".join(fact.text.split()).startswith("User lives in Rome")
    assert len(provider.requests) == 1


async def test_the_text_parts_of_an_answer_are_read_without_the_thoughts() -> None:
    """As Mistral's reasoning models answer. LiteLLM does not read them under `openai/`."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": '{"facts": []}'}]}
    text = [{"type": "text", "text": GOOD[:20]}, {"type": "text", "text": GOOD[20:]}]
    provider = ScriptedProvider(chat([thinking, *text]))
    assert len((await facts_of(OpenAIChat, provider)).value) == 1
    assert len(provider.requests) == 1


@both
async def test_a_refusal_of_the_model_is_final_and_is_not_repaired(client: type[JsonLLM]) -> None:
    provider = ScriptedProvider(chat(None, refusal="I can't help with that."))
    with pytest.raises(ModelRejected, match="the model refuses this prompt") as caught:
        await facts_of(client, provider)
    assert len(provider.requests) == 1
    assert caught.value.usage.calls == 1


@both
async def test_an_answer_that_ends_in_an_error_of_the_provider_is_an_outage(
    client: type[JsonLLM],
) -> None:
    """As OpenRouter reports an error behind the first tokens."""
    error = {"code": 502, "message": "The upstream model has gone."}
    choice = {"finish_reason": "error", "error": error}
    provider = ScriptedProvider(completion(choice, {"content": GOOD[:30]}))
    with pytest.raises(ModelUnavailable) as caught:
        await facts_of(client, provider)
    assert caught.value.usage.prompt_tokens == USAGE["prompt_tokens"]


@pytest.mark.parametrize(
    ("error", "expected", "requests"),
    [
        ({"code": 502, "message": "Bad gateway"}, ModelUnavailable, 3),
        ({"code": 429, "message": "Rate limit exceeded"}, ModelUnavailable, 1),
        ({"code": 402, "message": "Insufficient credits"}, SettingRejected, 1),
        ("The model is loading.", ModelUnavailable, 3),
    ],
)
async def test_an_error_with_status_200_is_that_error(
    error: Any, expected: type[ModelUnavailable], requests: int
) -> None:
    """As OpenRouter and LM Studio answer. No second request goes through LiteLLM."""
    provider = ScriptedProvider({"error": error})
    with pytest.raises(expected) as caught:
        await facts_of(OpenAIChat, provider)
    assert isinstance(caught.value, SettingRejected) is (expected is SettingRejected)
    assert len(provider.requests) == requests


GEMINI = {
    "error": {
        "code": 429,
        "message": "Resource has been exhausted.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"},
        ],
    }
}
LIMITED = {"error": {"message": "Rate limit reached"}}
BUSY = {"error": {"message": "Busy"}}


@both
@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (429, {"retry-after-ms": "15000"}, LIMITED, 15.0),
        (429, {"x-ratelimit-reset-requests": "1m30s"}, LIMITED, 90.0),
        (429, {}, GEMINI, 34.0),
        (429, {}, [GEMINI], 34.0),
        (503, {"retry-after": "12"}, BUSY, 12.0),
        (503, {"x-ratelimit-reset-requests": "1m30s"}, BUSY, None),
    ],
)
async def test_the_wait_that_a_provider_asks_for_reaches_the_ledger(
    client: type[JsonLLM], status: int, headers: dict[str, str], body: Any, seconds: float | None
) -> None:
    provider = ScriptedProvider(body, status, headers)
    with pytest.raises(ModelUnavailable) as caught:
        await facts_of(client, provider)
    assert caught.value.retry_after_s == seconds


@both
async def test_a_loop_of_redirects_is_followed_once_and_names_the_setting(
    client: type[JsonLLM],
) -> None:
    headers: dict[str, str] = {}
    provider = ScriptedProvider({}, 307, headers)
    async with built(client, provider) as llm:
        headers["location"] = f"{provider.base_url}/chat/completions"
        with pytest.raises(SettingRejected, match="MEMLANE_LLM__API_BASE"):
            await llm.chat([{"role": "user", "content": "Hello"}])
    assert len(provider.requests) <= 22


def spoiled_vectors(kind: str, count: int) -> bytes:
    """An answer with vectors of three numbers, of which the first is unusable."""
    first: dict[str, list[Any]] = {
        "NaN": [float("nan"), 1, 1],
        "infinite": [float("inf"), 1, 1],
        "zeros": [0, 0, 0],
        "null": [None, 1, 1],
        "shorter": [1, 1],
    }
    vectors = [first.get(kind, [1, 1, 1])] + [[1, 1, 1]] * (count - 1)
    rows = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return json.dumps({"data": rows[1:] if kind == "fewer" else rows}).encode()


KINDS = ["NaN", "infinite", "zeros", "null", "shorter", "fewer"]
NAN_STATUS = b'{"error":{"message":"failed to encode response: json: unsupported value: NaN"}}'
POISON = "Let me read the InputArea file for more commands"


def openai_embedder(provider: ScriptedProvider) -> OpenAIEmbedder:
    return OpenAIEmbedder(RemoteModel("openai/e", provider.base_url, "k", retry=AT_ONCE))


def litellm_embedder(provider: ScriptedProvider) -> LiteLLMEmbedder:
    return LiteLLMEmbedder(RemoteModel("openai/e", provider.base_url, "k", retry=AT_ONCE))


@pytest.mark.parametrize("kind", KINDS)
async def test_unusable_vectors_are_asked_for_once_more(kind: str) -> None:
    def answer(request: dict[str, Any]) -> tuple[int, bytes]:
        return 200, spoiled_vectors(kind if len(provider.requests) == 1 else "", 2)

    provider = ScriptedProvider(answer)
    async with provider.serve():
        embedder = openai_embedder(provider)
        assert len(await embedder.embed(["one", "two"])) == 2
        await embedder.close()
    assert len(provider.requests) == 2


async def test_a_batch_refused_for_its_size_the_second_time_is_halved() -> None:
    """Two servers behind one address can have other limits and other faults."""

    def answer(request: dict[str, Any]) -> tuple[int, bytes]:
        if len(request["input"]) < 4:
            return 200, spoiled_vectors("", len(request["input"]))
        if len(provider.requests) == 1:
            return 200, spoiled_vectors("NaN", 4)
        return 413, b'{"error": {"message": "the batch is too large"}}'

    provider = ScriptedProvider(answer)
    async with provider.serve():
        embedder = openai_embedder(provider)
        assert len(await embedder.embed(["one", "two", "three", "four"])) == 4
        await embedder.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "shorter"])
async def test_a_model_without_one_usable_vector_is_an_outage(kind: str) -> None:
    """Its events wait until the server is repaired; the requests do not grow with the batch."""

    def answer(request: dict[str, Any]) -> tuple[int, bytes]:
        return 200, spoiled_vectors(kind, len(request["input"]))

    provider = ScriptedProvider(answer)
    async with provider.serve():
        embedder = openai_embedder(provider)
        with pytest.raises(ModelUnavailable, match="usable vector"):
            await embedder.embed([f"text {number}" for number in range(90)])
        await embedder.close()
    assert len(provider.requests) <= 4


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("model", [openai_embedder, litellm_embedder])
async def test_a_text_without_a_usable_vector_has_that_of_its_beginning(
    model: Callable[[ScriptedProvider], BatchedEmbedder], status: int
) -> None:
    """Ollama answers a batch with HTTP 500 if one vector has NaN, each time."""

    def answer(request: dict[str, Any]) -> tuple[int, bytes]:
        texts = request["input"]
        spoiled = [at for at, text in enumerate(texts) if "commands" in text]
        if spoiled and status == 500:
            return 500, NAN_STATUS
        vectors = [[len(text), 1, 0] for text in texts]
        rows = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        for at in spoiled:
            rows[at]["embedding"] = [float("nan")] * 3
        return 200, json.dumps({"object": "list", "data": rows, "model": "e"}).encode()

    provider = ScriptedProvider(answer)
    texts = [f"text {number}" for number in range(40)]
    texts[17] = POISON
    async with provider.serve():
        embedder = model(provider)
        vectors = await embedder.embed(texts)
        await embedder.close()
    lengths = [round(float(vector[0] / vector[1])) for vector in vectors]
    assert lengths == [len(POISON) // 2 if text == POISON else len(text) for text in texts]
    assert len(provider.requests) <= 30  # LiteLLM repeats some of them


async def test_a_short_text_without_a_usable_vector_is_refused() -> None:
    def answer(request: dict[str, Any]) -> tuple[int, bytes]:
        kind = "NaN" if request["input"][0] == "Hi" else ""
        return 200, spoiled_vectors(kind, len(request["input"]))

    provider = ScriptedProvider(answer)
    async with provider.serve():
        embedder = openai_embedder(provider)
        with pytest.raises(ModelRejected):
            await embedder.embed(["Hi"])
        await embedder.close()


async def test_an_embedder_that_redirects_names_the_setting() -> None:
    provider = ScriptedProvider({}, 308, {"location": "/v2/embeddings"})
    async with provider.serve():
        remote = RemoteModel(
            "openai/e", api_base=provider.base_url, retry=AT_ONCE, setting="MEMLANE_EMBEDDER"
        )
        embedder = OpenAIEmbedder(remote)
        with pytest.raises(SettingRejected, match="MEMLANE_EMBEDDER__API_BASE"):
            await embedder.embed(["Hello"])
        await embedder.close()
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (USAGE | {"total_tokens": 115}, (10, 105)),
        (USAGE | {"total_tokens": None}, (10, 5)),
        (USAGE | {"total_tokens": 0}, (10, 5)),
    ],
    ids=["without reasoning tokens", "no total", "zero total"],
)
async def test_tokens_of_the_reasoning_are_counted(
    usage: dict[str, Any], tokens: tuple[int, int]
) -> None:
    """xAI and Gemini leave them out of the completion tokens, but not out of the total."""
    provider = ScriptedProvider(chat() | {"usage": usage})
    answer = await facts_of(OpenAIChat, provider, "openai/gpt-4o-mini")
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == tokens
    assert answer.usage.cost_usd == pytest.approx(tokens[0] * 0.15e-6 + tokens[1] * 0.6e-6)


@both
@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": None}])
async def test_tokens_that_the_provider_does_not_report_are_estimated(
    client: type[JsonLLM], usage: dict[str, Any] | None
) -> None:
    """Otherwise a budget in tokens would never be used up."""
    answer = await facts_of(client, ScriptedProvider(chat() | {"usage": usage}))
    assert answer.usage.prompt_tokens > 500
    assert answer.usage.completion_tokens >= len(GOOD) // 4


@both
async def test_an_answer_that_names_another_model_has_the_price_of_the_requested_one(
    client: type[JsonLLM],
) -> None:
    provider = ScriptedProvider(chat() | {"model": "models/gpt-4o-mini@eu"})
    answer = await facts_of(client, provider, "openai/gpt-4o-mini")
    assert answer.usage.cost_usd == pytest.approx(10 * 0.15e-6 + 5 * 0.6e-6)
