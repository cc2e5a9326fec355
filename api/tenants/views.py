"""Responses about organizations, projects, members and API keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from api.tenants.schemas import NOT_HERE
from pipeline.domain.modes import Mode
from pipeline.tenants.api_keys import ApiKey
from pipeline.tenants.members import Member, MemberRole
from pipeline.tenants.projects import Organization, ProjectView


def organization(
    row: Organization, people: Iterable[Member], *, role: MemberRole
) -> dict[str, Any]:
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


def distinct(people: Iterable[Member]) -> list[dict[str, Any]]:
    """Members of several projects without duplicates; an owner of any project is shown as owner."""
    by_email: dict[str, Member] = {}
    for person in people:
        if person.email not in by_email or person.role is MemberRole.OWNER:
            by_email[person.email] = person
    return [member(person) for person in by_email.values()]


def project(
    row: ProjectView, people: Iterable[Member], *, graph: bool, own: bool, role: MemberRole
) -> dict[str, Any]:
    """A project with all fields. `is_default`: it is the key's project.

    Unset texts and lists are empty where the Mem0 Platform documents no null.
    """
    use_case = row.settings.get("usecase_setting")
    return {
        "project_id": str(row.id),
        "org_id": str(row.organization_id),
        "name": row.name,
        "description": row.description or "",
        "custom_instructions": row.custom_instructions or "",
        "agent_custom_instructions": row.agent_custom_instructions,
        "custom_categories": [
            {name: about} for name, about in (row.custom_categories or {}).items()
        ],
        "inclusion_prompt": row.includes,
        "exclusion_prompt": row.excludes,
        "multilingual": False,
        "decay": False,
        "default_cut": True,
        "allowed_origins": [],
        "usecase_setting": None,
        **row.settings,
        "memory_depth": str(row.settings.get("memory_depth") or ""),
        # The documented type is text, but a client may set a number.
        "usecase": None if use_case is None else str(use_case),
        "mode": row.mode or Mode.CONSOLIDATE,
        "budget": row.budget,
        "curator": row.curator,
        "gather": row.gather,
        "tamper_evidence": bool(row.tamper_evidence),
        **NOT_HERE,
        "user_role": role,
        "enable_graph": graph and row.enable_graph is not False,
        "graph_types": row.graph_types,
        "custom_attributes": row.custom_attributes,
        "version": "v3",
        "is_default": own,
        "members": [member(person) for person in people if person.project_id == row.id],
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def member(row: Member) -> dict[str, Any]:
    """A member."""
    return {
        "user_id": row.email,
        "username": row.email.partition("@")[0],
        "email": row.email,
        "role": row.role,
        "created_at": row.created_at,
    }


def key(row: ApiKey) -> dict[str, Any]:
    """An API key, without its secret."""
    return {
        "id": str(row.id),
        "project_id": str(row.project_id),
        "name": row.name,
        "prefix": row.prefix,
        "scope": row.access,
        "member": row.member,
        "created_by": str(row.created_by) if row.created_by else None,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "revoked_at": row.revoked_at,
    }
