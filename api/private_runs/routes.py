"""Private runs: temporary and incognito sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from api.auth.tenant import Caller
from api.http.body import LONGEST_ID
from api.http.strict_json import StrictJson
from api.private_runs import responses as private_run_responses
from api.private_runs.requests import PrivateRunRequest
from api.private_runs.responses import PrivateRunJson
from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import ANY

router = APIRouter(prefix="/v1/runs", tags=["private runs"], route_class=StrictJson)

RunId = Annotated[str, Path(min_length=1, max_length=LONGEST_ID)]


@router.put("/{run_id:path}/")
async def declare(run_id: RunId, request: PrivateRunRequest, call: Caller) -> PrivateRunJson:
    """Make a new run temporary or incognito.

    `temporary`: its memories are found only by reads that name the run. At `expires_at`, or with
    `DELETE /v2/entities/run/{run_id}/`, all of it is erased; `erasure_event_id` is the receipt.
    `incognito`: its adds are answered, and nothing of them is stored.

    A repeated request moves `expires_at`; after the end it begins a new session with the same id.
    Without it, adds to a run that has ended are refused with 409. 409 also if the run has events
    already.
    """
    if run_id == ANY:
        raise InvalidInput(f"{ANY!r} stands for any id, so it cannot be a run")
    ledger = call.ledger
    expires_at = request.end(await ledger.now(), hours=call.api.settings.temporary_run_hours)
    run = await ledger.private_runs.declare(
        call.project.id, run_id, request.privacy, expires_at=expires_at
    )
    return private_run_responses.private_run(run)


@router.get("/{run_id:path}/")
async def get(run_id: RunId, call: Caller) -> PrivateRunJson:
    """A private run. 404 for an ordinary one, and after its end."""
    run = await call.ledger.private_runs.get(call.project.id, run_id)
    return private_run_responses.private_run(run)
