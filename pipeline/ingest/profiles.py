"""Accept generations of profiles: on request, for a sample of users, and after changes.

on request      one event for each user, by an idempotency key, and a job
after changes   a trigger marks the profile as due; after a pause one event, by the number of
                changes
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID, uuid4, uuid5

import structlog

from pipeline.domain.errors import Conflict, InvalidInput, NotFound, Overloaded
from pipeline.domain.events import FINAL, AddOptions, EventType, Question
from pipeline.domain.profiles import GenerationJob, ProfileSettings
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ingest.add import add_messages
from pipeline.ingest.ports import IngestStores
from pipeline.models.json_schema import outline
from pipeline.ports import Dispatcher
from pipeline.tenants.owners import Owners

log = structlog.get_logger()

TRIGGER, SAMPLE = "trigger", "sample"
NOT_READY = (
    "Profiles are not enabled for this project: POST /v2/profiles/settings/ with `enabled` true "
    "and a schema in `entities.user.schema` first."
)
UNKNOWN_USER = "No such user: the project has no turns and no memories of this id."
NO_USERS = "No user to sample: the project has no memories with a user_id yet."
OTHER_JOB = "This Idempotency-Key was used for another job."
RUNNING = "A sample of this project is still running. Wait for its job, or trigger single users."
RETRY_AFTER_S = 5


class ProfileStores(IngestStores, Protocol):
    """The part of the ledger that generations use."""

    owners: Owners


async def trigger(
    project_id: ProjectId,
    user_id: str,
    *,
    ledger: ProfileStores,
    dispatcher: Dispatcher,
    key: str | None = None,
) -> tuple[GenerationJob, bool]:
    """Accept a generation of one user's profile. Returns its job, and if `key` started it before.

    Errors: InvalidInput unless profiles are enabled; NotFound for an unknown user; Conflict if the
    key started another job.
    """
    if (job := await _started(project_id, key, TRIGGER, [user_id], ledger=ledger)) is not None:
        return job, True
    settings = await _ready(project_id, ledger)
    if not await ledger.profiles.known(project_id, user_id):
        raise NotFound(UNKNOWN_USER)
    return await _start(
        project_id, TRIGGER, [user_id], settings, key, ledger=ledger, dispatcher=dispatcher
    ), False


async def sample(
    project_id: ProjectId,
    limit: int,
    *,
    ledger: ProfileStores,
    dispatcher: Dispatcher,
    key: str | None = None,
) -> tuple[GenerationJob, bool]:
    """Accept generations of the newest users' profiles, to try out a schema.

    Returns the job, and if `key` started it before. Errors: InvalidInput unless profiles are
    enabled and there is a user; Overloaded while a sample runs; Conflict if the key started another
    job.
    """
    if (job := await _started(project_id, key, SAMPLE, None, ledger=ledger)) is not None:
        return job, True
    settings = await _ready(project_id, ledger)
    last = await ledger.profiles.last_job(project_id, SAMPLE)
    if last is not None and any(status not in FINAL for status in last.statuses):
        raise Overloaded(RUNNING, retry_after_s=RETRY_AFTER_S)
    owners = await ledger.owners.page(project_id, kind="user", limit=limit)
    if not owners:
        raise InvalidInput(NO_USERS)
    users = [owner.id for owner in owners]
    return await _start(
        project_id, SAMPLE, users, settings, key, ledger=ledger, dispatcher=dispatcher
    ), False


async def refresh(
    *, pause_s: float, most: int, ledger: IngestStores, dispatcher: Dispatcher
) -> int:
    """Accept the generations that are due, at most `most`. Returns their number.

    Each is claimed right before it is accepted, and accepted once for a number of changes.
    """
    for number in range(most):
        due = await ledger.profiles.claim_due(pause_s=pause_s)
        if due is None:
            return number
        if due.settings.ready:
            event_id = await _accept(
                due.project_id, due.user_id, due.settings, f"profile {due.id} {due.changes}",
                ledger=ledger, dispatcher=dispatcher,
            )  # fmt: skip
            await ledger.profiles.accepted(
                due.project_id, due.user_id, event_id, changes=due.changes
            )
    return most


async def _ready(project_id: ProjectId, ledger: IngestStores) -> ProfileSettings:
    """The settings of a project. Errors: InvalidInput unless profiles are enabled."""
    settings = await ledger.profiles.settings(project_id)
    if not settings.ready:
        raise InvalidInput(NOT_READY)
    return settings


def _job_id(project_id: ProjectId, key: str | None) -> UUID:
    return uuid4() if key is None else uuid5(project_id, f"profile job {key}")


async def _started(
    project_id: ProjectId,
    key: str | None,
    operation: str,
    users: list[str] | None,
    *,
    ledger: IngestStores,
) -> GenerationJob | None:
    """The job that the key started before, if any. Errors: Conflict if it is another one."""
    if key is None:
        return None
    try:
        job = await ledger.profiles.job(project_id, _job_id(project_id, key))
    except NotFound:
        return None
    if job.operation != operation or users not in (None, job.users):
        raise Conflict(OTHER_JOB)
    return job


async def _start(
    project_id: ProjectId,
    operation: str,
    users: list[str],
    settings: ProfileSettings,
    key: str | None,
    *,
    ledger: IngestStores,
    dispatcher: Dispatcher,
) -> GenerationJob:
    """Accept one event for each user, then store the job. A repeated request finds the events."""
    job_id = _job_id(project_id, key)
    event_ids = []
    for user_id in users:
        event_id = await _accept(
            project_id, user_id, settings, f"profile {uuid5(job_id, user_id)}",
            ledger=ledger, dispatcher=dispatcher,
        )  # fmt: skip
        await ledger.profiles.accepted(project_id, user_id, event_id)
        event_ids.append(event_id)
    await ledger.profiles.add_job(project_id, job_id, operation, event_ids)
    return await ledger.profiles.job(project_id, job_id)


async def _accept(
    project_id: ProjectId,
    user_id: str,
    settings: ProfileSettings,
    key: str,
    *,
    ledger: IngestStores,
    dispatcher: Dispatcher,
) -> UUID:
    """Accept the event of one generation. Its options do not name the user: the lane does."""
    assert settings.schema is not None  # see ProfileSettings.ready
    shape = outline(settings.schema)
    question = Question(EventType.PROFILE, {}, shape, settings.custom_instructions)
    return await add_messages(
        Scope(project_id, user_id=user_id), (), AddOptions(question=question), said_at=None,
        ledger=ledger, dispatcher=dispatcher, key=key,
    )  # fmt: skip
