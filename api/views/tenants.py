"""Responses about organizations, projects, members and API keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from api.schemas.tenants import NOT_HERE
from pipeline.tenants.api_keys import ApiKey
from pipeline.tenants.members import Member, Role
from pipeline.tenants.projects import Organization, ProjectView


def organization(found: Organization, people: Iterable[Member], *, role: Role) -> dict[str, Any]:
    """A key opens one organization, so it is the default one; there are no plans or invitations."""
    return {
        "org_id": str(found.id),
        "name": found.name,
        "members": distinct(people),
        "is_default": True,
        "is_owner": role is Role.OWNER,
        "user_role": role,
        "byok_enabled": True,
        "invitations": [],
        "owner_pricing_plan": "self-hosted",
        "created_at": found.created_at,
        "updated_at": found.created_at,
    }


def distinct(people: Iterable[Member]) -> list[dict[str, Any]]:
    """Members of several projects, each once: an owner of any of them is shown as an owner."""
    by_email: dict[str, Member] = {}
    for person in people:
        if person.email not in by_email or person.role is Role.OWNER:
            by_email[person.email] = person
    return [member(person) for person in by_email.values()]


def project(
    found: ProjectView, people: Iterable[Member], *, graph: bool, own: bool, role: Role
) -> dict[str, Any]:
    """The whole object, always; `is_default` says that it is the one the key opens.

    Texts and lists that are not set are empty where the Mem0 Platform documents no null.
    """
    use_case = found.settings.get("usecase_setting")
    return {
        "project_id": str(found.id),
        "org_id": str(found.organization_id),
        "name": found.name,
        "description": found.description or "",
        "custom_instructions": found.custom_instructions or "",
        "agent_custom_instructions": found.agent_custom_instructions,
        "custom_categories": [
            {name: about} for name, about in (found.custom_categories or {}).items()
        ],
        "inclusion_prompt": found.includes,
        "exclusion_prompt": found.excludes,
        "multilingual": False,
        "decay": False,
        "usecase_setting": None,
        **found.settings,
        "memory_depth": str(found.settings.get("memory_depth") or ""),
        # The documented type is text, but a client may set a number.
        "usecase": None if use_case is None else str(use_case),
        **NOT_HERE,
        "user_role": role,
        "enable_graph": graph,
        "version": "v3",
        "is_default": own,
        "members": [member(one) for one in people if one.project_id == found.id],
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def member(found: Member) -> dict[str, Any]:
    return {
        "user_id": found.email,
        "username": found.email.partition("@")[0],
        "email": found.email,
        "role": found.role,
        "created_at": found.created_at,
    }


def key(found: ApiKey) -> dict[str, Any]:
    return {
        "id": str(found.id),
        "project_id": str(found.project_id),
        "name": found.name,
        "prefix": found.prefix,
        "scope": found.access,
        "member": found.member,
        "created_by": str(found.created_by) if found.created_by else None,
        "created_at": found.created_at,
        "expires_at": found.expires_at,
        "revoked_at": found.revoked_at,
    }
