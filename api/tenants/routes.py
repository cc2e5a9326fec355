"""Organizations, their projects and members: administered with an admin key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from api.auth.tenant import Admin, OrganizationAdmin
from api.dependencies import ApiCall
from api.http.shared_responses import DoneJson
from api.http.strict_json import StrictJson
from api.tenants import requests as tenant_requests
from api.tenants import responses as tenant_responses
from api.tenants.requests import (
    Email,
    MemberName,
    MemberRequest,
    OrganizationRequest,
    ProjectRequest,
    ProjectUpdateRequest,
)
from api.tenants.responses import (
    MembersJson,
    NewOrganizationJson,
    NewProjectJson,
    OrganizationJson,
    ProjectJson,
)
from pipeline.domain.errors import Forbidden, InvalidInput
from pipeline.domain.tenants import ProjectId
from pipeline.erasure import service as erasure
from pipeline.tenants.projects import ProjectView

ORGANIZATIONS = "/api/v1/orgs/organizations/"
ORGANIZATION = ORGANIZATIONS + "{org_id}/"
PROJECTS = ORGANIZATION + "projects/"
PROJECT = PROJECTS + "{project_id}/"
MEMBERS = PROJECT + "members/"
ORGANIZATION_MEMBERS = ORGANIZATION + "members/"

router = APIRouter(tags=["tenants"], route_class=StrictJson)


async def in_organization(org_id: str) -> None:
    """Describe the path in OpenAPI; `Admin` checks its ids."""


async def in_project(org_id: str, project_id: str) -> None:
    """Describe the path in OpenAPI; `Admin` checks its ids."""


OF_ORGANIZATION = [Depends(in_organization)]
OF_PROJECT = [Depends(in_project)]


@router.get(ORGANIZATIONS)
async def organizations(admin: Admin) -> list[OrganizationJson]:
    """The key's organization, as a list with one element."""
    return [await organization(admin)]


@router.post(ORGANIZATIONS, status_code=201)
async def found_organization(
    request: OrganizationRequest, admin: OrganizationAdmin
) -> NewOrganizationJson:
    """Create an organization with a first project and its admin key. The key is shown only in this
    response.

    Only for admin keys, without a member, of the organization that the server was started with.
    """
    projects = admin.ledger.projects
    if not (await projects.organization(admin.project.organization_id)).operator:
        raise Forbidden("Only an admin key of this server's first organization can create others.")
    made, key = await projects.create(request.name)
    return {
        "message": "Organization created successfully.",
        "key": key,
        "org_id": str(made.organization_id),
        "project_id": str(made.id),
    }


@router.get(ORGANIZATION, dependencies=OF_ORGANIZATION)
async def organization(admin: Admin) -> OrganizationJson:
    """The organization with its members."""
    ledger = admin.ledger
    row = await ledger.projects.organization(admin.project.organization_id)
    people = await ledger.members.of(await _visible(admin))
    return tenant_responses.organization(
        row, people, role=tenant_requests.role_of(admin.grant.access)
    )


@router.delete(ORGANIZATION, dependencies=OF_ORGANIZATION)
async def delete_organization(admin: OrganizationAdmin) -> DoneJson:
    """Delete an organization with its projects, keys and members. All its projects must be empty.

    403 for the organization that the server was started with; 409 while one of its projects has
    memories, or events that have not ended.
    """
    stores, organization_id = admin.api.stores, admin.project.organization_id
    if (await stores.ledger.projects.organization(organization_id)).operator:
        raise Forbidden("The organization this server was started with cannot be deleted.")
    await erasure.remove(
        organization_id, deletion=stores.ledger.project_deletion, index=stores.index
    )
    admin.api.keys.forget()
    return {"message": "Organization deleted successfully."}


@router.get(ORGANIZATION_MEMBERS, dependencies=OF_ORGANIZATION)
async def list_organization_members(admin: Admin) -> MembersJson:
    """The members of all projects of the organization, without duplicates; with a member's key, or
    one that is not an admin key, those of the key's project.
    """
    people = await admin.ledger.members.of(await _visible(admin))
    return {"members": tenant_responses.distinct(people)}


@router.post(ORGANIZATION_MEMBERS, dependencies=OF_ORGANIZATION, status_code=201)
async def add_organization_member(request: MemberRequest, admin: OrganizationAdmin) -> DoneJson:
    """Make a person a member of every project that the organization has now."""
    ids = await _visible(admin)
    await admin.ledger.members.add(ids, request.email, request.role)
    return {"message": "Member added successfully."}


@router.put(ORGANIZATION_MEMBERS, dependencies=OF_ORGANIZATION)
async def update_organization_member(request: MemberRequest, admin: OrganizationAdmin) -> DoneJson:
    """Change a person's role in all projects; the scopes of their keys change with it."""
    ids = await _visible(admin)
    await admin.ledger.members.change(ids, request.email, request.role)
    admin.api.keys.forget()
    return {"message": "Member updated successfully."}


@router.delete(ORGANIZATION_MEMBERS, dependencies=OF_ORGANIZATION)
async def remove_organization_member(
    admin: OrganizationAdmin,
    request: MemberName | None = None,
    email: Annotated[Email | None, Query()] = None,
) -> DoneJson:
    """Remove a person from all projects, and revoke their keys. The email is in the body or in the
    query string.
    """
    named = request.email if request else email
    if named is None:
        raise InvalidInput("Give the email of the member.")
    await admin.ledger.members.remove(await _visible(admin), named)
    admin.api.keys.forget()
    return {"message": "Member removed successfully."}


@router.get(PROJECTS, dependencies=OF_ORGANIZATION)
async def list_projects(admin: Admin) -> list[ProjectJson]:
    """The organization's projects, oldest first; with a member's key, or one that is not an admin
    key, its own.
    """
    return await _shown(admin, await _views(admin))


@router.post(PROJECTS, dependencies=OF_ORGANIZATION)
async def create_project(request: ProjectRequest, admin: OrganizationAdmin) -> NewProjectJson:
    """Create a project in the organization. `POST /v1/keys/` with its id creates its first key."""
    organization_id = admin.project.organization_id
    made = await admin.ledger.projects.add(organization_id, request.name, request.description)
    return {"message": "Project created successfully.", "project_id": str(made.id)}


@router.get(PROJECT, dependencies=OF_PROJECT)
async def get_project(
    admin: Admin,
    fields: Annotated[list[str] | None, Query(description="Accepted; the answer is whole.")] = None,
) -> ProjectJson:
    """The project with its members and settings."""
    views = await admin.ledger.projects.views(admin.project.organization_id, admin.project.id)
    [whole] = await _shown(admin, views)
    return whole


@router.patch(PROJECT, dependencies=OF_PROJECT)
async def update_project(request: ProjectUpdateRequest, admin: Admin) -> DoneJson:
    """Change a project's texts, categories and settings. Other API processes know it within 5 s."""
    request.something()
    if "tamper_evidence" in request.model_fields_set:
        on = bool(request.tamper_evidence)
        await admin.ledger.seals.switch(admin.project.id, on=on)
    ledger = admin.ledger.projects
    await ledger.change(admin.project.id, request.columns(), request.settings())
    admin.api.keys.forget()
    return {"message": "Project updated successfully"}


@router.delete(PROJECT, dependencies=OF_PROJECT)
async def delete_project(admin: Admin) -> DoneJson:
    """Delete an empty project with its keys, members and history.

    409 while it has memories, or events that have not ended: delete those first.
    """
    stores = admin.api.stores
    await erasure.remove(admin.project, deletion=stores.ledger.project_deletion, index=stores.index)
    admin.api.keys.forget()
    return {"message": "Project deleted successfully."}


@router.get(MEMBERS, dependencies=OF_PROJECT)
async def list_members(admin: Admin) -> MembersJson:
    """The members of the project."""
    people = await admin.ledger.members.of([admin.project.id])
    return {"members": [tenant_responses.member(person) for person in people]}


@router.post(MEMBERS, dependencies=OF_PROJECT)
async def add_member(request: MemberRequest, admin: Admin) -> DoneJson:
    """Make a person a member of the project."""
    await admin.ledger.members.add([admin.project.id], request.email, request.role)
    return {"message": "Member added successfully."}


@router.put(MEMBERS, dependencies=OF_PROJECT)
async def update_member(request: MemberRequest, admin: Admin) -> DoneJson:
    """Change a member's role; the scopes of their keys change with it."""
    await admin.ledger.members.change([admin.project.id], request.email, request.role)
    admin.api.keys.forget()
    return {"message": "Member updated successfully."}


@router.delete(MEMBERS, dependencies=OF_PROJECT)
async def remove_member(admin: Admin, email: Annotated[Email, Query()]) -> DoneJson:
    """Remove a member from the project, and revoke their keys."""
    await admin.ledger.members.remove([admin.project.id], email)
    admin.api.keys.forget()
    return {"message": "Member removed successfully."}


async def _views(admin: ApiCall) -> Sequence[ProjectView]:
    """The organization's projects, oldest first, for a key that administers it; else its own."""
    only = None if admin.grant.administers_organization else admin.grant.project.id
    return await admin.ledger.projects.views(admin.project.organization_id, only)


async def _visible(admin: ApiCall) -> list[ProjectId]:
    return [view.id for view in await _views(admin)]


async def _shown(admin: ApiCall, views: Sequence[ProjectView]) -> list[ProjectJson]:
    """Projects with their members."""
    people = await admin.ledger.members.of([view.id for view in views])
    graph = admin.api.settings.graph == "on"
    return [
        tenant_responses.project(
            view,
            people,
            graph=graph,
            own=view.id == admin.grant.project.id,
            role=tenant_requests.role_of(admin.grant.access),
        )
        for view in views
    ]
