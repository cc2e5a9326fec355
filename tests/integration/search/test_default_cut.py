"""The default cut over HTTP: what it leaves out, what turns it off, and what the answer says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.api_service import MAYA, SEARCH, Service, serving
from tests.support.engine import Engine

KEY, PIANO = "The spare key is under the blue flower pot", "User plays the piano on Sundays"
OTHERS = (
    "Tea with honey", "A ticket to Rome", "The cat sleeps", "Rain in May", "New shoes",
    "Red apples", "A slow train", "Cold soup", "Seven candles", "Warm gloves", "An old map",
    "Green paint", "Soft bread", "A loud clock", "Two bicycles", "Blue ink", "A wooden spoon",
    "Sweet plums", "Dry leaves", "A long letter",
)  # fmt: skip
QUERY = "Where is the spare key?"


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger, workers=True) as built:
        # A day apart: each memory stands alone, not in a conversation.
        for day, text in enumerate((KEY, PIANO, *OTHERS)):
            await built.add(text, infer=False, timestamp=1_767_600_000 + 86_400 * day)
        yield built


async def answer(service: Service, query: str = QUERY, **options: object) -> dict[str, Any]:
    body = {"query": query, "filters": MAYA, "explain": True} | options
    got = await service.client.post(SEARCH, json=body)
    assert got.status_code == 200, got.text
    return dict(got.json())


def texts(body: dict[str, Any]) -> list[str]:
    return [row["memory"] for row in body["results"]]


async def test_a_plain_search_leaves_out_what_shows_no_sign_of_an_answer(service: Service) -> None:
    uncut, cut = await asyncio.gather(answer(service, top_k=10), answer(service))
    left_out = [text for text in texts(uncut) if text not in texts(cut)]
    assert texts(cut)[0] == KEY
    assert left_out
    assert cut["cut"] == {
        "left_out": len(left_out),
        "first_rank": 1 + texts(uncut).index(left_out[0]),
        "reason": "no_evidence",
    }
    verdicts = [row["verdict"] for row in cut["explanation"]]
    assert verdicts.count("no_evidence") == len(left_out)
    assert all("closeness" in row["score_breakdown"] for row in cut["explanation"])


async def test_a_narrow_filter_makes_no_longer_answer(service: Service) -> None:
    body = {"query": QUERY, "filters": {"AND": [MAYA, {"created_at": {"gt": "2020-01-01"}}]}}
    wide = (await service.client.post(SEARCH, json=body)).json()
    narrow = await answer(service, filters={"AND": [MAYA, {"text": {"contains": "e"}}]})
    assert texts(wide)[0] == texts(narrow)[0] == KEY
    assert len(texts(narrow)) <= len(texts(wide))


async def test_memories_that_came_together_are_cut_like_others(engine: Engine) -> None:
    async with serving(engine.ledger, workers=True) as service:
        for second, text in enumerate((KEY, PIANO, *OTHERS)):
            await service.add(text, infer=False, timestamp=1_767_600_000 + second)
        assert texts(await answer(service)) == [KEY]


async def test_messages_between_two_speakers_are_kept(engine: Engine) -> None:
    async with serving(engine.ledger, workers=True) as service:
        for second, text in enumerate((KEY, PIANO, *OTHERS)):
            message = {"role": "user", "name": ("Ana", "Leo")[second % 2], "content": text}
            await service.add(messages=[message], infer=False, timestamp=1_767_600_000 + second)
        uncut, body = await asyncio.gather(answer(service, top_k=10), answer(service))
    assert "cut" not in body
    assert texts(body) == texts(uncut)


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 10},
        {"threshold": 0.1},
        {"max_tokens": 500},
        {"keyword_search": True},
        {"rerank": True},
        {"query": "What do you know about me?"},
        {"query": "鍵はどこですか"},
    ],
    ids=str,
)
async def test_explicit_settings_and_open_questions_are_not_cut(
    service: Service, options: dict[str, Any]
) -> None:
    body = await answer(service, **options)
    assert "cut" not in body
    assert "no_evidence" not in [row["verdict"] for row in body.get("explanation", ())]


async def test_a_null_is_no_explicit_setting(service: Service) -> None:
    assert "cut" in await answer(service, top_k=None, threshold=None)


async def test_a_project_turns_the_cut_off(service: Service) -> None:
    project = service.engine.project
    path = f"/api/v1/orgs/organizations/{project.organization_id}/projects/{project.id}/"
    assert (await service.client.get(path)).json()["default_cut"] is True
    uncut = await answer(service, top_k=10)
    changed = await service.client.patch(path, json={"default_cut": False})
    assert changed.status_code == 200, changed.text
    body = await answer(service)
    assert "cut" not in body
    assert texts(body) == texts(uncut)
