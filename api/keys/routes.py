"""API keys: create, list and revoke them with an admin key."""

from __future__ import annotations

from fastapi import APIRouter

from api.audit import recording as audit
from api.auth.tenant import Admin, as_uuid
from api.http.shared_responses import DoneJson, ResultsJson
from api.http.strict_json import StrictJson
from api.tenants import responses as tenant_responses
from api.tenants.requests import KeyRequest
from api.tenants.responses import KeyJson, NewKeyJson
from pipeline.domain.tenants import Access

router = APIRouter(tags=["tenants"], route_class=StrictJson)


@router.get("/v1/keys/")
async def list_keys(admin: Admin, project_id: str | None = None) -> ResultsJson[KeyJson]:
    """The keys of the key's project, or of another one of its organization, newest first. Only
    prefixes are shown.
    """
    admin.grant.require(Access.ADMIN)
    rows = await admin.ledger.keys.of_project(admin.project.id)
    return {"results": [tenant_responses.key(row) for row in rows]}


@router.post("/v1/keys/")
async def make_key(request: KeyRequest, admin: Admin) -> NewKeyJson:
    """Create a key. `key` is shown only in this response: only its hash is stored."""
    made, secret = await admin.ledger.keys.make(
        admin.project.id,
        name=request.name,
        access=request.scope,
        by=admin.grant,
        member=request.member,
        expires_at=request.expires_at,
    )
    audit.about(made.id)
    return {**tenant_responses.key(made), "key": secret.key}


@router.delete("/v1/keys/{key_id}/")
async def revoke_key(key_id: str, admin: Admin, descendants: bool = False) -> DoneJson:
    """Revoke a key. Other API processes may accept it for five more seconds.

    Keys that were created with a member's key, or with one that expires, are revoked too; those
    created with other keys only with `descendants=true`.
    """
    await admin.ledger.keys.revoke(admin.grant, as_uuid(key_id), descendants=descendants)
    admin.api.keys.forget()
    return {"message": "Key revoked."}
