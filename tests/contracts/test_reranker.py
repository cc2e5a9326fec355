"""Contract of Reranker, for the fake and for every provider API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.adapters.litellm_client import load
from pipeline.adapters.provider_calls import RemoteModel
from pipeline.adapters.reranker_litellm import LONGEST, LiteLLMReranker, shares
from pipeline.domain.errors import (
    MalformedAnswer,
    ModelRejected,
    ModelUnavailable,
    SettingRejected,
)
from pipeline.ports import Reranker
from tests.support.llm_server import Do, LLMServer
from tests.support.reranker_overlap import OverlapReranker

# Their APIs differ in paths, field names and answers.
PROVIDERS = [
    "cohere/stand-in",
    "hosted_vllm/stand-in",
    "infinity/stand-in",
    "jina_ai/stand-in",
    "litellm_proxy/stand-in",
    "together_ai/stand-in",
]
# LiteLLM itself raises this warning, in its code for Together.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:litellm")
QUESTION = "Who likes green tea"
TEXTS = ["Jon likes rum", "Ann likes green tea", "The bridge is closed"]


@pytest.fixture
async def server() -> AsyncIterator[LLMServer]:
    async with LLMServer() as running:
        yield running


def behind(server: LLMServer, name: str = PROVIDERS[0], timeout_s: float = 5.0) -> LiteLLMReranker:
    return LiteLLMReranker(RemoteModel(name, server.base_url, "k", timeout_s))


@pytest.fixture(params=["fake/overlap", *PROVIDERS])
async def reranker(request: pytest.FixtureRequest, server: LLMServer) -> Reranker:
    if request.param == "fake/overlap":
        return OverlapReranker()
    return behind(server, request.param)


async def test_the_name_says_which_model_it_is(
    reranker: Reranker, request: pytest.FixtureRequest
) -> None:
    assert reranker.name == request.node.callspec.params["reranker"]


async def test_every_text_has_a_share_in_the_order_of_the_texts(reranker: Reranker) -> None:
    scores = await reranker.rerank(QUESTION, TEXTS)
    assert scores == [0.25, 0.75, 0.0]
    assert await reranker.rerank(QUESTION, TEXTS[::-1]) == scores[::-1]


async def test_no_texts_no_scores(reranker: Reranker) -> None:
    assert await reranker.rerank(QUESTION, []) == []


async def test_an_empty_text_and_many_at_once_are_scored_as_well(reranker: Reranker) -> None:
    scores = await reranker.rerank(QUESTION, ["", *TEXTS * 33])
    assert len(scores) == 100
    assert scores[0] == 0
    assert all(0 <= score <= 1 for score in scores)


# ── rerankers behind an API only ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("do", "error"), [("400", ModelRejected), ("401", SettingRejected)])
async def test_a_refusal_is_named_at_once(
    server: LLMServer, provider: str, do: Do, error: type[Exception]
) -> None:
    server.on("rerank", do)
    with pytest.raises(error, match=f"HTTP {do}"):
        await behind(server, provider).rerank(QUESTION, TEXTS)
    assert server.count("rerank") == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("do", ["500", "close"])
async def test_a_passing_fault_is_tried_once_more(server: LLMServer, provider: str, do: Do) -> None:
    server.on("rerank", do, times=1)
    assert await behind(server, provider).rerank(QUESTION, TEXTS) == [0.25, 0.75, 0.0]
    server.on("rerank", do)
    with pytest.raises(ModelUnavailable):
        await behind(server, provider).rerank(QUESTION, TEXTS)
    assert server.count("rerank") == 4


async def test_a_429_is_not_waited_for(server: LLMServer) -> None:
    server.on("rerank", "429")
    with pytest.raises(ModelUnavailable):
        await behind(server).rerank(QUESTION, TEXTS)
    assert server.count("rerank") == 1


async def test_a_slow_one_is_given_up_in_the_time_it_has(server: LLMServer) -> None:
    server.on("rerank", "hang")
    await asyncio.to_thread(load)  # the import does not count towards the timeout
    async with asyncio.timeout(30):
        with pytest.raises(ModelUnavailable, match=r"0\.3 s"):
            await behind(server, timeout_s=0.3).rerank(QUESTION, TEXTS)


async def test_an_answer_that_leaves_a_text_out_is_named(server: LLMServer) -> None:
    server.on("rerank", "malformed")
    with pytest.raises(MalformedAnswer, match="one score for each text"):
        await behind(server).rerank(QUESTION, TEXTS)


async def test_a_provider_that_cannot_rerank_is_named(server: LLMServer) -> None:
    with pytest.raises(ModelRejected, match="no such service"):
        await behind(server, "openai/stand-in").rerank(QUESTION, TEXTS)


async def test_a_key_that_was_never_given_is_named() -> None:
    with pytest.raises(SettingRejected, match="no API key is set"):
        await LiteLLMReranker(RemoteModel("jina_ai/stand-in")).rerank(QUESTION, TEXTS)


async def test_of_a_long_text_as_much_is_sent_as_is_read(server: LLMServer) -> None:
    await behind(server).rerank("q", ["x" * (2 * LONGEST)])
    assert len(server.calls[-1].prompt) == len("q\n") + LONGEST


@given(st.lists(st.floats(-50, 50), min_size=1))
def test_scores_on_any_scale_become_shares_in_the_same_order(scores: list[float]) -> None:
    scaled = shares(scores)
    assert all(0 <= share <= 1 for share in scaled)
    pairs = [(lower, higher) for lower in range(len(scores)) for higher in range(len(scores))]
    assert all(scaled[a] <= scaled[b] for a, b in pairs if scores[a] <= scores[b])


def test_shares_are_left_as_they_are() -> None:
    assert shares([0.2, 1.0, 0.0]) == [0.2, 1.0, 0.0]
