"""API keys: create, list and revoke them with an admin key."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from api.dependencies import Admin, Given, as_uuid
from api.http.strict_json import StrictJson
from api.schemas.tenants import KeyRequest
from api.views import tenants as tenant_views
from pipeline.domain.tenants import Access

router = APIRouter(tags=["tenants"], route_class=StrictJson)


@router.get("/v1/keys/")
async def list_keys(
    api: Given, admin: Admin, project_id: str | None = None
) -> dict[str, list[dict[str, Any]]]:
    """The keys of your project, or of another one of the organization, by prefix; newest first."""
    admin.grant.require(Access.ADMIN)
    rows = await api.stores.ledger.keys.of_project(admin.project.id)
    return {"results": [tenant_views.key(row) for row in rows]}


@router.post("/v1/keys/")
async def make_key(request: KeyRequest, api: Given, admin: Admin) -> dict[str, Any]:
    """A new key. `key` is shown here and never again: only its hash is kept."""
    made, secret = await api.stores.ledger.keys.make(
        admin.project.id,
        name=request.name,
        access=request.scope,
        by=admin.grant,
        member=request.member,
        expires_at=request.expires_at,
    )
    return tenant_views.key(made) | {"key": secret.key}


@router.delete("/v1/keys/{key_id}/")
async def revoke_key(
    key_id: str, api: Given, admin: Admin, descendants: bool = False
) -> dict[str, str]:
    """End a key. API processes other than this one may accept it for five more seconds.

    Keys created by a member's key, or by one that expires, end with it; those created by a
    lasting key, only with `descendants=true`.
    """
    await api.stores.ledger.keys.revoke(
        admin.grant.project.organization_id, as_uuid(key_id), descendants=descendants
    )
    api.keys.forget()
    return {"message": "Key revoked."}
