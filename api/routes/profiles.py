"""Profiles of the Mem0 Platform: not supported; the error names the alternative."""

from __future__ import annotations

from typing import NoReturn

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from api.auth.tenant import Caller

router = APIRouter(tags=["profiles"])

INSTEAD = (
    "Memlane keeps no profiles. POST /v1/exports/ fills any JSON schema from a user's memories, "
    "POST /v1/summary/ sums them up."
)


async def not_here(project: Caller) -> NoReturn:
    """Not supported: use an export with a schema."""
    raise HTTPException(501, INSTEAD)


for _method, _path in (
    ("GET", "/v2/entities/user/{entity_id:path}/profile/"),
    ("POST", "/v2/profiles/jobs/"),
    ("GET", "/v2/profiles/jobs/{job_id}/"),
    ("GET", "/v2/profiles/settings/"),
    ("POST", "/v2/profiles/settings/"),
):
    router.add_api_route(
        _path, not_here, methods=[_method], response_model=None, include_in_schema=False
    )
