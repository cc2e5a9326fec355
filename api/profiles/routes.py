"""Profiles of users: settings with a schema, generations and their jobs, and the filled profile."""

from __future__ import annotations

from fastapi import APIRouter

from api.adds.requests import IdempotencyKey
from api.auth.tenant import Admin, Caller
from api.http.ids import uuid
from api.http.strict_json import StrictJson
from api.profiles import responses as profile_responses
from api.profiles.requests import ProfileJobRequest, ProfileSettingsRequest
from api.profiles.responses import (
    ProfileJobStartedJson,
    ProfileJobStateJson,
    ProfileJson,
    ProfileSettingsJson,
)
from pipeline.domain.errors import NotFound
from pipeline.domain.filters import moment
from pipeline.domain.scope import Scope
from pipeline.ingest import profiles as use_cases

router = APIRouter(tags=["profiles"], route_class=StrictJson)


@router.get("/v2/entities/user/{entity_id:path}/profile/")
async def get(entity_id: str, call: Caller, as_of: str | None = None) -> ProfileJson:
    """A user's profile, with the memories behind each field. Its `status` says if it has content.

    `as_of`: the values as they were stored at this time.
    """
    at = None if as_of is None else moment("as_of", as_of)
    profiles = call.ledger.profiles
    row = await profiles.get(call.project.id, entity_id, as_of=at)
    if row.event_id is None and not await profiles.known(call.project.id, entity_id):
        raise NotFound(use_cases.UNKNOWN_USER)
    return profile_responses.profile(row, entity_id, await profiles.settings(call.project.id))


@router.post("/v2/profiles/jobs/")
async def start(
    request: ProfileJobRequest, call: Caller, idempotency_key: IdempotencyKey = None
) -> ProfileJobStartedJson:
    """Generate the profile of one user (`trigger`), or those of a few users (`sample`).

    Each generation is an event with a receipt. With an `Idempotency-Key` the request can be
    repeated safely.
    """
    ledger, dispatcher = call.ledger, call.api.dispatcher
    call.api.backpressure.admit(Scope(call.project.id, user_id=request.entity_id))
    if request.operation == use_cases.TRIGGER and request.entity_id is not None:
        job, replayed = await use_cases.trigger(
            call.project.id,
            request.entity_id,
            ledger=ledger,
            dispatcher=dispatcher,
            key=idempotency_key,
        )
    else:
        job, replayed = await use_cases.sample(
            call.project.id,
            request.limit,
            ledger=ledger,
            dispatcher=dispatcher,
            key=idempotency_key,
        )
    return profile_responses.started(job, replayed=replayed)


@router.get("/v2/profiles/jobs/{job_id}/")
async def get_job(job_id: str, call: Caller) -> ProfileJobStateJson:
    """A job: the numbers of its generations, and their events."""
    job = await call.ledger.profiles.job(call.project.id, uuid("job_id", job_id))
    return profile_responses.job(job)


@router.get("/v2/profiles/settings/")
async def get_settings(admin: Admin) -> ProfileSettingsJson:
    """The settings of the project's profiles."""
    return profile_responses.settings(await admin.ledger.profiles.settings(admin.project.id))


@router.post("/v2/profiles/settings/")
async def change_settings(request: ProfileSettingsRequest, admin: Admin) -> ProfileSettingsJson:
    """Change some settings: `enabled`, and in `entities.user` the schema and instructions.

    Profiles that exist are generated again with the next change of a memory, or on request.
    """
    stored = await admin.ledger.profiles.change(admin.project.id, request.values())
    return profile_responses.settings(stored)
