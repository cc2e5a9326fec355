"""What every Embedder promises: the fake, the one in this process, and the one behind an API."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from pipeline.adapters.embedder_hash import HashEmbedder
from pipeline.adapters.embedder_litellm import BATCH, LiteLLMEmbedder
from pipeline.adapters.embedder_minilm import BATCH_TEXTS, BATCH_TOKENS, MiniLM, batches
from pipeline.errors import ModelRejected
from pipeline.ports import Embedder, Vector
from tests.support.llm_server import LLMServer


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[LLMServer]:
    async with LLMServer() as running:
        yield running


@pytest.fixture(scope="module")
async def minilm() -> MiniLM:
    return MiniLM()


@pytest.fixture(params=["fake/hash", "local/minilm", "openai/stand-in"])
async def embedder(request: pytest.FixtureRequest, server: LLMServer, minilm: MiniLM) -> Embedder:
    match request.param:
        case "fake/hash":
            return HashEmbedder()
        case "local/minilm":
            return minilm
        case name:
            return LiteLLMEmbedder(name, api_base=server.base_url, api_key="k")


def cosine(one: Vector, other: Vector) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


async def test_the_name_says_which_model_made_a_vector(
    embedder: Embedder, request: pytest.FixtureRequest
):
    assert embedder.name == request.node.callspec.params["embedder"]


async def test_no_texts_no_vectors(embedder: Embedder):
    assert await embedder.embed([]) == []


async def test_every_text_has_a_unit_vector_of_the_told_length(embedder: Embedder):
    texts = ["I like tea.", "", " ", "Ich wohne in Köln 🙂", "茶が好きです", "word " * 5_000]
    vectors = await embedder.embed(texts)
    assert [len(vector) for vector in vectors] == [await embedder.dimensions()] * len(texts)
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1.0] * len(texts))


async def test_vectors_come_in_the_order_of_the_texts_however_many(embedder: Embedder):
    texts = [f"fact {n} " + "and so on " * (n % 7) for n in range(BATCH + 10)]
    alone = [(await embedder.embed([text]))[0] for text in texts[::35]]
    together = (await embedder.embed(texts))[::35]
    # Not equal to the last bit: int8 activations are scaled per batch.
    assert all(cosine(one, other) > 0.99 for one, other in zip(alone, together, strict=True))


async def test_the_same_text_is_the_same_vector(embedder: Embedder):
    first, second = await embedder.embed(["I like tea.", "I like tea."])
    [again] = await embedder.embed(["I like tea."])
    assert first == second == again


async def test_a_text_is_nearest_to_the_one_it_shares_words_with(embedder: Embedder):
    tea, tea_too, bridge = await embedder.embed(
        ["Ann drinks green tea", "Ann drinks black tea", "Which bridge collapsed in March?"]
    )
    assert cosine(tea, tea_too) > cosine(tea, bridge) + 0.2


# ── what only one of them promises ───────────────────────────────────────────────────────────────


async def test_minilm_knows_meanings(minilm: MiniLM):
    like, enjoy, market = await minilm.embed(
        ["I like tea", "I enjoy tea", "The stock market fell today"]
    )
    # 0.907 and 0.007 in int8; the fp32 model gives the same to two places.
    assert cosine(like, enjoy) == pytest.approx(0.907, abs=0.01)
    assert cosine(like, market) == pytest.approx(0.007, abs=0.03)


async def test_minilm_forgets_the_texts_used_longest_ago():
    small = MiniLM(cached_texts=2)
    await small.embed(["a", "b", "c"])
    assert sorted(small._cache._vectors) == ["b", "c"]


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


async def test_a_vector_behind_an_api_is_asked_for_in_batches(server: LLMServer):
    server.calls.clear()
    await LiteLLMEmbedder("openai/e", api_base=server.base_url).embed(["a"] * (BATCH + 1))
    assert server.count("embed") == 2


async def test_a_refused_embedding_is_named(server: LLMServer):
    server.on("embed", "401", times=1)
    with pytest.raises(ModelRejected, match="HTTP 401"):
        await LiteLLMEmbedder("openai/e", api_base=server.base_url).dimensions()
