"""Contract of Embedder, for the fake, the built-in model and models behind an API."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from tenacity import wait_none

from pipeline.adapters.embedder_batched import BATCH
from pipeline.adapters.embedder_cached import CachedEmbedder
from pipeline.adapters.embedder_litellm import LiteLLMEmbedder
from pipeline.adapters.embedder_minilm import BATCH_TEXTS, BATCH_TOKENS, MiniLM, batches
from pipeline.adapters.embedder_openai import OpenAIEmbedder
from pipeline.adapters.provider_calls import RemoteModel, RetryPolicy
from pipeline.domain.errors import ModelRejected, ModelUnavailable, SettingRejected
from pipeline.domain.vectors import Vector
from pipeline.ports import Embedder
from tests.support.embedder_hash import HashEmbedder
from tests.support.llm_server import LLMServer
from tests.support.scripted_provider import ScriptedProvider


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[LLMServer]:
    async with LLMServer() as running:
        yield running


@pytest.fixture(scope="module")
async def minilm() -> MiniLM:
    return MiniLM()


@pytest.fixture(params=["fake/hash", "cached", "local/minilm", "openai/stand-in", "litellm"])
async def embedder(
    request: pytest.FixtureRequest, server: LLMServer, minilm: MiniLM
) -> AsyncIterator[Embedder]:
    embedder = build(request.param, server, minilm)
    yield embedder
    await embedder.close()


def build(name: str, server: LLMServer, minilm: MiniLM) -> Embedder:
    match name:
        case "fake/hash":
            return HashEmbedder()
        case "cached":
            return CachedEmbedder(HashEmbedder())
        case "local/minilm":
            return minilm
        case "openai/stand-in":
            return OpenAIEmbedder(RemoteModel(name, server.base_url, "k"))
        case _:
            return LiteLLMEmbedder(RemoteModel("openai/stand-in", server.base_url, "k"))


def cosine(left: Vector, right: Vector) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


async def test_the_name_says_which_model_made_a_vector(
    embedder: Embedder, request: pytest.FixtureRequest
):
    configured = request.node.callspec.params["embedder"]
    wrapped = {"litellm": "openai/stand-in", "cached": "fake/hash"}
    assert embedder.name == wrapped.get(configured, configured)


async def test_no_texts_no_vectors(embedder: Embedder):
    assert await embedder.embed([]) == []


async def test_every_text_has_a_unit_vector_of_the_stated_length(embedder: Embedder):
    texts = ["I like tea.", "", " ", "Ich wohne in Köln 🙂", "茶が好きです", "word " * 5_000]
    vectors = await embedder.embed(texts)
    assert [len(vector) for vector in vectors] == [await embedder.dimensions()] * len(texts)
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1.0] * len(texts))


async def test_vectors_come_in_the_order_of_the_texts_however_many(embedder: Embedder):
    texts = [f"fact {n} " + "and so on " * (n % 7) for n in range(BATCH + 10)]
    alone = [(await embedder.embed([text]))[0] for text in texts[::35]]
    together = (await embedder.embed(texts))[::35]
    # Not bit-identical: int8 activations are scaled per batch.
    assert all(
        cosine(single, paired) > 0.99 for single, paired in zip(alone, together, strict=True)
    )


async def test_the_same_text_is_the_same_vector(embedder: Embedder):
    first, second = await embedder.embed(["I like tea.", "I like tea."])
    [again] = await embedder.embed(["I like tea."])
    assert first.tolist() == second.tolist() == again.tolist()


async def test_a_text_is_nearest_to_the_one_it_shares_words_with(embedder: Embedder):
    tea, tea_too, bridge = await embedder.embed(
        ["Ann drinks green tea", "Ann drinks black tea", "Which bridge collapsed in March?"]
    )
    assert cosine(tea, tea_too) > cosine(tea, bridge) + 0.2


# ── one implementation only ──────────────────────────────────────────────────────────────────────


async def test_minilm_knows_meanings(minilm: MiniLM):
    like, enjoy, market = await minilm.embed(
        ["I like tea", "I enjoy tea", "The stock market fell today"]
    )
    # int8 gives 0.907 and 0.007; the fp32 model gives the same to two decimal places.
    assert cosine(like, enjoy) == pytest.approx(0.907, abs=0.01)
    assert cosine(like, market) == pytest.approx(0.007, abs=0.03)


async def test_only_texts_that_are_not_cached_reach_the_model():
    counted = Counted()
    cached = CachedEmbedder(counted, size=2)
    first = await cached.embed(["a", "b", "a"])
    again = await cached.embed(["b", "c"])
    await cached.embed(["a"])  # least recently used, so "c" has replaced it
    assert counted.asked == [["a", "b"], ["c"], ["a"]]
    assert first[0].tolist() == first[2].tolist()
    assert first[1].tolist() == again[0].tolist()


class Counted(HashEmbedder):
    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked.append(list(texts))
        return await super().embed(texts)


async def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(ModelRejected, match="no model at"):
        await MiniLM(model_path=tmp_path / "model.onnx").embed(["a"])


def test_batches_are_bounded_by_their_padded_size():
    lengths = [5] * 70 + [256, 3, 100, 250, 9_000]
    made = list(batches(lengths))
    assert sorted(at for batch in made for at in batch) == list(range(len(lengths)))
    assert all(len(batch) <= BATCH_TEXTS for batch in made)
    padded = [len(batch) * max(lengths[at] for at in batch) for batch in made if len(batch) > 1]
    assert max(padded) <= BATCH_TOKENS
    longest = [max(lengths[at] for at in batch) for batch in made]
    assert all(short <= long for short, long in pairwise(longest))


Remote = type[LiteLLMEmbedder] | type[OpenAIEmbedder]
both = pytest.mark.parametrize("remote", [LiteLLMEmbedder, OpenAIEmbedder])


@pytest.fixture
def clean(server: LLMServer) -> Iterator[LLMServer]:
    server.calls.clear()
    yield server
    server.rules.clear()


@both
async def test_a_vector_behind_an_api_is_asked_for_in_batches(clean: LLMServer, remote: Remote):
    embedder = remote(RemoteModel("openai/e", clean.base_url))
    await embedder.embed(["a"] * (BATCH + 1))
    assert clean.count("embed") == 2
    await embedder.close()


@both
async def test_a_refused_embedding_is_named(clean: LLMServer, remote: Remote):
    clean.on("embed", "401", times=1)
    embedder = remote(RemoteModel("openai/e", clean.base_url))
    with pytest.raises(SettingRejected, match="HTTP 401"):
        await embedder.dimensions()
    await embedder.close()


@pytest.fixture
async def openai(clean: LLMServer) -> AsyncIterator[OpenAIEmbedder]:
    policy = RetryPolicy(tries=2, wait=wait_none())
    embedder = OpenAIEmbedder(RemoteModel("openai/e", clean.base_url, "k", retry=policy))
    yield embedder
    await embedder.close()


async def test_vectors_are_asked_for_as_base64(clean: LLMServer, openai: OpenAIEmbedder):
    [vector] = await openai.embed(["I like tea."])
    assert vector.dtype == np.float32
    assert [call.encoding_format for call in clean.calls] == ["base64"]


async def test_a_provider_that_ignores_base64_answers_with_floats(
    clean: LLMServer, openai: OpenAIEmbedder
):
    clean.on("embed", "floats")
    [vector] = await openai.embed(["I like tea."])
    [expected] = await HashEmbedder().embed(["I like tea."])
    assert vector.tolist() == pytest.approx(expected.tolist())


async def test_a_provider_that_refuses_base64_is_asked_once_and_remembered(
    clean: LLMServer, openai: OpenAIEmbedder
):
    clean.on("embed", "refuse_base64")
    await openai.embed(["I like tea."])
    await openai.embed(["I like coffee."])
    assert [call.encoding_format for call in clean.calls] == ["base64", "float", "float"]


async def test_an_outage_is_retried_and_then_named(clean: LLMServer, openai: OpenAIEmbedder):
    clean.on("embed", "500")
    with pytest.raises(ModelUnavailable, match="HTTP 500"):
        await openai.embed(["I like tea."])
    assert clean.count("embed") == 2


async def test_a_throttled_call_names_when_to_come_back(clean: LLMServer, openai: OpenAIEmbedder):
    clean.on("embed", "429", retry_after_s=120)
    with pytest.raises(ModelUnavailable) as caught:
        await openai.embed(["I like tea."])
    assert caught.value.retry_after_s == 120
    assert clean.count("embed") == 1


def rows(texts: Sequence[str]) -> list[dict[str, object]]:
    """Vectors from which the length of each text can be read."""
    return [{"index": at, "embedding": [1.0, float(len(text))]} for at, text in enumerate(texts)]


@both
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens."),
        (413, "Input validation error: inputs must have less than 512 tokens."),
        (400, "the input length exceeds the context length"),
    ],
)
async def test_a_text_too_long_for_the_model_has_the_vector_of_its_beginning(
    remote: Remote, status: int, message: str
):
    """As the built-in model reads a text. Otherwise an accepted message ends FAILED."""

    def answer(request: dict[str, list[str]]) -> tuple[int, object]:
        if any(len(text) > 3_000 for text in request["input"]):
            return status, {"error": {"message": message}}
        return 200, {"data": rows(request["input"])}

    async with ScriptedProvider(answer).serve() as provider:
        embedder = remote(RemoteModel("openai/e", provider.base_url))
        texts = ["I like tea.", "word " * 1_000, "I like coffee."]
        vectors = await embedder.embed(texts)
        await embedder.close()
    whole, half = len(texts[0]), len(texts[1]) // 2
    assert [round(vector[1] / vector[0]) for vector in vectors] == [whole, half, len(texts[2])]


@both
async def test_a_batch_too_large_for_the_provider_is_halved(remote: Remote):
    def answer(request: dict[str, list[str]]) -> tuple[int, object]:
        if len(request["input"]) > 10:
            message = "batch size is invalid, it should not be larger than 10."
            return 400, {"error": {"message": message}}
        return 200, {"data": rows(request["input"])}

    async with ScriptedProvider(answer).serve() as provider:
        embedder = remote(RemoteModel("openai/e", provider.base_url))
        vectors = await embedder.embed(["x" * number for number in range(1, 33)])
        await embedder.close()
    assert [round(vector[1] / vector[0]) for vector in vectors] == list(range(1, 33))


@both
async def test_a_text_that_stays_too_long_is_refused_after_a_few_requests(remote: Remote):
    error = {"error": {"message": "the input length exceeds the context length"}}
    async with ScriptedProvider(error, status=400).serve() as provider:
        embedder = remote(RemoteModel("openai/e", provider.base_url))
        with pytest.raises(ModelRejected):
            await embedder.embed(["word " * 2_000] * 64)
        await embedder.close()
    assert len(provider.requests) < 20


@both
async def test_vectors_without_an_index_are_in_the_order_of_the_texts(remote: Remote):
    """As Gemini's, whose first one has no index, and others that have none."""
    body = {"data": [{"embedding": [1.0, 1.0]}, {"embedding": [1.0, 2.0], "index": 1}]}
    async with ScriptedProvider(body).serve() as provider:
        embedder = remote(RemoteModel("openai/e", provider.base_url))
        vectors = await embedder.embed(["a", "b"])
        await embedder.close()
    assert [round(vector[1] / vector[0]) for vector in vectors] == [1, 2]


@both
@pytest.mark.parametrize(
    "data",
    [[], [{"index": 0}], [{"index": 0, "embedding": [0.0, 0.0]}], [{"index": 0, "embedding": {}}]],
    ids=["none", "no embedding", "zero", "an object"],
)
async def test_an_answer_without_vectors_is_named(remote: Remote, data: list[dict[str, object]]):
    policy = RetryPolicy(wait=wait_none())
    async with ScriptedProvider({"data": data}).serve() as provider:
        embedder = remote(RemoteModel("openai/e", provider.base_url, retry=policy))
        # LiteLLM itself fails at some of them, as at an error of the server.
        with pytest.raises((ModelRejected, ModelUnavailable)):
            await embedder.embed(["a"])
        await embedder.close()


async def test_an_embedding_error_with_status_200_is_that_error():
    policy = RetryPolicy(wait=wait_none())
    error = {"error": {"code": 503, "message": "No instances"}}
    async with ScriptedProvider(error).serve() as provider:
        embedder = OpenAIEmbedder(RemoteModel("openai/e", provider.base_url, retry=policy))
        with pytest.raises(ModelUnavailable, match="HTTP 503"):
            await embedder.embed(["a"])
        await embedder.close()
