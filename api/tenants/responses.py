"""Responses about organizations, projects, members and API keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from typing_extensions import TypedDict

from api.http.shared_responses import DoneJson, Id, json_of
from api.tenants.requests import NOT_HERE
from pipeline.domain.modes import Mode
from pipeline.domain.tenants import Access
from pipeline.tenants.api_keys import ApiKey
from pipeline.tenants.members import Member, MemberRole
from pipeline.tenants.projects import Organization, ProjectView


class MemberJson(TypedDict):
    """A member of a project."""

    user_id: str
    username: str
    email: str
    role: MemberRole
    created_at: datetime


class MembersJson(TypedDict):
    """All members."""

    members: list[MemberJson]


class OrganizationJson(TypedDict):
    """An organization with its members."""

    org_id: Id
    name: str
    members: list[MemberJson]
    is_default: bool
    is_owner: bool
    user_role: MemberRole
    byok_enabled: bool
    invitations: list[Any]
    owner_pricing_plan: str
    created_at: datetime
    updated_at: datetime


class NewOrganizationJson(DoneJson):
    """A new organization: its first project, and the project's admin key."""

    key: str
    org_id: Id
    project_id: Id


class NewProjectJson(DoneJson):
    """A new project."""

    project_id: Id


class ProjectJson(TypedDict):
    """A project with its settings. `is_default`: it is the key's project."""

    project_id: Id
    org_id: Id
    name: str
    description: str
    custom_instructions: str
    agent_custom_instructions: str | None
    custom_categories: list[dict[str, str]]
    inclusion_prompt: str | None
    exclusion_prompt: str | None
    multilingual: bool
    decay: bool
    default_cut: bool
    allowed_origins: list[str]
    usecase_setting: Any
    memory_depth: str
    usecase: str | None
    mode: str
    budget: Mapping[str, Any] | None
    curator: Mapping[str, Any] | None
    gather: Mapping[str, Any] | None
    tamper_evidence: bool
    update_custom_instructions: str | None
    summary_custom_instructions: str | None
    summary_batch_size: int
    summary_max_tokens: int | None
    expiration_date: str | None
    active_prompt_profile: str | None
    user_role: MemberRole
    enable_graph: bool
    graph_types: Mapping[str, Any] | None
    custom_attributes: Mapping[str, str] | None
    version: str
    is_default: bool
    members: list[MemberJson]
    created_at: datetime
    updated_at: datetime


class KeyJson(TypedDict):
    """An API key, without its secret."""

    id: Id
    project_id: Id
    name: str
    prefix: str
    scope: Access
    member: str | None
    created_by: Id | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class NewKeyJson(KeyJson):
    """A new API key, with its secret."""

    key: str


def organization(
    row: Organization, people: Iterable[Member], *, role: MemberRole
) -> OrganizationJson:
    """An organization. It is always the default one, because a key belongs to one organization."""
    return {
        "org_id": str(row.id),
        "name": row.name,
        "members": distinct(people),
        "is_default": True,
        "is_owner": role is MemberRole.OWNER,
        "user_role": role,
        "byok_enabled": True,
        "invitations": [],
        "owner_pricing_plan": "self-hosted",
        "created_at": row.created_at,
        "updated_at": row.created_at,
    }


def distinct(people: Iterable[Member]) -> list[MemberJson]:
    """Members of several projects without duplicates; an owner of any project is shown as owner."""
    by_email: dict[str, Member] = {}
    for person in people:
        if person.email not in by_email or person.role is MemberRole.OWNER:
            by_email[person.email] = person
    return [member(person) for person in by_email.values()]


def project(
    row: ProjectView, people: Iterable[Member], *, graph: bool, own: bool, role: MemberRole
) -> ProjectJson:
    """A project with all fields.

    Unset texts and lists are empty where the Mem0 Platform documents no null.
    """
    use_case = row.settings.get("usecase_setting")
    settings = {
        "multilingual": False,
        "decay": False,
        "default_cut": True,
        "allowed_origins": [],
        "usecase_setting": None,
        **{name: value for name, value in row.settings.items() if value is not None},
        "memory_depth": str(row.settings.get("memory_depth") or ""),
    }
    return json_of(
        ProjectJson,
        row,
        project_id=row.id,
        org_id=row.organization_id,
        description=row.description or "",
        custom_instructions=row.custom_instructions or "",
        custom_categories=[{name: about} for name, about in (row.custom_categories or {}).items()],
        inclusion_prompt=row.includes,
        exclusion_prompt=row.excludes,
        **settings,
        # The documented type is text, but a client may set a number.
        usecase=None if use_case is None else str(use_case),
        mode=row.mode or Mode.CONSOLIDATE,
        tamper_evidence=bool(row.tamper_evidence),
        **NOT_HERE,
        user_role=role,
        enable_graph=graph and row.enable_graph is not False,
        version="v3",
        is_default=own,
        members=[member(person) for person in people if person.project_id == row.id],
    )


def member(row: Member) -> MemberJson:
    """A member."""
    return json_of(MemberJson, row, user_id=row.email, username=row.email.partition("@")[0])


def key(row: ApiKey) -> KeyJson:
    """An API key, without its secret."""
    return json_of(KeyJson, row, scope=row.access)
