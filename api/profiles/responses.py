"""Responses about profiles of users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from api.events.responses import FilledFieldJson
from api.http.shared_responses import Id, StoredTime, json_of, words
from pipeline.domain.events import Status
from pipeline.domain.profiles import (
    MOST_SAMPLED,
    GenerationJob,
    Profile,
    ProfileField,
    ProfileSettings,
)
from pipeline.models.json_schema import DEEPEST, MOST_FIELDS

JOBS = "/v2/profiles/jobs/"


ProfileStatus = Literal["succeeded", "pending", "failed", "not_enabled", "insufficient_data"]
JobStatus = Literal["pending", "running", "succeeded", "failed"]
Operation = Annotated[str, words("trigger", "sample")]


class ProfileFieldJson(TypedDict):
    """The memories behind the value of a field, and since when it has this value."""

    name: str
    memory_ids: list[Id]
    stored_at: StoredTime


class ProfileJson(TypedDict):
    """A user's profile. `fields`: the memories behind each value.

    `stale`: memories have changed since; the profile is generated again after a pause.
    """

    profile: dict[str, Any]
    status: ProfileStatus
    entity_type: Literal["user"]
    entity_id: str
    updated_at: datetime | None
    generation_count: int
    stale: bool
    event_id: Id | None
    error: str | None
    fields: list[ProfileFieldJson]


class UserSchemaJson(TypedDict):
    """The JSON schema of users' profiles, and the instructions for them."""

    schema: Mapping[str, Any] | None
    custom_instructions: str | None


class SettingsEntitiesJson(TypedDict):
    """The settings by type of entity."""

    user: UserSchemaJson


class CapabilitiesJson(TypedDict):
    """The limits of profiles on this server."""

    entity_types: list[str]
    max_properties: int
    max_depth: int
    max_sample: int


class ProfileSettingsJson(TypedDict):
    """The settings of a project's profiles."""

    enabled: bool
    entities: SettingsEntitiesJson
    capabilities: CapabilitiesJson


class ProfileJobStartedJson(TypedDict):
    """An accepted job. `event_id`: its event, if it has exactly one."""

    job_id: Id
    status: JobStatus
    status_url: str
    operation: Operation
    entity_type: Literal["user"]
    entity_count_reserved: int
    event_id: Id | None
    replayed: bool
    sampled: NotRequired[int]
    entity_ids: NotRequired[list[str]]


class ProfileJobJson(TypedDict):
    """A job with the numbers of its generations. `skipped`: cancelled or erased ones."""

    id: Id
    operation: Operation
    entity_type: Literal["user"]
    status: JobStatus
    total: int
    enumeration_complete: bool
    completed: int
    succeeded: int
    failed: int
    skipped: int
    event_ids: list[Id]


class ProfileJobStateJson(TypedDict):
    """The state of a job."""

    job: ProfileJobJson


def profile(row: Profile, user_id: str, settings: ProfileSettings) -> ProfileJson:
    """A user's profile."""
    status = state(row, settings)
    return json_of(
        ProfileJson,
        row,
        profile={field.name: field.value for field in row.fields},
        status=status,
        entity_type="user",
        entity_id=user_id,
        generation_count=row.generations,
        error=row.failure if status == "failed" else None,
        fields=[field(value) for value in row.fields],
    )


def field(row: ProfileField) -> ProfileFieldJson:
    """The memories behind the value of a field, and since when it has this value."""
    return json_of(ProfileFieldJson, row, memory_ids=[str(value) for value in row.memory_ids])


def state(row: Profile, settings: ProfileSettings) -> ProfileStatus:
    """The status for clients: only with `succeeded` the profile has content."""
    if not settings.ready:
        return "not_enabled"
    if row.fields:
        return "succeeded"
    if row.status in (Status.FAILED, Status.CANCELLED):
        return "failed"
    if row.status in (Status.PENDING, Status.RUNNING) or row.due:
        return "pending"
    return "insufficient_data"


def settings(row: ProfileSettings) -> ProfileSettingsJson:
    """The settings of a project."""
    return {
        "enabled": row.enabled,
        "entities": {
            "user": {"schema": row.schema, "custom_instructions": row.custom_instructions}
        },
        "capabilities": {
            "entity_types": ["user"],
            "max_properties": MOST_FIELDS,
            "max_depth": DEEPEST,
            "max_sample": MOST_SAMPLED,
        },
    }


def started(row: GenerationJob, *, replayed: bool) -> ProfileJobStartedJson:
    """An accepted job."""
    number = len(row.event_ids)
    body: ProfileJobStartedJson = {
        "job_id": str(row.id),
        "status": job_state(row),
        "status_url": f"{JOBS}{row.id}/",
        "operation": row.operation,
        "entity_type": "user",
        "entity_count_reserved": number,
        "event_id": str(row.event_ids[0]) if number == 1 else None,
        "replayed": replayed,
    }
    if row.operation == "sample":
        body["sampled"] = number
        body["entity_ids"] = [user for user in row.users if user]
    return body


def job(row: GenerationJob) -> ProfileJobStateJson:
    """A job with the numbers of its generations."""
    ended = Counter(row.statuses)
    succeeded, failed = ended[Status.SUCCEEDED], ended[Status.FAILED]
    skipped = ended[Status.CANCELLED]
    shown = json_of(
        ProfileJobJson,
        row,
        entity_type="user",
        status=job_state(row),
        total=len(row.event_ids),
        enumeration_complete=True,
        completed=succeeded + failed + skipped,
        succeeded=succeeded,
        failed=failed,
        skipped=skipped,
        event_ids=[str(event_id) for event_id in row.event_ids],
    )
    return {"job": shown}


def job_state(row: GenerationJob) -> JobStatus:
    """The state of a job: `failed` if a generation failed, `succeeded` if none did."""
    if any(status is Status.RUNNING for status in row.statuses):
        return "running"
    if any(status is Status.PENDING for status in row.statuses):
        return "pending"
    return "failed" if Status.FAILED in row.statuses else "succeeded"


def receipt(answer: Mapping[str, Any]) -> list[FilledFieldJson]:
    """The receipt of a generation: the filled fields, and the memories behind each."""
    return [
        {"name": row["name"], "memory_ids": row["memory_ids"]} for row in answer.get("fields", ())
    ]
