"""Search options: selection, order and cuts, over HTTP, in all three API versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipeline.adapters.litellm_client import load
from pipeline.adapters.provider_calls import RemoteModel
from pipeline.adapters.reranker_litellm import LiteLLMReranker
from pipeline.search.ranking.cutoff import AT_LEAST
from tests.support.api_service import LIST, MAYA, SEARCH, Service, serving
from tests.support.engine import Engine
from tests.support.llm_server import Do, LLMServer

SEARCHES = [SEARCH, "/v2/memories/search/", "/v1/memories/search/"]
KEY, POT, TEA = "The spare key is under the blue flower pot", "A blue pot", "Tea with honey"


class Shortest:
    """Reranker that prefers short texts, unlike the fusion."""

    name = "fake/shortest"

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        return [1 / (1 + len(text)) for text in texts]


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    # Verbatim adds wait for a worker.
    async with serving(engine.ledger, workers=True) as built:
        yield built


@pytest.fixture
async def reranker() -> AsyncIterator[LLMServer]:
    async with LLMServer(reranker=Shortest()) as running:
        yield running


def use(service: Service, reranker: LLMServer, *, timeout_s: float = 5.0) -> None:
    remote = RemoteModel("cohere/stand-in", reranker.base_url, "k", timeout_s)
    behind = LiteLLMReranker(remote)
    service.app.state.api = replace(service.api, reranker=behind)


async def store(service: Service, *texts: str, **body: object) -> None:
    for text in texts:
        await service.add(text, infer=False, **body)


async def answer(
    service: Service, query: str, *, path: str = SEARCH, **options: object
) -> dict[str, Any]:
    body = {"query": query, "filters": MAYA, "threshold": 0, "output_format": "v1.1"} | options
    got = await service.client.post(path, json=body)
    assert got.status_code == 200, got.text
    return dict(got.json())


def texts(body: dict[str, Any]) -> list[str]:
    return [row["memory"] for row in body["results"]]


# ── rerank ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", SEARCHES)
async def test_the_rerankers_order_is_the_answers(
    service: Service, reranker: LLMServer, path: str
) -> None:
    await store(service, KEY, POT, TEA)
    use(service, reranker)
    fused = await answer(service, "spare key flower", path=path)
    assert (texts(fused)[0], fused["reranked"], reranker.count("rerank")) == (KEY, False, 0)
    assert "rerank" not in fused["results"][0]["score_breakdown"]

    body = await answer(service, "spare key flower", path=path, rerank=True, explain=True)
    assert texts(body) == [POT, TEA, KEY]
    assert body["reranked"] is True
    assert "not_reranked" not in body
    by_text = {row["memory"]: row["score"] for row in fused["results"]}
    assert all(row["score"] == by_text[row["memory"]] for row in body["results"])
    scores = [row["score_breakdown"]["rerank"] for row in body["results"]]
    assert scores == [pytest.approx(1 / (1 + len(text)), abs=1e-4) for text in (POT, TEA, KEY)]


async def test_without_a_reranker_the_fused_order_stands_and_says_so(service: Service) -> None:
    await store(service, KEY, POT, TEA)
    body = await answer(service, "spare key flower", rerank=True)
    assert (body["reranked"], body["not_reranked"]) == (False, "NOT_CONFIGURED")
    assert texts(body) == texts(await answer(service, "spare key flower"))


@pytest.mark.parametrize(
    ("do", "reason"),
    [
        ("500", "LLM_UNAVAILABLE"),
        ("429", "LLM_UNAVAILABLE"),
        ("close", "LLM_UNAVAILABLE"),
        ("hang", "LLM_UNAVAILABLE"),
        ("401", "LLM_REJECTED"),
        ("malformed", "LLM_BAD_OUTPUT"),
    ],
)
async def test_a_reranker_that_fails_costs_its_order_and_nothing_else(
    service: Service, reranker: LLMServer, do: Do, reason: str
) -> None:
    await store(service, KEY, POT, TEA)
    use(service, reranker, timeout_s=2)
    await asyncio.to_thread(load)
    reranker.on("rerank", do)
    async with asyncio.timeout(30):
        body = await answer(service, "spare key flower", rerank=True)
    assert (body["reranked"], body["not_reranked"]) == (False, reason)
    assert texts(body)[0] == KEY
    reranker.rules.clear()
    assert (await answer(service, "spare key flower", rerank=True))["reranked"] is True


async def test_a_reranker_reads_a_bounded_number_of_the_askers_own(
    service: Service, reranker: LLMServer
) -> None:
    await store(service, *(f"note {number}" for number in range(AT_LEAST + 3)))
    await store(service, "note of another user", user_id="jon")
    use(service, reranker)
    body = await answer(service, "note", top_k=1, rerank=True)
    question, *shown = reranker.calls[-1].prompt.split("\n")
    assert (question, len(shown), len(texts(body))) == ("note", AT_LEAST, 1)
    assert not [text for text in shown if "another user" in text]


class Blocked(Shortest):
    """Reranker that answers once it is allowed to."""

    def __init__(self) -> None:
        self.asked, self.answers = asyncio.Event(), asyncio.Event()

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked.set()
        await self.answers.wait()
        return await super().rerank(question, texts)


async def test_other_searches_of_a_project_run_while_one_waits_for_the_reranker(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.search.concurrency.PROJECT_AT_ONCE", 1)
    await store(service, KEY, POT)
    reranker = Blocked()
    service.app.state.api = replace(service.api, reranker=reranker)
    waiting = asyncio.create_task(answer(service, "spare key flower", rerank=True))
    await reranker.asked.wait()
    async with asyncio.timeout(60):
        assert texts(await answer(service, "spare key flower"))[0] == KEY
    assert not waiting.done()
    reranker.answers.set()
    assert (await waiting)["reranked"] is True


async def test_what_is_deleted_while_the_reranker_answers_is_not_shown(service: Service) -> None:
    await service.add("I live in Bern.")
    reranker = Blocked()
    service.app.state.api = replace(service.api, reranker=reranker)
    included = ["facts", "turns"]
    waiting = asyncio.create_task(answer(service, "Bern", include=included, rerank=True))
    await reranker.asked.wait()
    [memory] = await service.listed()
    await service.client.delete(f"/v1/memories/{memory['id']}/")
    reranker.answers.set()
    assert texts(await waiting) == []


async def test_a_search_behind_others_of_its_project_is_refused_with_429(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is not overloaded, so 503 would be wrong, and no narrower filter would help."""
    monkeypatch.setattr("pipeline.search.concurrency.PROJECT_AT_ONCE", 1)
    monkeypatch.setattr("pipeline.search.service.LONGEST_S", 0)
    limit = service.api.concurrency_limit
    async with limit.place(service.engine.project.id, within_s=60):
        got = await service.client.post(SEARCH, json={"query": KEY, "filters": MAYA})
    assert (got.status_code, got.headers["Retry-After"]) == (429, "1")
    assert "send fewer at once" in got.json()["error"]


async def test_what_the_reranker_was_not_shown_follows_in_fused_order(
    service: Service, reranker: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(service, "key key key", "key key of the house", "key of the old barn", "house")
    use(service, reranker)
    fused = texts(await answer(service, "key"))
    monkeypatch.setattr("pipeline.search.ranking.cutoff.AT_MOST", 2)
    body = await answer(service, "key", rerank=True)
    assert texts(body) == [*sorted(fused[:2], key=len), *fused[2:]]
    assert ["rerank" in row["score_breakdown"] for row in body["results"]] == [
        True, True, False, False,
    ]  # fmt: skip


async def test_a_reranker_gets_the_speaker_of_a_turn(service: Service, reranker: LLMServer) -> None:
    turns = [{"role": "user", "name": "Maya", "content": "My tent\nis green"}]
    await service.client.post("/v3/memories/add/", json={"messages": turns} | MAYA)
    use(service, reranker)
    body = await answer(service, "tent", include=["turns"], rerank=True)
    assert texts(body) == ["My tent\nis green"]
    assert reranker.calls[-1].prompt == "tent\nMaya: My tent is green"


# ── keyword_search, filter_memories ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", SEARCHES)
async def test_with_keyword_search_words_alone_are_enough(service: Service, path: str) -> None:
    await store(service, KEY, POT, TEA)
    body = await answer(service, "key", path=path, threshold=0.9)
    assert texts(body) == []
    body = await answer(service, "key", path=path, threshold=0.9, keyword_search=True)
    assert texts(body) == [KEY]
    assert body["results"][0]["score_breakdown"]["semantic"] < 0.9


@pytest.mark.parametrize("path", SEARCHES)
async def test_with_filter_memories_an_exact_hit_stands_alone(service: Service, path: str) -> None:
    await store(service, KEY, POT, TEA)
    assert len(texts(await answer(service, TEA, path=path))) == 3
    body = await answer(service, TEA, path=path, filter_memories=True, explain=True)
    assert texts(body) == [TEA]
    assert {line["verdict"] for line in body["explanation"]} == {"far_behind"}


@pytest.mark.parametrize("path", SEARCHES)
async def test_with_filter_memories_a_question_without_an_answer_finds_nothing(
    service: Service, path: str
) -> None:
    await store(service, KEY, POT, TEA)
    question = "Which helicopter did Oliver crash?"
    assert len(texts(await answer(service, question, path=path, threshold=0))) == 3
    body = await answer(
        service, question, path=path, threshold=0, filter_memories=True, explain=True
    )
    assert texts(body) == []
    assert {line["verdict"] for line in body["explanation"]} == {"far_behind"}
    assert all(line["score_breakdown"]["evidence"] < 0.4 for line in body["explanation"])


async def test_with_filter_memories_a_question_about_nothing_is_not_cut(service: Service) -> None:
    await store(service, KEY, POT, TEA)
    body = await answer(service, "What do you know?", threshold=0, filter_memories=True)
    assert len(texts(body)) == 3
    assert not any("evidence" in row["score_breakdown"] for row in body["results"])


async def test_filter_memories_judges_turns_by_their_words_and_their_speaker(
    service: Service,
) -> None:
    turns = [
        {"role": "user", "name": "Maya", "content": "I bought a tent"},
        {"role": "assistant", "name": "Jon", "content": "I bought a boat"},
    ]
    await service.client.post("/v3/memories/add/", json={"messages": turns} | MAYA)
    for question, text in (
        ("What tent did Maya buy?", "I bought a tent"),
        ("What did Jon buy?", "I bought a boat"),
    ):
        body = await answer(service, question, include=["turns"], filter_memories=True)
        assert texts(body) == [text]


async def test_filter_memories_goes_by_the_reranker_where_it_was_asked(
    service: Service, reranker: LLMServer
) -> None:
    await store(service, KEY, TEA, "Rye")
    use(service, reranker)
    assert texts(await answer(service, KEY, filter_memories=True, rerank=True)) == ["Rye"]
    reranker.on("rerank", "401")
    assert texts(await answer(service, KEY, filter_memories=True, rerank=True)) == [KEY]


# ── fields, latest_only ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", SEARCHES)
async def test_a_result_has_the_fields_asked_for_and_its_id(service: Service, path: str) -> None:
    await store(service, TEA, metadata={"cup": "blue", "sugar": 0})
    [row] = (await answer(service, "tea", path=path, fields=["score", "metadata.cup"]))["results"]
    assert set(row) == {"id", "score", "metadata"}
    assert row["metadata"] == {"cup": "blue"}


async def test_a_list_has_the_fields_asked_for_in_every_version(service: Service) -> None:
    await store(service, TEA, metadata={"cup": "blue", "sugar": 0})
    body = {"filters": MAYA, "fields": ["memory", "metadata.cup"], "latest_only": True}
    by_query = MAYA | {"fields": "memory,metadata.cup", "latest_only": "True"}
    rows = [
        (await service.client.post(LIST, json=body)).json()["results"],
        (await service.client.post("/v2/memories/", json=body)).json(),
        (await service.client.get("/v1/memories/", params=by_query)).json(),
    ]
    for [row] in rows:
        assert row == {"id": row["id"], "memory": TEA, "metadata": {"cup": "blue"}}


@pytest.mark.parametrize("path", [*SEARCHES, LIST, "/v2/memories/"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fields": [7]}, "fields.0: Input should be a valid string"),
        ({"latest_only": "perhaps"}, "latest_only: Input should be a valid boolean"),
    ],
)
async def test_what_lists_and_searches_cannot_mean_is_refused_with_what_they_can(
    service: Service, path: str, wrong: dict[str, Any], message: str
) -> None:
    refused = await service.client.post(path, json={"query": "tea", "filters": MAYA} | wrong)
    assert refused.status_code == 400
    assert refused.json()["error"].startswith(message)


@pytest.mark.parametrize(
    ("query", "message"),
    [({"latest_only": "7"}, "latest_only")],
)
async def test_a_query_string_is_refused_for_the_same(
    service: Service, query: dict[str, str], message: str
) -> None:
    refused = await service.client.get("/v1/memories/", params=MAYA | query)
    assert refused.status_code == 400
    assert message in refused.json()["error"]


@pytest.mark.parametrize("path", SEARCHES)
@pytest.mark.parametrize("option", ["rerank", "keyword_search", "filter_memories"])
async def test_an_option_that_is_neither_on_nor_off_is_refused_by_its_name(
    service: Service, path: str, option: str
) -> None:
    refused = await service.client.post(path, json={"query": "x", "filters": MAYA, option: "soon"})
    assert refused.status_code == 400
    assert refused.json()["error"].startswith(option)
