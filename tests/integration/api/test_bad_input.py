"""The HTTP API over a real ledger, without Celery: tests run the queued hints themselves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text as sql
from structlog.testing import capture_logs

from api.access_log import AccessLog
from api.app import create_app, limits
from api.auth.key_cache import KeyRing
from api.backpressure import Gate
from api.dependencies import Api
from api.errors import LEDGER_DOWN, OUTCOME_UNKNOWN
from api.event_watch import EventWatch
from api.figures import Figures
from deploy.stack.servers import Postgres
from pipeline import __version__
from pipeline.adapters.model_rules import RulesModel
from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.bootstrap import Stores
from pipeline.domain.events import AddOptions, Instructions, StageName
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.filters import parse
from pipeline.domain.lanes import Wake
from pipeline.domain.passages import PassageKey
from pipeline.domain.usage import Answer
from pipeline.domain.vectors import from_bytes
from pipeline.lanes.load import LoadView
from pipeline.ledger.engine import connect
from pipeline.migrate import migrate
from pipeline.ports import Dispatcher, ExtractionRequest
from pipeline.search.store import Where
from pipeline.settings import Settings
from pipeline.stores import Ledger
from pipeline.vector_index.index import VectorIndex
from tests.support.described import as_described
from tests.support.engine import Engine, build_ledger

NOBODY_LISTENS = "http://127.0.0.1:9"
ADD, LIST, SEARCH = "/v3/memories/add/", "/v3/memories/", "/v3/memories/search/"
MAYA = {"user_id": "maya"}
LIVES = {"messages": "I live in Berlin."} | MAYA


@dataclass
class Workers:
    """Dispatcher that runs each hint at once, in a background task."""

    engine: Engine
    running: list[asyncio.Task[None]] = field(default_factory=list)

    def kick(self, wake: Wake, project_id: UUID) -> None:
        self.engine.hints.kick(wake, project_id)
        self.running.append(asyncio.create_task(self.engine.drain()))


@dataclass
class Service:
    """The API of one process, its engine, and a client with the project's key."""

    engine: Engine
    key: str
    client: httpx.AsyncClient
    app: FastAPI

    @property
    def api(self) -> Api:
        api: Api = self.app.state.api
        return api

    async def add(self, *texts: str, **body: object) -> str:
        """Add messages and run the workers; return the event id."""
        turns = [{"role": "user", "content": text} for text in texts]
        answer = await self.client.post(ADD, json={"messages": turns} | MAYA | body)
        assert answer.status_code == 200, answer.text
        await self.engine.drain()
        return str(answer.json()["event_id"])

    async def event(self, event_id: str) -> dict[str, Any]:
        return dict((await self.client.get(f"/v1/event/{event_id}/")).json())

    async def listed(self, **filters: object) -> list[dict[str, Any]]:
        answer = await self.client.post(LIST, json={"filters": filters or MAYA})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["results"])

    async def search(self, query: str, **body: object) -> list[dict[str, Any]]:
        answer = await self.client.post(SEARCH, json={"query": query, "filters": MAYA} | body)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["results"])


@asynccontextmanager
async def serving(
    ledger: Ledger, *, sync_wait_s: float = 30.0, workers: bool = False
) -> AsyncIterator[Service]:
    """A service as the API's lifespan builds it, with fakes for vectors and broker."""
    project, key = await ledger.projects.create("mine")
    engine = replace(await Engine.create(ledger), project=project)
    services = engine.services
    chroma = ChromaVectors(NOBODY_LISTENS)
    stores = Stores(ledger, chroma, services.embedder, services.index, engine.turns)
    settings = Settings(sync_wait_s=sync_wait_s, max_body_bytes=100_000)
    watch = EventWatch(ledger.events)
    dispatcher: Dispatcher = Workers(engine) if workers else engine.hints
    app = create_app(settings)
    gate = Gate(LoadView(ledger.engine), limits(settings))
    figures = Figures(ledger.books)
    keys, accesses = KeyRing(ledger.keys), AccessLog(ledger.accesses)
    app.state.api = Api(settings, stores, dispatcher, keys, watch, gate, figures, accesses)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport,
        base_url="http://memlane",
        headers={"Authorization": f"Token {key}", "Content-Type": "application/json"},
        event_hooks={"response": [as_described]},
    ) as client:
        yield Service(engine, key, client, app)
    await watch.close()
    await stores.vectors.close()


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    """Log lines of a test, captured instead of printed."""
    with capture_logs() as lines:
        yield lines


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


@pytest.fixture
async def staffed(ledger: Ledger) -> AsyncIterator[Service]:
    """A service whose workers run at once, for requests that wait for a result."""
    async with serving(ledger, workers=True) as built:
        yield built


@pytest.fixture(scope="module")
async def shared(postgres: Postgres, template: str) -> AsyncIterator[Service]:
    """One service for all tests that change nothing."""
    name = f"test_{uuid4().hex}"
    admin = connect(postgres.url, pool_size=1)
    alone = admin.execution_options(isolation_level="AUTOCOMMIT")
    async with alone.connect() as connection:
        await connection.execute(sql(f"CREATE DATABASE {name} TEMPLATE {template}"))
    ledger = build_ledger(postgres.url.rpartition("/")[0] + "/" + name)
    async with serving(ledger) as built:
        yield built
    await ledger.close()
    async with alone.connect() as connection:
        await connection.execute(sql(f"DROP DATABASE {name} WITH (FORCE)"))
    await admin.dispose()


@asynccontextmanager
async def stranger(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the same server without a key."""
    transport = httpx.ASGITransport(service.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://memlane") as client:
        yield client


def said(answer: httpx.Response) -> str:
    """Message of an error, which must be the same under each key that clients read."""
    body = answer.json()
    assert isinstance(body["error"], str), body
    assert body["error"] == body["detail"] == body["message"]
    return str(body["error"])


# ── add ──────────────────────────────────────────────────────────────────────────────────────────


async def test_an_add_is_pending_then_worked_off_and_its_event_is_the_receipt(
    service: Service,
) -> None:
    answer = await service.client.post(ADD, json=LIVES | {"metadata": {"trip": "x"}})
    assert answer.status_code == 200
    accepted = answer.json()
    assert accepted == {"event_id": accepted["event_id"], "status": "PENDING"}
    waiting = await service.event(accepted["event_id"])
    assert (waiting["status"], waiting["results"], waiting["completed_at"]) == ("PENDING", [], None)
    await service.engine.drain()
    event = await service.event(accepted["event_id"])
    assert event["status"] == "SUCCEEDED"
    [line] = event["results"]
    [stored] = await service.listed()
    assert (line["event"], line["id"]) == ("ADD", stored["id"])
    assert line["memory"] == line["data"]["memory"] == stored["memory"]
    assert "Berlin" in stored["memory"]
    assert line["reason"]
    assert (event["error"], event["code"]) == (None, None)
    assert event["payload"]["messages"] == [{"role": "user", "content": "I live in Berlin."}]
    assert event["payload"]["user_id"] == "maya"
    assert event["metadata"] == stored["metadata"] == {"trip": "x"}
    assert event["latency"] > 0
    assert {run["stage"] for run in event["stages"]} >= {"extract", "apply"}


async def test_a_version_1_add_is_queued_in_the_words_of_its_clients(service: Service) -> None:
    answer = await service.client.post("/v1/memories/", json=LIVES | {"output_format": "v1.1"})
    body = answer.json()
    [queued] = body["results"]
    assert (queued["status"], body["relations"]) == ("PENDING", [])
    assert queued["message"]
    await service.engine.drain()
    assert (await service.event(queued["event_id"]))["status"] == "SUCCEEDED"


@pytest.mark.parametrize("version", [{}, {"output_format": "v1.0"}, {"version": "v2"}])
async def test_a_version_1_add_answers_with_a_bare_list_unless_v1_1_is_asked_for(
    version: dict[str, str], service: Service
) -> None:
    answer = await service.client.post("/v1/memories/", json=LIVES | version)
    [queued] = answer.json()
    assert queued["status"] == "PENDING"


async def test_an_add_without_inference_answers_with_what_was_stored(staffed: Service) -> None:
    answer = await staffed.client.post(ADD, json=LIVES | {"infer": False})
    body = answer.json()
    assert (body["status"], body["message"]) == ("SUCCEEDED", "Memories stored.")
    [line] = body["results"]
    assert (line["event"], line["data"]) == ("ADD", {"memory": "I live in Berlin."})
    [stored] = await staffed.listed()
    assert (stored["id"], stored["memory"]) == (line["id"], "I live in Berlin.")


async def test_a_version_1_add_may_wait_for_its_results(staffed: Service) -> None:
    answer = await staffed.client.post("/v1/memories/", json=LIVES | {"async_mode": False})
    [line] = answer.json()
    assert line["event"] == "ADD"
    assert "Berlin" in line["memory"]


async def test_an_add_that_takes_longer_than_a_request_may_is_pending(ledger: Ledger) -> None:
    async with serving(ledger, sync_wait_s=0.01) as slow:
        answer = await slow.client.post(ADD, json=LIVES | {"infer": False})
        body = answer.json()
        assert (body["status"], body["results"]) == ("PENDING", [])
        await slow.engine.drain()
        assert (await slow.event(body["event_id"]))["status"] == "SUCCEEDED"


async def test_a_turn_of_small_talk_succeeds_with_a_note(service: Service) -> None:
    event = await service.event(await service.add("How are you today?"))
    assert (event["status"], event["results"]) == ("SUCCEEDED", [])
    assert event["note"]


async def test_an_id_that_is_null_or_blank_is_as_good_as_none(service: Service) -> None:
    body = LIVES | {"agent_id": None, "app_id": "", "run_id": " "}
    answer = await service.client.post(ADD, json=body)
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    [stored] = await service.listed()
    assert (stored["agent_id"], stored["app_id"], stored["run_id"]) == (None, None, None)


async def test_ids_inside_filters_are_the_scope(service: Service) -> None:
    body = {"messages": "I like jazz.", "filters": MAYA}
    assert (await service.client.post(ADD, json=body)).status_code == 200
    await service.engine.drain()
    [stored] = await service.listed()
    assert stored["user_id"] == "maya"


async def test_what_users_say_reaches_no_log(
    service: Service, logged: list[MutableMapping[str, Any]]
) -> None:
    await service.add("My cat is called Zerberus.", metadata={"where": "Zerberus"})
    await service.search("Zerberus", threshold=0)
    [stored] = await service.listed()
    await service.client.put(f"/v1/memories/{stored['id']}/", json={"text": "Zerberus the cat"})
    assert {line["event"] for line in logged} >= {"stage_finished", "batch_settled"}
    assert not [line for line in logged if "Zerberus" in str(line)]


async def test_a_timestamp_says_when_it_was_true(service: Service) -> None:
    await service.add("I like jazz.", timestamp=1_772_323_200)
    [stored] = await service.listed()
    assert stored["timestamp"].startswith("2026-03-01T00:00:00")
    assert stored["created_at"].startswith("2026-03-01T00:00:00")


async def test_numbers_that_json_does_not_know_are_kept_as_null_or_refused(
    service: Service,
) -> None:
    body = b'{"messages": "I like jazz.", "user_id": "maya", "metadata": {"n": NaN}}'
    answer = await service.client.post(ADD, content=body)
    assert answer.status_code in (200, 400), answer.text
    await service.engine.drain()
    assert all(row["metadata"] in (None, {"n": None}) for row in await service.listed())


async def test_a_form_is_refused_with_the_content_type_to_send(service: Service) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await service.client.post(ADD, content=json.dumps(LIVES), headers=form)
    assert answer.status_code == 400
    assert "Content-Type: application/json" in said(answer)
    assert "form-urlencoded" in said(answer)


async def test_a_body_over_the_limit_is_refused_as_json(service: Service) -> None:
    answer = await service.client.post(ADD, json=LIVES | {"messages": "x" * 100_001})
    assert answer.status_code == 413
    assert "MEMLANE_MAX_BODY_BYTES" in said(answer)


# ── list ─────────────────────────────────────────────────────────────────────────────────────────


async def verbatim(service: Service, *texts: str, **options: Any) -> None:
    """Store these texts as they are, one event each, oldest first."""
    for text in texts:
        await service.engine.add(text, options=AddOptions(infer=False, **options))
        await service.engine.drain()


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
    assert (answer.status_code, said(answer)) == (404, "Invalid page.")


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


# ── search ───────────────────────────────────────────────────────────────────────────────────────


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


# ── one memory ───────────────────────────────────────────────────────────────────────────────────


async def test_a_memory_is_read_changed_and_deleted_and_its_history_stays(
    service: Service,
) -> None:
    event_id = await service.add("I like jazz.")
    [stored] = await service.listed()
    path = f"/v1/memories/{stored['id']}/"
    assert (await service.client.get(path)).json() == stored
    assert (stored["user_id"], stored["version"], stored["event_id"]) == ("maya", 1, event_id)

    edited = await service.client.put(path, json={"text": "Maya likes bossa nova."})
    assert (edited.json()["memory"], edited.json()["version"]) == ("Maya likes bossa nova.", 2)
    assert [row["id"] for row in await service.search("bossa")] == [stored["id"]]

    deleted = await service.client.delete(path)
    assert (deleted.status_code, set(deleted.json())) == (200, {"message"})
    assert (await service.client.get(path)).status_code == 404
    assert (await service.client.delete(path)).status_code == 404
    assert (await service.client.put(path, json={"text": "x"})).status_code == 404
    assert await service.listed() == []
    assert await service.search("bossa", threshold=0) == []

    history = (await service.client.get(f"{path}history/")).json()
    assert [entry["event"] for entry in history] == ["ADD", "UPDATE", "DELETE"]
    assert [entry["old_memory"] for entry in history] == [
        None,
        stored["memory"],
        "Maya likes bossa nova.",
    ]
    assert [entry["new_memory"] for entry in history] == [
        stored["memory"],
        "Maya likes bossa nova.",
        "",
    ]
    assert all(entry["reason"] for entry in history)
    assert history[0]["event_id"] == event_id


async def test_an_update_changes_only_what_it_names(service: Service) -> None:
    await verbatim(service, "Maya likes jazz", metadata={"a": 1}, expiration_date=date(2099, 1, 1))
    [stored] = await service.listed()
    path = f"/v1/memories/{stored['id']}/"
    changed = (await service.client.put(path, json={"metadata": {"b": 2}})).json()
    assert (changed["memory"], changed["metadata"]) == ("Maya likes jazz", {"b": 2})
    assert changed["expiration_date"] == "2099-01-01"
    assert changed["timestamp"] == stored["timestamp"]
    cleared = (await service.client.put(path, json={"expiration_date": None})).json()
    assert (cleared["expiration_date"], cleared["metadata"]) == (None, {"b": 2})
    moved = (await service.client.put(path, json={"timestamp": "2026-03-01"})).json()
    assert moved["timestamp"].startswith("2026-03-01")


async def test_an_update_to_the_text_of_another_memory_is_stored(service: Service) -> None:
    await verbatim(service, "Maya likes jazz", "Maya likes tea")
    tea, jazz = await service.listed()
    answer = await service.client.put(
        f"/v1/memories/{tea['id']}/", json={"text": "maya likes jazz."}
    )
    assert answer.status_code == 200
    texts = {memory["id"]: memory["memory"] for memory in await service.listed()}
    assert texts == {tea["id"]: "maya likes jazz.", jazz["id"]: "Maya likes jazz"}


async def test_an_immutable_memory_is_not_edited_but_may_be_deleted(service: Service) -> None:
    await verbatim(service, "Born in Bern", immutable=True)
    [stored] = await service.listed()
    path = f"/v1/memories/{stored['id']}/"
    answer = await service.client.put(path, json={"text": "Born in Basel"})
    assert (answer.status_code, "delete it" in said(answer)) == (400, True)
    assert (await service.client.delete(path)).status_code == 200


# ── edits of people during an add ────────────────────────────────────────────────────────────────


@dataclass
class Decides(RulesModel):
    """Model that takes every message as a residence, and decides the same on the nearest memory."""

    outcome: Outcome = Outcome.NOOP
    text: str | None = None

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        return Answer(
            tuple(
                Fact(s.message.content, s.source, subject="user", attribute="residence")
                for s in request.messages
            )
        )

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        nearest = neighbours[0].memory_id
        return Answer(
            tuple(
                Decision(n, self.outcome, "Because.", text=self.text, memory_id=nearest)
                for n in range(len(facts))
            )
        )


CHANGES = {
    "update": Decides(outcome=Outcome.UPDATE, text="Maya's home town is Munich."),
    "update as said": Decides(outcome=Outcome.UPDATE),
    "delete": Decides(outcome=Outcome.DELETE),
    "noop": Decides(outcome=Outcome.NOOP),
}


async def assert_vectors_fit(service: Service) -> None:
    """Check that each memory's vector is that of its text."""
    embedder, ledger = service.engine.services.embedder, service.engine.ledger
    where = Where.of(service.engine.project.id, parse(MAYA), facts=True, turns=False, expired=True)
    for stored in await service.listed():
        [vector] = await embedder.embed([stored["memory"]])
        keys = [PassageKey(UUID(stored["id"]))]
        [candidate] = await ledger.passages.candidates(
            where, keys, embedded=keys, embedder=embedder.name
        )
        assert candidate.embedding is not None
        assert from_bytes(candidate.embedding) == pytest.approx(vector, abs=1e-5), stored["memory"]


@pytest.mark.parametrize("model", CHANGES.values(), ids=CHANGES.keys())
async def test_a_memory_deleted_under_an_add_that_would_change_it_costs_no_fact(
    service: Service, model: Decides
) -> None:
    await service.add("I live in Berlin.")
    [stored] = await service.listed()
    service.engine.with_model(model)
    answer = await service.client.post(ADD, json=LIVES | {"messages": "I moved to Munich."})
    await service.engine.run_until(StageName.APPLY)
    await service.client.delete(f"/v1/memories/{stored['id']}/")
    await service.engine.drain()
    event = await service.event(answer.json()["event_id"])
    assert (event["status"], event["error"]) == ("SUCCEEDED", None)
    assert [line["event"] for line in event["results"]] == ["ADD"]
    assert "Munich" in (await service.listed())[0]["memory"]
    await assert_vectors_fit(service)


@pytest.mark.parametrize("kind", ["update", "update as said", "delete"])
async def test_a_change_to_an_immutable_memory_is_stored_beside_it(
    service: Service, kind: str
) -> None:
    await service.add("I live in Berlin.", immutable=True)
    service.engine.with_model(CHANGES[kind])
    event = await service.event(await service.add("I moved to Munich."))
    assert (event["status"], event["error"]) == ("SUCCEEDED", None)
    assert [line["event"] for line in event["results"]] == ["ADD"]
    assert len(await service.listed()) == 2
    await assert_vectors_fit(service)


@pytest.mark.parametrize(
    ("kind", "first"),
    [("noop", "NOOP"), ("update", "UPDATE"), ("update as said", "UPDATE"), ("delete", "DELETE")],
)
async def test_a_fact_said_twice_in_a_turn_has_one_effect_whatever_is_decided(
    service: Service, kind: str, first: str
) -> None:
    await service.add("I live in Berlin.")
    service.engine.with_model(CHANGES[kind])
    text = "I no longer live in Berlin." if first == "DELETE" else "I moved to Munich."
    event = await service.event(await service.add(text, text))
    assert (event["status"], event["error"]) == ("SUCCEEDED", None)
    assert [line["event"] for line in event["results"]] == [first, "NOOP"]
    assert len(await service.listed()) == (0 if first == "DELETE" else 1)


# ── events ───────────────────────────────────────────────────────────────────────────────────────


async def test_events_are_listed_newest_first_and_filtered(service: Service) -> None:
    done = await service.add("I like jazz.")
    answer = await service.client.post(ADD, json=LIVES | {"user_id": "jon"})
    waiting = answer.json()["event_id"]

    async def ids(query: str = "") -> list[str]:
        answer = await service.client.get(f"/v1/events/{query}")
        assert answer.status_code == 200, answer.text
        return [event["id"] for event in answer.json()["results"]]

    assert await ids() == [waiting, done]
    assert await ids("?status=PENDING") == [waiting]
    assert await ids("?status=succeeded") == [done]
    assert await ids("?status=FAILED") == []
    assert await ids("?user_id=jon") == [waiting]
    assert await ids("?event_type=add") == [waiting, done]
    assert await ids("?event_type=DELETE") == []
    assert await ids("?start_date=2020-01-01&end_date=2999-01-01") == [waiting, done]
    assert await ids("?start_date=2999-01-01") == []
    assert await ids("?page=2&page_size=1") == [done]


async def test_both_names_of_the_event_route_give_the_same(service: Service) -> None:
    event_id = await service.add("I like jazz.")
    plural = await service.client.get(f"/v1/events/{event_id}/")
    assert plural.json() == await service.event(event_id)


async def test_asking_may_wait_for_the_end(service: Service) -> None:
    accepted = (await service.client.post(ADD, json=LIVES)).json()
    path = f"/v1/event/{accepted['event_id']}/"
    answer, _ = await asyncio.gather(service.client.get(f"{path}?wait=30"), service.engine.drain())
    assert answer.json()["status"] == "SUCCEEDED"
    assert (await service.client.get(f"{path}?wait=30")).json() == answer.json()


async def test_waiting_ends_with_the_time_given(service: Service) -> None:
    accepted = (await service.client.post(ADD, json=LIVES)).json()
    answer = await service.client.get(f"/v1/event/{accepted['event_id']}/?wait=0.01")
    assert answer.json()["status"] == "PENDING"


# ── tenants and keys ─────────────────────────────────────────────────────────────────────────────


async def test_another_projects_ids_are_as_unknown_as_ids_never_given(service: Service) -> None:
    event_id = await service.add("I like jazz.")
    [stored] = await service.listed()
    _, key = await service.engine.ledger.projects.create("theirs")
    theirs = {"Authorization": f"Token {key}"}
    foreign = {"memories": stored["id"], "event": event_id, "events": event_id}
    unknown = dict.fromkeys(foreign, str(uuid4()))

    async def asked(ids: dict[str, str], headers: dict[str, str]) -> list[tuple[int, str]]:
        memory = f"/v1/memories/{ids['memories']}/"
        requests = [
            service.client.get(memory, headers=headers),
            service.client.put(memory, json={"text": "Mine now"}, headers=headers),
            service.client.put(memory, json={"metadata": {}}, headers=headers),
            service.client.delete(memory, headers=headers),
            service.client.get(f"{memory}history/", headers=headers),
            service.client.get(f"/v1/event/{ids['event']}/", headers=headers),
            service.client.get(f"/v1/events/{ids['events']}/", headers=headers),
            service.client.get(f"/v1/event/{ids['event']}/?wait=5", headers=headers),
        ]
        answers = [await request for request in requests]
        return [(answer.status_code, said(answer)) for answer in answers]

    seen = await asked(foreign, theirs)
    assert {status for status, _ in seen} == {404}
    assert seen == await asked(unknown, theirs)
    for body in ({"filters": MAYA}, {"filters": {"memory_ids": [stored["id"]]} | MAYA}):
        assert (await service.client.post(LIST, json=body, headers=theirs)).json()["count"] == 0
        answer = await service.client.post(SEARCH, json=body | {"query": "jazz"}, headers=theirs)
        assert (answer.json()["results"], answer.json()["relations"]) == ([], [])
    assert (await service.client.get("/v1/events/", headers=theirs)).json()["count"] == 0
    assert await service.listed() == [stored]


async def test_one_scope_name_in_two_projects_is_two_scopes(service: Service) -> None:
    _, key = await service.engine.ledger.projects.create("theirs")
    theirs = {"Authorization": f"Token {key}"}
    await service.client.post(ADD, json=LIVES, headers=theirs)
    await service.engine.drain()
    assert await service.listed() == []


@pytest.mark.parametrize("scheme", ["Token", "Bearer", "token", "BEARER"])
async def test_the_key_may_come_as_token_or_bearer(shared: Service, scheme: str) -> None:
    async with stranger(shared) as client:
        headers = {"Authorization": f"{scheme} {shared.key}"}
        assert (await client.get("/v1/ping/", headers=headers)).status_code == 200


async def test_the_key_may_come_in_a_header_of_its_own(shared: Service) -> None:
    async with stranger(shared) as client:
        answer = await client.get("/v1/ping/", headers={"X-API-Key": shared.key})
        assert answer.status_code == 200


async def test_ping_tells_the_ids_clients_cannot_do_without(service: Service) -> None:
    body = (await service.client.get("/v1/ping/")).json()
    project = service.engine.project
    assert body["status"] == "ok"
    assert body["org_id"] == str(project.organization_id)
    assert body["project_id"] == str(project.id)
    # Clients require an email address and send it to a third party, so it must name no person.
    assert body["user_email"] == "local@memlane.invalid"


NO_KEYS: dict[str, dict[str, str]] = {
    "none": {},
    "wrong": {"Authorization": "Token ml_wrong"},
    "empty": {"Authorization": "Token "},
    "another scheme": {"Authorization": "Basic bWF5YTp4"},
    "not ASCII": {"Authorization": "Token sch\xf6n"},
    "wrong X-API-Key": {"X-API-Key": "ml_wrong"},
}


@pytest.mark.parametrize("headers", NO_KEYS.values(), ids=NO_KEYS.keys())
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/ping/"),
        ("POST", ADD),
        ("POST", "/v1/memories/"),
        ("POST", LIST),
        ("POST", SEARCH),
        ("GET", f"/v1/memories/{UUID(int=1)}/"),
        ("PUT", f"/v1/memories/{UUID(int=1)}/"),
        ("DELETE", f"/v1/memories/{UUID(int=1)}/"),
        ("GET", f"/v1/memories/{UUID(int=1)}/history/"),
        ("GET", f"/v1/event/{UUID(int=1)}/"),
        ("GET", f"/v1/events/{UUID(int=1)}/"),
        ("GET", "/v1/events/"),
        ("GET", "/v1/stats/"),
        ("GET", f"/v1/event/{UUID(int=1)}/stream/"),
        ("POST", f"/v1/event/{UUID(int=1)}/cancel/"),
        ("POST", f"/v1/event/{UUID(int=1)}/replay/"),
        ("POST", f"/v1/event/{UUID(int=1)}/undo/"),
        ("POST", "/v1/events/replay/"),
    ],
)
async def test_without_a_good_key_nothing_is_told(
    shared: Service, method: str, path: str, headers: dict[str, str]
) -> None:
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    async with stranger(shared) as client:
        answer = await client.request(method, path, json={"text": "x"}, headers=sent)
    assert answer.status_code == 401
    assert "Authorization: Token <key>" in said(answer)
    assert answer.headers["WWW-Authenticate"] == "Token"


# ── bad input ────────────────────────────────────────────────────────────────────────────────────

ONE = f"/v1/memories/{UUID(int=1)}/"
DEEP = "[" * 100_000 + "]" * 100_000
BAD: dict[str, tuple[str, str, Any, int, str]] = {
    # case: method, path, body, status, words of the message
    "no ids": ("POST", ADD, {"messages": "x"}, 400, "user_id, agent_id, app_id, run_id"),
    "no ids, version 1": ("POST", "/v1/memories/", {"messages": "x"}, 400, "user_id"),
    "no messages": ("POST", ADD, MAYA, 400, "messages"),
    "an empty list of messages": ("POST", ADD, MAYA | {"messages": []}, 400, "messages"),
    "a message without content": ("POST", ADD, MAYA | {"messages": [{}]}, 400, "content"),
    "an unknown role": (
        "POST",
        ADD,
        MAYA | {"messages": [{"role": "narrator", "content": "x"}]},
        400,
        "use user, assistant, system or tool",
    ),
    "a body that is no JSON": ("POST", ADD, b"{messages: x}", 400, "not valid JSON"),
    "a body that is not UTF-8": ("POST", ADD, b'{"messages": "\xff\xfe"}', 400, "body"),
    "a body of JSON too deep": ("POST", ADD, b'{"messages": %s}' % DEEP[:80_000].encode(), 400, ""),
    "a body that is a list": ("POST", ADD, [1], 400, "dictionary"),
    "no body": ("POST", ADD, b"", 400, "missing"),
    "a bad timestamp": ("POST", ADD, LIVES | {"timestamp": "soon"}, 400, "Unix seconds"),
    "a bad expiration": ("POST", ADD, LIVES | {"expiration_date": "x"}, 400, "expiration_date"),
    "metadata that is a list": ("POST", ADD, LIVES | {"metadata": [1]}, 400, "metadata"),
    "NUL in a text": ("POST", ADD, LIVES | {"messages": "a\0b"}, 400, "NUL"),
    "NUL in an id": ("POST", ADD, LIVES | {"user_id": "a\0b"}, 400, "NUL"),
    "NUL in metadata": ("POST", ADD, LIVES | {"metadata": {"a": "\0"}}, 400, "NUL"),
    "half a surrogate pair": (
        "POST",
        ADD,
        b'{"messages": "\\ud800", "user_id": "maya"}',
        400,
        "JSON",
    ),
    "an id too long": ("POST", ADD, LIVES | {"user_id": "x" * 513}, 400, "user_id"),
    "a bad memory id": ("GET", "/v1/memories/7/", None, 400, "memory_id should be a valid UUID"),
    "a bad memory id to change": ("PUT", "/v1/memories/7/", {"text": "x"}, 400, "memory_id"),
    "a bad memory id to delete": ("DELETE", "/v1/memories/7/", None, 400, "memory_id"),
    "a bad memory id's history": ("GET", "/v1/memories/7/history/", None, 400, "memory_id"),
    "a bad event id": ("GET", "/v1/event/7/", None, 400, "event_id should be a valid UUID"),
    "a wait too long": ("GET", f"/v1/event/{UUID(int=1)}/?wait=61", None, 400, "wait"),
    "an unknown memory": ("GET", ONE, None, 404, "Memory not found!"),
    "an unknown memory to change": ("PUT", ONE, {"text": "x"}, 404, "Memory not found!"),
    "an unknown memory to delete": ("DELETE", ONE, None, 404, "Memory not found!"),
    "an unknown memory's history": ("GET", f"{ONE}history/", None, 404, "Memory not found!"),
    "an unknown event": ("GET", f"/v1/event/{UUID(int=1)}/", None, 404, "Event not found"),
    "an update of nothing": ("PUT", ONE, {}, 400, "at least one of text, metadata"),
    "an update to no text": ("PUT", ONE, {"text": ""}, 400, "text"),
    "an update to blanks": ("PUT", ONE, {"text": "  "}, 400, "text"),
    "an update to NUL": ("PUT", ONE, {"text": "\0"}, 400, "NUL"),
    "no filter": ("POST", LIST, {}, 400, "user_id, agent_id, app_id, run_id"),
    "an empty filter": ("POST", LIST, {"filters": {}}, 400, "user_id"),
    "a filter of nobody": ("POST", LIST, {"filters": {"text": "x"}}, 400, "user_id"),
    "an unknown filter key": ("POST", LIST, {"filters": {"user": "x"}}, 400, "Allowed: AND, OR"),
    "an unknown operator": (
        "POST",
        LIST,
        {"filters": {"user_id": {"gt": "x"}}},
        400,
        "Allowed: eq, ne, in",
    ),
    "a bad time in a filter": (
        "POST",
        LIST,
        {"filters": MAYA | {"created_at": {"gte": "soon"}}},
        400,
        "Unix seconds",
    ),
    "a bad id in a filter": ("POST", LIST, {"filters": MAYA | {"memory_ids": ["x"]}}, 400, "UUID"),
    "a filter that is a string": ("POST", LIST, {"filters": "maya"}, 400, "filters"),
    "NUL in a filter": ("POST", LIST, {"filters": {"user_id": "\0"}}, 400, "NUL"),
    "page 0": ("POST", f"{LIST}?page=0", {"filters": MAYA}, 400, "page starts at 1"),
    "page -1": ("POST", f"{LIST}?page=-1", {"filters": MAYA}, 400, "page starts at 1"),
    "page x": ("POST", f"{LIST}?page=x", {"filters": MAYA}, 400, "page"),
    "a page past counting": ("POST", f"{LIST}?page={10**19}", {"filters": MAYA}, 404, "page"),
    "page_size 0": ("POST", f"{LIST}?page_size=0", {"filters": MAYA}, 400, "page_size"),
    "page_size 0 in the body": ("POST", LIST, {"filters": MAYA, "page_size": 0}, 400, "page_size"),
    "page_size 201": ("POST", f"{LIST}?page_size=201", {"filters": MAYA}, 400, "page_size"),
    "a blank query": (
        "POST",
        SEARCH,
        {"query": " ", "filters": MAYA},
        400,
        "give the text to search",
    ),
    "no query": ("POST", SEARCH, {"filters": MAYA}, 400, "query"),
    "top_k 0": ("POST", SEARCH, {"query": "x", "filters": MAYA, "top_k": 0}, 400, "top_k"),
    "threshold 2": ("POST", SEARCH, {"query": "x", "filters": MAYA, "threshold": 2}, 400, "thresh"),
    "a search of everybody": ("POST", SEARCH, {"query": "x"}, 400, "user_id"),
    "an unknown status": ("GET", "/v1/events/?status=done", None, 400, "PENDING, RUNNING"),
    "a bad start": ("GET", "/v1/events/?start_date=soon", None, 400, "start_date"),
    "NUL in a query parameter": ("GET", "/v1/events/?user_id=a%00b", None, 400, "NUL"),
    "NUL in a path": ("GET", "/v1/memories/user/%00/", None, 400, "NUL"),
    "bytes in a filter": ("GET", "/v1/memories/?filters={'x':b'a'}", None, 400, "Python literal"),
    "infinity in a delete": ("DELETE", "/v1/memories/?metadata={'x':1e999}", None, 400, "JSON"),
    "NUL in a delete": ("DELETE", "/v1/memories/?filters={'a':'\\x00'}", None, 400, "NUL"),
    "NUL in the body of a delete": ("DELETE", "/v1/memories/", {"user_id": "\0"}, 400, "NUL"),
    "NUL in an event type": ("GET", "/v1/events/?event_type=%00", None, 400, "NUL"),
    "events page 0": ("GET", "/v1/events/?page=0", None, 400, "page starts at 1"),
    "events page_size 0": ("GET", "/v1/events/?page_size=0", None, 400, "page_size"),
    "an events page past counting": ("GET", f"/v1/events/?page={10**19}", None, 404, "page"),
    "an unknown route": ("GET", "/v9/nothing/", None, 404, "Not Found"),
    "an unknown route below a known one": ("GET", "/v1/nothing/", None, 404, "Not Found"),
    "a wrong method": ("DELETE", ADD, None, 405, "Method Not Allowed"),
    "a wrong method for an event": ("POST", f"/v1/event/{UUID(int=1)}/", {}, 405, "Not Allowed"),
}


@pytest.mark.parametrize(("method", "path", "body", "status", "holds"), BAD.values(), ids=BAD)
async def test_bad_input_is_refused_and_the_refusal_says_what_to_change(
    shared: Service, method: str, path: str, body: object, status: int, holds: str
) -> None:
    sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    accepted = len(shared.engine.hints.waiting)
    answer = await shared.client.request(method, path, content=sent)
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert holds in said(answer)
    assert len(shared.engine.hints.waiting) == accepted


ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "an id of an index's size inside filters": (ADD, {"messages": "x", "filters": {}}),
    "an infinite number": (ADD, LIVES | {"metadata": {"n": float("inf")}}),
    "a number past 64 bits": (ADD, LIVES | {"metadata": {"n": 2**70}}),
    "a time at the end of time": (ADD, LIVES | {"timestamp": "9999-12-31T23:59:59-14:00"}),
    "a time at its start": (ADD, LIVES | {"timestamp": "0001-01-01T00:00:00+14:00"}),
    "metadata compared with infinity": (
        LIST,
        {"filters": MAYA | {"metadata": {"n": float("inf")}}},
    ),
    "a filter from the end of time": (
        LIST,
        {"filters": MAYA | {"created_at": {"lt": "9999-12-31T23:59:59-14:00"}}},
    ),
    "a list of no users": (LIST, {"filters": {"user_id": []}}),
    "metadata that is null": (LIST, {"filters": MAYA | {"metadata": {"n": None}}}),
    "an expiration within times": (LIST, {"filters": MAYA | {"expiration_date": {"gte": 0}}}),
    "a time that is null": (LIST, {"filters": MAYA | {"created_at": {"lt": None}}}),
    "a query of signs only": (SEARCH, {"query": "!?&|:*", "filters": MAYA}),
    "a query of many words": (SEARCH, {"query": "word " * 1_500, "filters": MAYA}),
}
ODD["an id of an index's size inside filters"][1]["filters"] = {
    "user_id": "".join(f"{n:x}" for n in range(3_000))
}


@pytest.mark.parametrize(("path", "body"), ODD.values(), ids=ODD.keys())
async def test_odd_input_is_taken_or_refused_and_never_blamed_on_the_ledger(
    service: Service, path: str, body: dict[str, Any]
) -> None:
    answer = await service.client.post(path, content=json.dumps(body))
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 400:
        assert said(answer)
    await service.engine.drain()


async def test_an_edit_with_numbers_json_does_not_know_is_no_outage(service: Service) -> None:
    await verbatim(service, "Maya likes jazz")
    [stored] = await service.listed()
    body = b'{"metadata": {"n": NaN}}'
    answer = await service.client.put(f"/v1/memories/{stored['id']}/", content=body)
    assert answer.status_code in (200, 400), answer.text


# ── paths ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path", ["//v1/ping/", "/v1/ping", "//v1/ping", "/v1//ping/", "/v1/ping//"]
)
async def test_clients_may_double_slashes_and_leave_out_the_last(
    shared: Service, path: str
) -> None:
    assert (await shared.client.get(f"http://memlane{path}")).status_code == 200


async def test_adds_and_reads_work_without_the_last_slash(service: Service) -> None:
    answer = await service.client.post("http://memlane//v3/memories/add", json=LIVES)
    await service.engine.drain()
    event = await service.client.get(f"/v1/event/{answer.json()['event_id']}")
    assert event.json()["status"] == "SUCCEEDED"
    listed = await service.client.post("/v3/memories", json={"filters": MAYA})
    assert listed.json()["count"] == 1


# ── outages ──────────────────────────────────────────────────────────────────────────────────────


async def test_health_tells_which_store_is_away(service: Service) -> None:
    assert (await service.client.get("/healthz")).json() == {
        "status": "ok",
        "version": __version__,
    }
    answer = await service.client.get("/readyz")
    assert answer.status_code == 200  # adds can be accepted
    assert answer.json() == {
        "status": "ok",
        "ledger": "ok",
        "vectors": "StoreUnavailable",
        "model": "ok",
    }


async def test_metrics_count_what_is_in_flight(service: Service) -> None:
    await service.client.post(ADD, json=LIVES)
    answer = await service.client.get("/metrics")
    assert 'memlane_events_in_flight{status="PENDING"} 1.0' in answer.text


async def test_the_ledger_out_of_reach_is_said_and_nothing_is_pretended(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with Postgres(tmp_path_factory.mktemp("postgres")) as server:
        ledger = build_ledger(server.url)
        await migrate(ledger.engine)
        async with serving(ledger) as service:
            event_id = await service.add("I like jazz.")
            [stored] = await service.listed()
            server.kill()
            memory_url = f"/v1/memories/{stored['id']}/"
            requests: list[tuple[str, str, dict[str, Any] | None]] = [
                ("POST", ADD, LIVES),
                ("POST", ADD, LIVES | {"infer": False}),
                ("POST", "/v1/memories/", LIVES),
                ("POST", LIST, {"filters": MAYA}),
                ("POST", SEARCH, {"query": "jazz", "filters": MAYA}),
                ("GET", memory_url, None),
                ("PUT", memory_url, {"text": "x"}),
                ("DELETE", memory_url, None),
                ("GET", f"{memory_url}history/", None),
                ("GET", f"/v1/event/{event_id}/", None),
                ("GET", "/v1/events/", None),
                ("GET", "/v1/stats/", None),
                ("GET", f"/v1/event/{event_id}/stream/", None),
                ("POST", f"/v1/event/{event_id}/cancel/", None),
                ("POST", f"/v1/event/{event_id}/replay/", None),
                ("POST", f"/v1/event/{event_id}/undo/", None),
                ("POST", "/v1/events/replay/", {"code": "INTERNAL"}),
            ]
            for method, path, body in requests:
                answer = await service.client.request(method, path, json=body)
                assert answer.status_code == 503, path
                # If the connection breaks during a write, the write may have committed.
                honest = {LEDGER_DOWN} if method == "GET" else {LEDGER_DOWN, OUTCOME_UNKNOWN}
                assert said(answer) in honest, path
                assert int(answer.headers["Retry-After"]) > 0
            assert not service.engine.hints.waiting
            assert (await service.client.get("/healthz")).status_code == 200
            ready = await service.client.get("/readyz")
            assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")

            server.start()
            assert (await service.client.get("/readyz")).status_code == 200
            events = (await service.client.get("/v1/events/")).json()
            assert [event["id"] for event in events["results"]] == [event_id]
            assert await service.listed() == [stored]
            await service.add("I like chess.")
            assert len(await service.listed()) == 2
        await ledger.close()


async def test_a_key_cannot_be_checked_without_the_ledger(ledger: Ledger) -> None:
    nowhere = build_ledger("postgresql://u@127.0.0.1:9/none")
    async with serving(ledger) as service:
        api: Api = service.api
        service.app.state.api = replace(api, keys=KeyRing(nowhere.keys))
        answer = await service.client.get("/v1/ping/")
        assert (answer.status_code, said(answer)) == (503, LEDGER_DOWN)
        assert "Retry-After" in answer.headers
    await nowhere.close()


async def test_vectors_away_leave_adds_lists_and_words(service: Service) -> None:
    await service.add("I drive a Saab.")
    away = ChromaVectors(NOBODY_LISTENS)
    embedder = service.engine.services.embedder
    index = VectorIndex(away, service.engine.ledger.memory_vectors, embedder, buckets=4)
    service.app.state.api = replace(service.api, stores=replace(service.api.stores, index=index))
    assert (await service.client.post(ADD, json=LIVES)).json()["status"] == "PENDING"
    [stored] = await service.listed()
    answer = await service.client.post(SEARCH, json={"query": "Saab", "filters": MAYA})
    assert answer.json()["degraded"] is True
    assert [row["id"] for row in answer.json()["results"]] == [stored["id"]]
    path = f"/v1/memories/{stored['id']}/"
    assert (await service.client.put(path, json={"text": "Maya has a Volvo."})).is_success
    assert (await service.client.delete(path)).is_success
    await away.close()


# ── the OpenAPI description ──────────────────────────────────────────────────────────────────────


async def test_the_api_describes_itself(service: Service) -> None:
    described = (await service.client.get("/openapi.json")).json()
    assert ADD in described["paths"]
    assert (await service.client.get("/docs")).status_code == 200
