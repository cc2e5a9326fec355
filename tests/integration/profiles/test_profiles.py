"""Profiles over the API: settings, generation as an event, fields with their memories, refresh."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, insert, select, text, update

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import MalformedAnswer, ModelUnavailable
from pipeline.domain.events import EventType, Question
from pipeline.domain.usage import Answer, Usage
from pipeline.erasure.store import OwnerKey
from pipeline.events.retention import Retention
from pipeline.ingest import profiles as use_cases
from pipeline.ledger.tables import memories as memory_rows
from pipeline.ledger.tables import profile_fields, profile_jobs, profiles
from pipeline.stores import Ledger
from pipeline.tenants.private_runs import Privacy
from tests.support.api_service import Service, error_of, serving

SETTINGS, JOBS = "/v2/profiles/settings/", "/v2/profiles/jobs/"
PROFILE = "/v2/entities/user/{}/profile/"
SCHEMA = {
    "type": "object",
    "properties": {
        "home": {"type": "string", "description": "the city where they live"},
        "drinks": {
            "type": "array",
            "items": {"type": "string", "description": "a drink"},
            "description": "drinks they like, tea",
        },
        "Pets-1": {"type": "string", "description": "zebras"},
    },
}
TRIGGER = {"operation": "trigger", "entity_type": "user", "entity_id": "maya"}


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


async def configure(service: Service, **changes: object) -> dict[str, Any]:
    body = {"enabled": True, "entities": {"user": {"schema": SCHEMA}}} | changes
    answer = await service.client.post(SETTINGS, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def trigger(service: Service, key: str | None = None, **body: object) -> dict[str, Any]:
    headers = {"Idempotency-Key": key or str(uuid4())}
    answer = await service.client.post(JOBS, json=TRIGGER | body, headers=headers)
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    return dict(answer.json())


async def profile(service: Service, user: str = "maya", **query: str) -> dict[str, Any]:
    answer = await service.client.get(PROFILE.format(user), params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def refresh(service: Service) -> int:
    """Accept and carry out what is due, as the sweeper does."""
    engine = service.engine
    number = await use_cases.refresh(
        pause_s=0.0, most=10, ledger=engine.ledger, dispatcher=engine.hints
    )
    await engine.drain()
    return number


def ids_of(shown: Mapping[str, Any]) -> dict[str, list[str]]:
    return {field["name"]: field["memory_ids"] for field in shown["fields"]}


async def memory_ids(service: Service, **filters: object) -> dict[str, str]:
    return {row["memory"]: row["id"] for row in await service.listed(**filters)}


# ── settings ─────────────────────────────────────────────────────────────────────────────────────


async def test_settings_are_stored_in_part_and_cleared_by_null(service: Service) -> None:
    before = (await service.client.get(SETTINGS)).json()
    assert (before["enabled"], before["entities"]["user"]["schema"]) == (False, None)
    assert (await configure(service))["entities"]["user"]["schema"] == SCHEMA
    more = {"entities": {"user": {"custom_instructions": "In capitals."}}}
    answer = (await service.client.post(SETTINGS, json=more)).json()
    assert answer["enabled"] is True
    assert answer["entities"]["user"] == {"schema": SCHEMA, "custom_instructions": "In capitals."}
    cleared = {"entities": {"user": {"schema": None}}}
    answer = (await service.client.post(SETTINGS, json=cleared)).json()
    assert answer["entities"]["user"] == {"schema": None, "custom_instructions": "In capitals."}
    assert (await service.client.get(SETTINGS)).json() == answer


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"schema": SCHEMA}, "Unsupported settings: schema"),
        ({"custom_instructions": "x"}, "Unsupported settings: custom_instructions"),
        ({"entities": {"agent": {}}}, "agent"),
        ({"entities": {"user": {"schema": {"type": "string"}}}}, "type object"),
        (
            {"entities": {"user": {"schema": {"properties": {"home": {"type": "string"}}}}}},
            "every property needs a description: home",
        ),
    ],
)
async def test_wrong_settings_name_what_to_change(
    service: Service, body: dict[str, Any], reason: str
) -> None:
    answer = await service.client.post(SETTINGS, json=body)
    assert answer.status_code == 400, answer.text
    assert reason in error_of(answer)


# ── generation ───────────────────────────────────────────────────────────────────────────────────


async def test_a_generation_is_an_event_whose_receipt_names_the_memories(service: Service) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    await service.add("I like tea.", agent_id="bot")
    started = await trigger(service)
    assert started["status"] == "pending"
    assert started["entity_count_reserved"] == 1
    known = await memory_ids(service)
    shown = await profile(service)
    assert shown["status"] == "succeeded"
    assert shown["entity_id"] == "maya"
    assert shown["generation_count"] == 1
    assert "Bern" in shown["profile"]["home"]
    assert any("tea" in drink for drink in shown["profile"]["drinks"])
    assert "Pets-1" not in shown["profile"]
    sources = {source for ids in ids_of(shown).values() for source in ids}
    assert sources <= set(known.values())
    event = await service.event(started["event_id"])
    assert (event["event_type"], event["status"]) == ("PROFILE", "SUCCEEDED")
    assert {row["name"]: row["memory_ids"] for row in event["profile_fields"]} == ids_of(shown)
    assert "Pets-1" in event["note"]
    job = (await service.client.get(started["status_url"])).json()["job"]
    assert (job["status"], job["total"], job["completed"], job["succeeded"]) == (
        *("succeeded", 1, 1, 1),
    )


async def test_the_receipt_of_an_add_names_the_fields_that_its_memory_fills(
    service: Service,
) -> None:
    await configure(service)
    event_id = await service.add("I live in Bern.")
    assert "profile_fields" not in (await service.event(event_id))["results"][0]
    await trigger(service)
    assert (await service.event(event_id))["results"][0]["profile_fields"] == ["home"]


async def test_a_generation_needs_settings_and_a_known_user(service: Service) -> None:
    await service.add("I live in Bern.")
    assert (await profile(service))["status"] == "not_enabled"
    refused = await service.client.post(JOBS, json=TRIGGER)
    assert (refused.status_code, SETTINGS in error_of(refused)) == (400, True)
    await configure(service)
    unknown = await service.client.post(JOBS, json=TRIGGER | {"entity_id": "nora"})
    assert unknown.status_code == 404
    assert (await service.client.get(PROFILE.format("nora"))).status_code == 404
    assert (await profile(service))["status"] == "insufficient_data"
    missing = await service.client.post(JOBS, json={"operation": "trigger"})
    assert (missing.status_code, "entity_id" in error_of(missing)) == (400, True)


async def test_an_idempotency_key_starts_one_job(service: Service) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    await service.add("I like tea.", user_id="nora")
    first, again = await trigger(service, "k1"), await trigger(service, "k1")
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["job_id"] == again["job_id"]
    assert first["event_id"] == again["event_id"]
    assert (await profile(service))["generation_count"] == 1
    other = await service.client.post(
        JOBS, json=TRIGGER | {"entity_id": "nora"}, headers={"Idempotency-Key": "k1"}
    )
    assert other.status_code == 409
    assert (await service.client.get(f"{JOBS}{uuid4()}/")).status_code == 404


async def test_a_sample_generates_the_profiles_of_a_few_users(service: Service) -> None:
    await configure(service)
    unnamed = await service.client.post(JOBS, json={"operation": "sample", "entity_type": "user"})
    assert unnamed.status_code == 400
    for user in ("ann", "bo", "cy"):
        await service.add("I live in Bern.", user_id=user)
    body = {"operation": "sample", "entity_type": "user", "limit": 2}
    answer = await service.client.post(JOBS, json=body, headers={"Idempotency-Key": "s1"})
    started = answer.json()
    assert (started["sampled"], len(started["entity_ids"])) == (2, 2)
    running = await service.client.post(JOBS, json=body)
    assert (running.status_code, "retry-after" in running.headers) == (429, True)
    await service.engine.drain()
    job = (await service.client.get(started["status_url"])).json()["job"]
    assert (job["operation"], job["succeeded"], job["status"]) == ("sample", 2, "succeeded")
    for user in started["entity_ids"]:
        assert (await profile(service, user))["status"] == "succeeded"
    same = await service.client.post(JOBS, json=body, headers={"Idempotency-Key": "s1"})
    assert same.json()["entity_ids"] == started["entity_ids"]


class Filling(RulesModel):
    """Fills every field with a value, and says where it has it from."""

    def __init__(self, numbers: Sequence[int], value: object = "a guess") -> None:
        super().__init__()
        self.numbers, self.value, self.calls = numbers, value, 0
        self.error: Exception | None = None

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        if question.kind is not EventType.PROFILE:
            return await super().distil(question, memories)
        self.calls += 1
        if self.error is not None:
            raise self.error
        row = {"value": self.value, "memories": list(self.numbers)}
        names = question.shape["properties"]
        return Answer(dict.fromkeys(names, row), Usage(model="fake", calls=1))


def failing(service: Service) -> Filling:
    """Give the service a model whose profiles are no objects."""
    model = Filling([1])
    model.error = MalformedAnswer("not an object")
    service.engine.with_model(model)
    return model


@pytest.mark.parametrize("numbers", [[], [0], [7]])
async def test_a_value_without_a_memory_is_left_out(service: Service, numbers: list[int]) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    service.engine.with_model(Filling(numbers))
    await trigger(service)
    shown = await profile(service)
    assert (shown["profile"], shown["status"]) == ({}, "insufficient_data")


async def test_an_unusable_answer_fails_the_event_and_the_profile_says_so(
    service: Service,
) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    model = failing(service)
    started = await trigger(service)
    shown = await profile(service)
    assert (shown["status"], shown["error"]) == ("failed", "not an object")
    job = (await service.client.get(started["status_url"])).json()["job"]
    assert (job["status"], job["failed"]) == ("failed", 1)
    model.error = None
    answer = await service.client.post(f"/v1/event/{started['event_id']}/replay/")
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    assert (await profile(service))["profile"]["home"] == "a guess"


async def test_an_outage_of_the_model_makes_the_event_wait(service: Service) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    model = Filling([1])
    model.error = ModelUnavailable("provider is down")
    service.engine.with_model(model)
    started = await trigger(service)
    event = await service.event(started["event_id"])
    assert (event["status"], event["waiting"]["code"]) == ("RUNNING", "LLM_UNAVAILABLE")
    assert (await profile(service))["status"] == "pending"


# ── changes ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_changed_memory_makes_the_profile_stale_and_it_is_generated_again(
    service: Service,
) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    assert await refresh(service) == 1
    first = await profile(service)
    assert (first["status"], first["stale"]) == ("succeeded", False)
    assert await refresh(service) == 0
    await service.add("I moved to Lima.")
    assert (await profile(service))["stale"] is True
    assert await refresh(service) == 1
    second = await profile(service)
    assert (second["stale"], second["generation_count"]) == (False, 2)
    assert "Lima" in second["profile"]["home"]
    at_first = await profile(service, as_of=first["updated_at"])
    assert at_first["profile"] == first["profile"]
    assert (await profile(service, as_of="2020-01-01"))["profile"] == {}


async def test_changes_of_other_users_and_temporary_runs_are_not_counted(
    service: Service,
) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    await refresh(service)
    await service.add("I live in Oslo.", user_id="nora")
    runs = service.engine.ledger.private_runs
    await runs.declare(service.engine.project.id, "visit", Privacy.TEMPORARY)
    await service.add("I moved to Zanzibar.", run_id="visit")
    assert (await profile(service))["stale"] is False
    await trigger(service)
    assert "Zanzibar" not in str(await profile(service))


async def test_several_changes_are_one_generation(service: Service) -> None:
    await configure(service)
    for sentence in ("I live in Bern.", "I like tea.", "I like coffee."):
        await service.add(sentence)
    assert await refresh(service) == 1
    assert (await profile(service))["generation_count"] == 1


async def test_a_change_while_the_model_answers_makes_the_profile_due_again(
    service: Service,
) -> None:
    await configure(service)
    await service.add("I live in Bern.")

    class Slow(Filling):
        async def distil(self, question: Question, memories: Sequence[str]) -> Answer[Any]:
            async with service.engine.ledger.engine.begin() as connection:
                await connection.execute(
                    update(memory_rows).values(text="User lives in Rome.", text_hash=b"r")
                )
            return await super().distil(question, memories)

    service.engine.with_model(Slow([1]))
    await refresh(service)
    shown = await profile(service)
    assert (shown["status"], shown["stale"]) == ("succeeded", True)
    service.engine.with_model(Filling([1]))
    assert await refresh(service) == 1
    assert (await profile(service))["stale"] is False


async def test_an_equal_value_keeps_its_time(service: Service) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    await refresh(service)
    [before] = [f for f in (await profile(service))["fields"] if f["name"] == "home"]
    await service.add("I like tea.")
    await refresh(service)
    [after] = [f for f in (await profile(service))["fields"] if f["name"] == "home"]
    assert after == before


async def test_a_deleted_memory_takes_its_values_with_it_at_once(service: Service) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    await service.add("I like tea.")
    await refresh(service)
    before = await profile(service)
    [source] = ids_of(before)["home"]
    await service.client.delete(f"/v1/memories/{source}/")
    shown = await profile(service)
    assert "home" not in shown["profile"]
    assert "drinks" in shown["profile"]
    assert shown["stale"] is True
    assert await refresh(service) == 1
    assert "home" not in (await profile(service))["profile"]
    assert (await profile(service, as_of=before["updated_at"]))["profile"] == before["profile"]


async def test_an_undone_event_takes_its_values_with_it_at_once(service: Service) -> None:
    await configure(service)
    event_id = await service.add("I live in Bern.")
    await refresh(service)
    answer = await service.client.post(f"/v1/event/{event_id}/undo/")
    assert answer.status_code == 200, answer.text
    assert (await profile(service))["profile"] == {}


async def test_expired_memories_are_not_shown(service: Service) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    await refresh(service)
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(
            update(memory_rows).values(expiration_date=func.current_date() - text("2"))
        )
    assert (await profile(service))["profile"] == {}


async def test_nothing_is_due_while_profiles_are_disabled(service: Service) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    await configure(service, enabled=False)
    assert await refresh(service) == 1  # claimed, and not due any more
    assert await refresh(service) == 0
    assert (await profile(service))["status"] == "not_enabled"
    await configure(service)
    await service.add("I like tea.")
    assert await refresh(service) == 1
    assert (await profile(service))["status"] == "succeeded"


async def test_a_project_without_settings_has_no_row(service: Service) -> None:
    await service.add("I live in Bern.")
    async with service.engine.ledger.engine.connect() as connection:
        assert await connection.scalar(select(func.count()).select_from(profiles)) == 0


# ── erasure and tenants ──────────────────────────────────────────────────────────────────────────


async def rows(service: Service) -> dict[str, int]:
    async with service.engine.ledger.engine.connect() as connection:
        return {
            table.name: await connection.scalar(select(func.count()).select_from(table)) or 0
            for table in (profiles, profile_fields)
        }


async def test_an_erasure_of_the_user_deletes_the_profile(service: Service) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    await refresh(service)
    job = await trigger(service)
    await service.engine.ledger.erasures.erase(service.engine.project.id, OwnerKey("user", "maya"))
    assert await rows(service) == {"profiles": 0, "profile_fields": 0}
    assert (await service.client.get(PROFILE.format("maya"))).status_code == 404
    started = (await service.client.get(job["status_url"])).json()["job"]
    assert started["completed"] == 1


async def test_an_erasure_of_an_agent_deletes_the_values_of_its_memories(
    service: Service,
) -> None:
    await configure(service)
    await service.add("I live in Bern.", agent_id="bot")
    await service.add("I like tea.")
    await refresh(service)
    await service.engine.ledger.erasures.erase(service.engine.project.id, OwnerKey("agent", "bot"))
    async with service.engine.ledger.engine.connect() as connection:
        names = (await connection.scalars(select(profile_fields.c.name))).all()
    assert set(names) == {"drinks"}
    assert (await profile(service))["stale"] is True
    assert await refresh(service) == 1


async def test_an_add_in_a_generated_users_lane_is_not_delayed_by_a_failed_generation(
    service: Service,
) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    failing(service)
    await trigger(service)
    await service.add("I like tea.")
    assert len(await service.listed()) == 2


async def test_another_project_sees_neither_profile_nor_job(
    service: Service, ledger: Ledger
) -> None:
    await configure(service)
    await service.add("I live in Bern.")
    job = await trigger(service)
    _, key = await ledger.projects.create("theirs")
    headers = {"Authorization": f"Token {key}"}
    for path in (PROFILE.format("maya"), job["status_url"]):
        answer = await service.client.get(path, headers=headers)
        assert answer.status_code == 404
    settings = (await service.client.get(SETTINGS, headers=headers)).json()
    assert settings["enabled"] is False


async def test_old_jobs_are_deleted(service: Service) -> None:
    engine = service.engine
    old = func.now() - text("interval '100 days'")
    row = {"id": uuid4(), "project_id": engine.project.id, "operation": "trigger", "event_ids": []}
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(insert(profile_jobs).values(created_at=old, **row))
        await connection.execute(insert(profile_jobs).values(**row | {"id": uuid4()}))
    assert await engine.retention.forget_profile_jobs() == 1


async def test_values_that_were_replaced_long_ago_are_deleted(service: Service) -> None:
    engine = service.engine
    row = {
        "project_id": engine.project.id, "user_id": "maya", "name": "city", "value": "Bern",
        "memory_ids": [], "event_id": uuid4(),
    }  # fmt: skip
    ages = [None, *(func.now() - text(f"interval '{days} days'") for days in (100, 300, 400))]
    async with engine.ledger.engine.begin() as connection:
        for replaced_at in ages:
            await connection.execute(insert(profile_fields).values(replaced_at=replaced_at, **row))
    unlimited = Retention(engine.ledger.engine, keys_for=timedelta(days=1), outputs_for=None)
    assert await unlimited.forget_profile_values() == 0  # no limit
    assert await engine.retention.forget_profile_values() == 1
    assert await engine.retention.forget_profile_values() == 0


async def test_a_person_with_a_read_key_changes_no_settings(service: Service) -> None:
    answer = await service.client.post("/v1/keys/", json={"name": "r", "scope": "write"})
    key = answer.json()["key"]
    headers = {"Authorization": f"Token {key}"}
    refused = await service.client.post(SETTINGS, json={"enabled": True}, headers=headers)
    assert refused.status_code == 403
