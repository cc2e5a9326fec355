"""Reads at a time: the answer is what the same read answered then."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.domain.events import Status
from pipeline.erasure import service as erasure
from pipeline.stores import Ledger
from tests.support.api_service import LIST, MAYA, SEARCH, Service, serving

CITIES = ("Berlin", "Porto", "Lisbon", "Oslo", "Lima")
HOBBIES = ("chess", "tennis", "sailing", "pottery")
USERS = ("maya", "omar")
JANUARY, MARCH, MAY, JULY = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 3, 5, 7))


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger, sync_wait_s=0.01) as built:
        yield built


async def listed(service: Service, user: str = "maya", **options: object) -> list[dict[str, Any]]:
    body = {"filters": {"user_id": user}, "page_size": 200, **options}
    answer = await service.client.post(LIST, json=body)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def texts(service: Service, **options: Any) -> list[str]:
    return sorted(row["memory"] for row in await listed(service, **options))


async def say(service: Service, text: str, at: datetime | None = None, **body: object) -> str:
    """Add a statement, said at a time; return the id of its event."""
    said_at = {"timestamp": int(at.timestamp())} if at else {}
    return await service.add(text, **said_at, **body)


async def note(service: Service, text: str, **body: object) -> str:
    """Add a text verbatim; return the id of its event."""
    return await service.add(text, infer=False, **body)


async def now(service: Service) -> str:
    return (await service.engine.ledger.now()).isoformat()


async def moved(service: Service) -> tuple[str, str, str]:
    """Maya moves from Porto to Lisbon. Returns the time between, the memory and the last event."""
    await say(service, "I live in Porto.", JANUARY)
    between = await now(service)
    event_id = await say(service, "I moved to Lisbon.", MAY)
    [row] = await listed(service)
    assert (row["memory"], row["version"]) == ("User lives in Lisbon", 2)
    return between, row["id"], event_id


# ── random histories ─────────────────────────────────────────────────────────────────────────────


class History:
    """Random operations of two users, and what the lists answered after each one."""

    def __init__(self, service: Service, seed: int) -> None:
        self.service = service
        self.random = random.Random(seed)
        self.events: list[str] = []
        self.answers: list[tuple[str, str, list[dict[str, Any]]]] = []

    async def run(self, steps: int) -> None:
        moves = [
            *[self.add] * 6, self.verbatim, *[self.edit] * 3, self.delete, *[self.undo] * 3,
            self.restore, self.clear, self.replay,
        ]  # fmt: skip
        for _ in range(steps):
            user = self.random.choice(USERS)
            await self.random.choice(moves)(user)
            for each in USERS:
                self.answers.append((await now(self.service), each, await self.all(each)))

    async def all(self, user: str, **options: object) -> list[dict[str, Any]]:
        """The user's list, without the flag of an open conflict, which only the present has."""
        rows = await listed(self.service, user, **options)
        return [row | {"conflict_id": None} for row in rows]

    async def add(self, user: str) -> None:
        pick = self.random.choice
        text = pick(
            (
                f"I live in {pick(CITIES)}.",
                f"I moved to {pick(CITIES)}.",
                f"I like {pick(HOBBIES)}.",
                f"I no longer like {pick(HOBBIES)}.",
            )
        )
        said_at = datetime(2026, self.random.randint(1, 9), 1, tzinfo=UTC)
        mode = pick(("consolidate", "append"))
        self.events.append(await say(self.service, text, said_at, user_id=user, mode=mode))

    async def verbatim(self, user: str) -> None:
        metadata = {"trip": self.random.choice(CITIES)}
        text = f"Note {self.random.random()}"
        self.events.append(await note(self.service, text, metadata=metadata, user_id=user))

    async def edit(self, user: str) -> None:
        if (row := await self.any_of(user)) is None:
            return
        change = self.random.choice(
            (
                {"text": f"Edited {self.random.random()}"},
                {"metadata": {"edited": self.random.randint(1, 9)}},
                {"expiration_date": "2020-01-01"},
                {"timestamp": "2026-02-02"},
            )
        )
        answer = await self.service.client.put(f"/v1/memories/{row['id']}/", json=change)
        assert answer.status_code == 200, answer.text

    async def delete(self, user: str) -> None:
        if row := await self.any_of(user):
            await self.service.client.delete(f"/v1/memories/{row['id']}/")

    async def undo(self, _: str) -> None:
        if self.events:
            event_id = self.random.choice(self.events[-6:])
            answer = await self.service.client.post(f"/v1/event/{event_id}/undo/", json={})
            assert answer.status_code in (200, 409), answer.text

    async def restore(self, user: str) -> None:
        if row := await self.any_of(user):
            version = {"version": self.random.randint(1, row["version"])}
            answer = await self.service.client.post(
                f"/v1/memories/{row['id']}/restore/", json=version
            )
            assert answer.status_code in (200, 400, 409), answer.text

    async def clear(self, user: str) -> None:
        if self.random.random() < 0.3:
            answer = await self.service.client.delete("/v1/memories/", params={"user_id": user})
            self.events.append(answer.json()["event_id"])

    async def replay(self, user: str) -> None:
        answer = await self.service.client.post("/v1/replays/", json={"user_id": user})
        if answer.status_code != 200:
            assert answer.status_code in (404, 409), answer.text
            return
        replay = f"/v1/replays/{answer.json()['id']}/"
        await self.service.engine.drain()
        switched = await self.service.client.post(f"{replay}switch/", json={"force": True})
        if switched.status_code != 200:
            await self.service.client.delete(replay)

    async def any_of(self, user: str) -> dict[str, Any] | None:
        rows = await self.all(user, show_expired=True)
        return self.random.choice(rows) if rows else None


@pytest.mark.parametrize("seed", range(4))
async def test_as_of_answers_what_the_list_answered_then(service: Service, seed: int) -> None:
    history = History(service, seed)
    await history.run(20)
    assert any(rows for _, _, rows in history.answers)
    for time, user, rows in history.answers:
        assert await history.all(user, as_of=time) == rows


async def test_erased_data_is_in_no_earlier_time(service: Service) -> None:
    history = History(service, 7)
    await history.run(12)
    assert any(rows for _, user, rows in history.answers if user == "omar")
    answer = await service.client.post("/v1/erasures/", json={"user_id": "omar"})
    ledger = service.engine.ledger
    await erasure.finish(erasures=ledger.erasures, index=service.engine.services.index)
    event = await service.event(answer.json()["event_id"])
    assert event["status"] == Status.SUCCEEDED
    for time, user, rows in history.answers:
        assert await history.all(user, as_of=time) == (rows if user == "maya" else [])


async def test_a_replay_is_not_read_before_its_switch(service: Service) -> None:
    _, memory_id, _ = await moved(service)
    path = f"/v1/memories/{memory_id}/"
    await service.client.put(path, json={"text": "User lives in Braga"})
    before, rows = await now(service), await listed(service)
    recorded = MAYA | {"answers": "recorded"}
    replay = (await service.client.post("/v1/replays/", json=recorded)).json()
    await service.engine.drain()
    assert await listed(service, as_of=await now(service)) == rows
    switch = f"/v1/replays/{replay['id']}/switch/"
    switched = await service.client.post(switch, json={"force": True})
    assert switched.status_code == 200, switched.text
    assert await texts(service) == ["User lives in Lisbon"]
    assert await listed(service, as_of=before) == rows
    assert await texts(service, valid_at=MARCH.isoformat()) == ["User lives in Porto"]


# ── get, list, search and export ─────────────────────────────────────────────────────────────────


async def test_now_gives_the_new_fact_and_an_earlier_time_the_old_one(service: Service) -> None:
    between, memory_id, _ = await moved(service)
    assert await texts(service) == ["User lives in Lisbon"]
    assert await texts(service, as_of=between) == ["User lives in Porto"]
    path = f"/v1/memories/{memory_id}/"
    past = (await service.client.get(path, params={"as_of": between})).json()
    assert (past["memory"], past["version"]) == ("User lives in Porto", 1)
    assert (await service.client.get(path, params={"as_of": "2020-01-01"})).status_code == 404


async def test_a_deleted_memory_is_read_at_an_earlier_time(service: Service) -> None:
    _, memory_id, _ = await moved(service)
    before = await now(service)
    path = f"/v1/memories/{memory_id}/"
    await service.client.delete(path)
    assert (await service.client.get(path)).status_code == 404
    assert (await service.client.get(path, params={"as_of": before})).status_code == 200
    assert await texts(service, as_of=before) == ["User lives in Lisbon"]
    assert await texts(service) == await texts(service, as_of=await now(service)) == []


async def test_an_interval_includes_its_start_and_not_its_end(service: Service) -> None:
    _, memory_id, _ = await moved(service)
    changes = (await service.client.get(f"/v1/memories/{memory_id}/history/")).json()
    stored = [change["created_at"] for change in changes]
    assert await texts(service, as_of=stored[0]) == ["User lives in Porto"]
    assert await texts(service, as_of=stored[1]) == ["User lives in Lisbon"]


async def test_all_three_lists_take_a_time(service: Service) -> None:
    between, _, _ = await moved(service)
    options = {"as_of": between, "user_id": "maya"}
    [row] = (await service.client.get("/v1/memories/", params=options)).json()
    [same] = (await service.client.post("/v2/memories/", json=options)).json()
    assert row == same
    assert row["memory"] == "User lives in Porto"


async def test_a_filter_compares_the_values_of_that_time(service: Service) -> None:
    await note(service, "Note", metadata={"state": "open"})
    [line] = await listed(service)
    between = await now(service)
    await service.client.put(f"/v1/memories/{line['id']}/", json={"metadata": {"state": "done"}})
    still_open = {"AND": [MAYA, {"metadata": {"state": "open"}}]}
    body = {"filters": still_open, "as_of": between}
    assert (await service.client.post(LIST, json=body)).json()["count"] == 1
    assert (await service.client.post(LIST, json={"filters": still_open})).json()["count"] == 0


async def test_an_expired_memory_is_listed_at_a_time_before_its_date(service: Service) -> None:
    await note(service, "Note")
    [line] = await listed(service)
    between = await now(service)
    path = f"/v1/memories/{line['id']}/"
    await service.client.put(path, json={"expiration_date": "2020-01-01"})
    assert await texts(service) == []
    assert await texts(service, as_of=between) == ["Note"]
    assert await texts(service, valid_at="2019-12-31") == []
    await service.client.put(path, json={"timestamp": "2019-01-01"})
    assert await texts(service, valid_at="2019-12-31") == ["Note"]
    assert await texts(service, valid_at="2020-01-02") == []


async def search(service: Service, query: str, **options: object) -> list[str]:
    body = {"query": query, "filters": MAYA, "threshold": 0} | options
    answer = await service.client.post(SEARCH, json=body)
    assert answer.status_code == 200, answer.text
    assert not answer.json()["degraded"]
    assert not answer.json()["incomplete"]
    return [row["memory"] for row in answer.json()["results"]]


async def test_a_search_ranks_the_states_of_its_time_by_words_and_meaning(
    service: Service,
) -> None:
    between, _, _ = await moved(service)
    assert await search(service, "Porto") == ["User lives in Lisbon"]
    assert await search(service, "Porto", as_of=between) == ["User lives in Porto"]
    body = {"query": "User lives in Porto", "filters": MAYA, "as_of": between}
    [hit] = (await service.client.post(SEARCH, json=body)).json()["results"]
    assert hit["score_breakdown"]["semantic"] == pytest.approx(1.0, abs=1e-3)
    assert hit["score_breakdown"]["lexical"] > 0
    assert (hit["version"], hit["lifecycle_state"]) == (1, "active")


async def test_turns_of_a_search_are_those_of_its_time(service: Service) -> None:
    between, _, _ = await moved(service)
    turns = {"include": ["turns"], "as_of": between}
    assert await search(service, "Lisbon Porto", **turns) == ["I live in Porto."]
    both = {"include": ["turns"]}
    assert len(await search(service, "Lisbon Porto", **both)) == 2


async def test_context_turns_are_those_around_the_statement_of_that_time(service: Service) -> None:
    await service.add("I live in Porto.", "My cat is called Tom.")
    between = await now(service)
    await service.add("I moved to Lisbon.")
    body = {"query": "Porto", "filters": MAYA, "as_of": between, "context_turns": 1, "top_k": 1}
    [hit] = (await service.client.post(SEARCH, json=body)).json()["results"]
    assert [turn["memory"] for turn in hit["context"]] == ["My cat is called Tom."]


async def test_an_export_reads_the_memories_of_its_time(service: Service) -> None:
    between, _, _ = await moved(service)
    body = {
        "filters": MAYA,
        "schema": {"type": "object", "properties": {"facts": {"type": "string"}}},
    }
    answers = {}
    for name, options in {"now": {}, "then": {"as_of": between}}.items():
        export = await service.client.post("/v1/exports/", json=body | options)
        assert export.status_code == 201, export.text
        await service.engine.drain()
        get = {"filters": MAYA} | options
        answers[name] = (await service.client.post("/v1/exports/get/", json=get)).json()
    assert "Lisbon" in str(answers["now"])
    assert "Porto" in str(answers["then"])


# ── the world's time ─────────────────────────────────────────────────────────────────────────────


async def test_valid_at_gives_what_held_then(service: Service) -> None:
    between, memory_id, _ = await moved(service)
    assert await texts(service, valid_at=MARCH.isoformat()) == ["User lives in Porto"]
    assert await texts(service, valid_at=MAY.isoformat()) == ["User lives in Lisbon"]
    assert await texts(service, valid_at=JULY.isoformat()) == ["User lives in Lisbon"]
    assert await texts(service, valid_at="2025-12-31") == []
    assert await texts(service, valid_at=JULY.isoformat(), as_of=between) == ["User lives in Porto"]
    [row] = await listed(service, valid_at=MARCH.isoformat())
    assert (row["lifecycle_state"], row["replaced_by"]) == ("superseded", memory_id)
    assert await search(service, "Porto", valid_at="2026-03-01") == ["User lives in Porto"]


async def test_a_late_statement_holds_until_the_memory_begins(service: Service) -> None:
    await say(service, "I moved to Lisbon.", MAY)
    await say(service, "I live in Porto.", JANUARY)
    assert await texts(service) == ["User lives in Lisbon"]
    assert await texts(service, valid_at=MARCH.isoformat()) == ["User lives in Porto"]
    assert await texts(service, valid_at=JULY.isoformat()) == ["User lives in Lisbon"]
    [row] = await listed(service)
    get = await service.client.get(f"/v1/memories/{row['id']}/", params={"valid_at": "2026-03-01"})
    assert (get.json()["memory"], get.json()["replaced_by"]) == (
        "User lives in Porto",
        row["id"],
    )


async def test_what_was_corrected_or_undone_never_held(service: Service) -> None:
    _, memory_id, event_id = await moved(service)
    await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    assert await texts(service, valid_at=JULY.isoformat()) == ["User lives in Porto"]
    path = f"/v1/memories/{memory_id}/"
    await service.client.put(path, json={"text": "User lives in Braga"})
    assert await texts(service, valid_at=MARCH.isoformat()) == ["User lives in Braga"]
    await service.client.delete(path)
    assert await texts(service, valid_at=MARCH.isoformat()) == []


async def test_of_appended_statements_the_newest_one_that_holds_counts(service: Service) -> None:
    for text, month in (("I live in Porto.", JANUARY), ("I live in Lisbon.", MAY)):
        await say(service, text, month, mode="append")
    assert await texts(service) == await texts(service, valid_at=JULY.isoformat())
    assert await texts(service) == ["User lives in Lisbon"]
    assert await texts(service, valid_at=MARCH.isoformat()) == ["User lives in Porto"]
    assert len(await listed(service, as_of=await now(service), show_superseded=True)) == 2
    assert len(await listed(service, include_superseded=True)) == 2


# ── superseded and merged ────────────────────────────────────────────────────────────────────────


async def test_superseded_statements_are_listed_on_request(service: Service) -> None:
    between, memory_id, event_id = await moved(service)
    await say(service, "I live in Berlin.", datetime(2025, 1, 1, tzinfo=UTC))
    rows = await listed(service, include_superseded=True)
    states = {row["memory"]: (row["lifecycle_state"], row["replaced_by"]) for row in rows}
    assert states == {
        "User lives in Lisbon": ("active", None),
        "User lives in Porto": ("superseded", memory_id),
        "User lives in Berlin": ("superseded", memory_id),
    }
    assert len({row["id"] for row in rows}) == 3
    for row in rows:
        path = f"/v1/memories/{row['id']}/"
        get = await service.client.get(path, params={"include_superseded": "true"})
        assert get.json() == row
        assert ((await service.client.get(path)).status_code == 200) == (row["id"] == memory_id)
    assert len(await listed(service, include_superseded=True, as_of=between)) == 1
    assert await listed(service, include_superseded=True, latest_only=True) == await listed(service)
    assert set(await search(service, "user", include_superseded=True)) == set(states)
    await service.client.post(f"/v1/event/{event_id}/undo/", json={})
    rows = await listed(service, include_superseded=True)
    assert "User lives in Lisbon" not in {row["memory"] for row in rows}
