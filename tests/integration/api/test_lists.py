"""Lists and searches over HTTP."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from api.http import large_answers, paging
from pipeline.tenants import owners
from tests.support.api_service import ADD, LIST, MAYA, SEARCH, Service, error_of, verbatim
from tests.support.plans import recorded


async def test_pages_follow_each_other_by_their_urls(service: Service) -> None:
    texts = [f"Note {n}" for n in range(5)]
    await verbatim(service, *texts)
    body = {"filters": MAYA}
    first = (await service.client.post(f"{LIST}?page_size=2", json=body)).json()
    assert (first["count"], first["previous"]) == (5, None)
    pages, url = [first], first["next"]
    while url:
        assert url.startswith("http://memlane/v3/memories/?")
        pages.append((await service.client.post(url, json=body)).json())
        url = pages[-1]["next"]
    listed = [row["memory"] for page in pages for row in page["results"]]
    assert listed == texts[::-1]  # newest first
    assert [len(page["results"]) for page in pages] == [2, 2, 1]
    back = (await service.client.post(pages[2]["previous"], json=body)).json()
    assert back["results"] == pages[1]["results"]


@pytest.mark.parametrize("inline_rows", [0, 100], ids=["beside the loop", "on the loop"])
async def test_pages_that_end_early_by_their_bytes_follow_each_other_by_offset(
    service: Service, monkeypatch: pytest.MonkeyPatch, inline_rows: int
) -> None:
    texts = ["x" * 200 * n + f"Note {n}" for n in range(6)]
    await verbatim(service, *texts)
    monkeypatch.setattr(large_answers, "INLINE_ROWS", inline_rows)
    monkeypatch.setattr(paging, "LARGEST_ANSWER_BYTES", 2_500)
    url, listed, pages = f"{LIST}?page_size=5", [], 0
    while url:
        page = (await service.client.post(url, json={"filters": MAYA})).json()
        listed += [row["memory"] for row in page["results"]]
        assert page["count"] == len(texts)
        url, pages = page["next"], pages + 1
    assert listed == texts[::-1]
    assert pages > 2


async def test_entities_are_described_until_a_page_is_full(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "LARGEST_ANSWER_BYTES", 2_500)
    monkeypatch.setattr(owners, "DESCRIBED_AT_ONCE", 2)
    ledger, project_id = service.engine.ledger, service.engine.project.id
    notes = {f"u{n:02}": {"note": str(n) * 300} if n % 3 else {} for n in range(20)}
    for name, metadata in notes.items():
        await ledger.owners.register(project_id, "user", name, name=name, metadata=metadata)
    listed: dict[str, Any] = {}
    url, sizes, reads = "/v1/entities/", [], []
    while url:
        with recorded(ledger.engine) as statements:
            page = (await service.client.get(url)).json()
        reads.append(sum("described (kind, id)" in words for words, _ in statements))
        listed |= {row["id"]: row["metadata"] or {} for row in page["results"]}
        sizes.append(len(page["results"]))
        assert page["count"] == page["total_users"] == len(notes)
        url = page["next"]
    assert listed == notes
    assert len(sizes) > 1
    assert sum(sizes) == len(notes)
    assert 1 <= reads[0] <= 5  # of ten


async def test_a_large_answer_is_the_same_as_a_small_one(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await verbatim(
        service, "In \u00c5lesund \u2028 \U0001f600", metadata={"a": 1.5, "b": [None, True]}
    )
    question = {"query": "Where?", "filters": MAYA, "threshold": 0.0}

    async def answers() -> list[bytes]:
        paths = ("/v1/memories/?user_id=maya", "/v1/events/", "/v1/memories/events/")
        read = [await service.client.get(path) for path in paths]
        read += [await service.client.post(LIST, json={"filters": MAYA})]
        read += [await service.client.post(SEARCH, json=question)]
        return [answer.content for answer in read]

    small = await answers()
    monkeypatch.setattr(large_answers, "INLINE_ROWS", -1)
    assert await answers() == small


async def test_page_and_size_may_stand_in_the_body(service: Service) -> None:
    await verbatim(service, "Note 1", "Note 2", "Note 3")
    answer = await service.client.post(LIST, json={"filters": MAYA, "page": 2, "page_size": 1})
    body = answer.json()
    assert [row["memory"] for row in body["results"]] == ["Note 2"]
    assert "page=3" in body["next"]
    assert "page=1" in body["previous"]


async def test_a_page_beyond_the_last_is_not_found(service: Service) -> None:
    await verbatim(service, "Note 1")
    body = {"filters": MAYA}
    assert (await service.client.post(f"{LIST}?page=1&page_size=1", json=body)).is_success
    answer = await service.client.post(f"{LIST}?page=2&page_size=1", json=body)
    assert (answer.status_code, error_of(answer)) == (404, "Invalid page.")


async def test_an_empty_list_is_a_page_too(service: Service) -> None:
    answer = await service.client.post(LIST, json={"filters": MAYA})
    assert answer.json() == {"count": 0, "next": None, "previous": None, "results": []}


async def test_lists_read_the_filters_and_only_them(service: Service) -> None:
    await verbatim(service, "In Lisbon", metadata={"trip": "lisbon"})
    await verbatim(service, "In Oslo", metadata={"trip": "oslo"})
    [row] = await service.listed(AND=[MAYA, {"metadata": {"trip": "oslo"}}])
    assert row["memory"] == "In Oslo"
    assert await service.listed(user_id="jon") == []
    assert len(await service.listed(userId="maya")) == 2
    assert len(await service.listed(OR=[MAYA, {"user_id": "jon"}])) == 2


async def test_expired_memories_are_shown_only_when_asked_for(service: Service) -> None:
    await verbatim(service, "Old news", expiration_date=date(2020, 1, 1))
    body = {"filters": MAYA}
    assert (await service.client.post(LIST, json=body)).json()["count"] == 0
    shown = await service.client.post(LIST, json=body | {"show_expired": True})
    assert shown.json()["results"][0]["expiration_date"] == "2020-01-01"
    assert await service.search("news") == []
    assert len(await service.search("news", show_expired=True)) == 1


async def test_a_search_ranks_what_it_finds_and_says_why(service: Service) -> None:
    await service.add("I live in Berlin. I like jazz.")
    results = await service.search("jazz", threshold=0)
    assert "jazz" in results[0]["memory"]
    scores = [row["score"] for row in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert set(results[0]["score_breakdown"]) == {"semantic", "bm25", "entity", "lexical", "terms"}
    assert sum(results[0]["score_breakdown"]["terms"].values()) == pytest.approx(
        scores[0], abs=1e-3
    )
    assert len(await service.search("jazz", top_k=1, threshold=0)) == 1


async def test_a_search_brings_turns_in_the_keys_of_memories(service: Service) -> None:
    await service.add("I live in Berlin.")
    facts = await service.search("Berlin", threshold=0)
    assert {row["type"] for row in facts} == {"fact"}
    rows = await service.search("Berlin", threshold=0, include=["facts", "turns"])
    by_type = {row["type"]: row for row in rows}
    assert by_type["turn"]["memory"] == "I live in Berlin."
    assert by_type["turn"]["pending"] is False
    lacking = set(by_type["fact"]) - set(by_type["turn"])
    assert not lacking


async def test_a_search_makes_a_context_for_a_prompt(service: Service) -> None:
    await service.add("I live in Berlin.", timestamp="2024-05-07")
    query = {"query": "Berlin", "filters": MAYA, "threshold": 0, "max_tokens": 200}
    body = (await service.client.post(SEARCH, json=query)).json()
    assert "2024-05-07 I live in Berlin." in body["context"]
    assert body["context_sources"] == [
        row["id"] for row in sorted(body["results"], key=lambda row: (row["timestamp"], row["id"]))
    ]
    assert 0 < body["context_tokens"] <= 200


async def test_a_search_explains_what_became_of_a_memory(service: Service) -> None:
    await service.add("I live in Berlin. I like jazz.")
    every = {"query": "Berlin", "filters": MAYA, "threshold": 0}
    rows = (await service.client.post(SEARCH, json=every)).json()["results"]
    query = every | {"top_k": 1, "explain": [row["id"] for row in rows], "context_turns": 1}
    explained = (await service.client.post(SEARCH, json=query)).json()["explanation"]
    assert [line["verdict"] for line in explained] == ["returned", "beyond_top_k"]
    assert [line["rank"] for line in explained] == [1, 2]
    assert all(line["detail"] and line["score_breakdown"]["terms"] for line in explained)


@pytest.mark.parametrize(
    "wrong",
    [
        {"include": []},
        {"include": ["everything"]},
        {"context_turns": 11},
        {"max_tokens": 0},
        {"explain": ["no-id"]},
        {"reference_date": "soon"},
    ],
)
async def test_a_search_option_that_cannot_be_is_refused_by_its_name(
    service: Service, wrong: dict[str, Any]
) -> None:
    body = {"query": "Berlin", "filters": MAYA} | wrong
    refused = await service.client.post(SEARCH, json=body)
    assert refused.status_code == 400
    assert next(iter(wrong)) in refused.text


async def test_a_search_brings_the_relations_around_it(service: Service) -> None:
    await service.add("I live in Berlin.")
    answer = await service.client.post(SEARCH, json={"query": "Berlin", "filters": MAYA})
    body = answer.json()
    assert body["degraded"] is False
    assert "Berlin" in {relation["target"] for relation in body["relations"]}


async def test_a_search_finds_nothing_of_another_user(service: Service) -> None:
    await service.add("I like jazz.")
    assert await service.search("jazz", filters={"user_id": "jon"}) == []


async def test_lists_of_rows_of_scopes_are_those_of_the_ids(service: Service) -> None:
    for user in ("maya", "ines"):
        note = {"messages": f"Note of {user}", "infer": False, "user_id": user}
        assert (await service.client.post(ADD, json=note)).status_code == 200
        await service.engine.drain()
        for path in ("/v1/curator/runs/", "/v1/replays/"):
            started = await service.client.post(path, json={"user_id": user})
            assert started.status_code == 200, started.text
    for path in ("/v1/memories/events/", "/v1/curator/runs/", "/v1/replays/"):
        every = (await service.client.get(path)).json()
        rows = {}
        for user in ("maya", "ines", "unknown"):
            page = (await service.client.get(path, params={"user_id": user})).json()
            assert page["count"] == len(page["results"])
            rows[user] = page["results"]
        assert (len(rows["maya"]), len(rows["ines"]), rows["unknown"]) == (1, 1, [])
        assert every["count"] == 2
        newest_first = rows["ines"] + rows["maya"]
        assert [row["id"] for row in every["results"]] == [row["id"] for row in newest_first]
        blank = await service.client.get(path, params={"user_id": " "})
        assert (blank.status_code, "user_id is blank" in error_of(blank)) == (400, True)
