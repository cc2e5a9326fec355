"""Admin: projects, keys and members, and the health and settings of the server."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, SecretStr

from api.console.forms import Form, checked
from api.console.page_route import PageRoute
from api.console.rendering import back, show
from api.console.session import Administering, Viewing
from api.keys import routes as key_routes
from api.tenants import routes
from api.tenants.requests import KeyRequest, MemberRequest, ProjectRequest
from pipeline.domain.tenants import Access
from pipeline.settings import Settings

router = APIRouter(prefix="/console", route_class=PageRoute, include_in_schema=False)


@router.get("/admin")
async def admin(request: Request, session: Viewing) -> Response:
    """The organization's projects, and keys and members of this project."""
    session.grant.require(Access.ADMIN)
    return show(
        request,
        "admin.html",
        projects=await routes.list_projects(session),
        keys=(await key_routes.list_keys(session))["results"],
        members=(await routes.list_members(session))["members"],
    )


@router.post("/admin/keys")
async def make_key(request: Request, session: Administering, fields: Form) -> Response:
    """Create a key; this page alone shows it."""
    wanted = checked(
        KeyRequest,
        name=fields.text("name"),
        scope=fields.text("scope"),
        member=fields.optional("member"),
        expires_at=fields.optional("expires_at"),
    )
    made = await key_routes.make_key(wanted, session)
    return show(
        request, "secret.html", title="Key created", secret=made["key"], after="/admin",
        about="Only its hash is stored: copy it now.",
    )  # fmt: skip


@router.post("/admin/keys/{key_id}/revoke")
async def revoke(key_id: str, request: Request, session: Administering) -> Response:
    """Revoke a key, and with it the sessions it has opened."""
    await key_routes.revoke_key(key_id, session)
    return back(request, "/admin", done="revoked")


@router.post("/admin/members")
async def add_member(request: Request, session: Administering, fields: Form) -> Response:
    """Make a person a member of the project."""
    wanted = checked(MemberRequest, email=fields.text("email"), role=fields.text("role"))
    await routes.add_member(wanted, session)
    return back(request, "/admin", done="saved")


@router.post("/admin/members/remove")
async def remove_member(request: Request, session: Administering, fields: Form) -> Response:
    """Remove a person from the project, with their keys."""
    await routes.remove_member(session, fields.text("email").lower())
    return back(request, "/admin", done="removed")


@router.post("/admin/projects")
async def create_project(request: Request, session: Administering, fields: Form) -> Response:
    """Create a project in the organization."""
    session.grant.require_organization()
    wanted = checked(ProjectRequest, name=fields.text("name"))
    await routes.create_project(wanted, session)
    return back(request, "/admin", done="saved")


@router.get("/health")
async def health(request: Request, session: Viewing) -> Response:
    """The state of each part; the settings in force for an admin of the server."""
    ledger = session.ledger
    organization = await ledger.projects.organization(session.project.organization_id)
    allowed = organization.operator and session.grant.administers_organization
    return show(
        request,
        "health.html",
        parts=await session.api.health(),
        cooling=await ledger.circuits.cooling(session.project.id),
        settings=_in_force(session.api.settings) if allowed else None,
    )


def _in_force(settings: Settings) -> list[dict[str, Any]]:
    """The settings by name, with their source. Secrets are not shown."""
    return [
        {
            "name": f"MEMLANE_{name.upper()}",
            "value": _plain(value),
            "source": "environment" if name in settings.model_fields_set else "default",
        }
        for name, value in settings
    ]


def _plain(value: object) -> str:
    """The value of a setting as text, without secrets."""
    match value:
        case None:
            return "–"
        case SecretStr():
            return "set"
        case BaseModel():
            parts = ((name, _plain(part)) for name, part in value if part not in (None, ()))
            return ", ".join(f"{name} {part}" for name, part in parts)
        case tuple() | list() | frozenset():
            return ", ".join(map(_plain, value)) or "–"
        case str() if "@" in value:  # a URL may have a password
            return "set"
        case _:
            return str(value)
