"""Organizations, projects, members and keys as clients send and read them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field, field_validator

from api.schemas import OwnRequest, Request
from api.schemas.adds import categories
from api.schemas.limits import LONGEST_INSTRUCTIONS, Categories
from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import moment
from pipeline.domain.tenants import Access
from pipeline.tenants.api_keys import ApiKey
from pipeline.tenants.members import Member, Role
from pipeline.tenants.projects import Organization, ProjectView

# Stored and read back; nothing acts on them.
SETTINGS = ("multilingual", "decay", "memory_depth", "usecase_setting")


# Fields of the Mem0 Platform's project that have no meaning here.
NOT_HERE = {
    "update_custom_instructions": None,
    "summary_custom_instructions": None,
    "summary_batch_size": 0,
    "summary_max_tokens": None,
    "expiration_date": None,
    "active_prompt_profile": None,
}


def _plain(name: str) -> str:
    if not name.strip():
        raise ValueError("a name is more than blanks")
    return name.strip()


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_plain)]
Wish = Annotated[str, Field(max_length=LONGEST_INSTRUCTIONS)]
Email = Annotated[
    str,
    Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$"),
    AfterValidator(str.lower),  # so that it is found however it is written
]


class OrganizationRequest(Request):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Harbour Clinic"}]})

    name: Name


class ProjectRequest(Request):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "support", "description": "The help desk"}]}
    )

    name: Name
    description: Wish | None = None


class ProjectUpdateRequest(Request):
    """What to change; an empty text or list clears, what is left out stays."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"custom_instructions": "Leave out what is said in jest."}]}
    )

    name: Name | None = None
    description: Wish | None = None
    custom_instructions: Wish | None = None
    agent_custom_instructions: Wish | None = None
    includes: Wish | None = Field(
        default=None, validation_alias=AliasChoices("includes", "inclusion_prompt")
    )
    excludes: Wish | None = Field(
        default=None, validation_alias=AliasChoices("excludes", "exclusion_prompt")
    )
    custom_categories: Categories | None = Field(
        default=None,
        description='`[{"name": "what it is for"}, …]`, instead of the built-in ones.',
    )
    multilingual: bool | None = Field(default=None, description="Kept; nothing acts on it.")
    decay: bool | None = Field(default=None, description="Kept; nothing acts on it.")
    memory_depth: str | int | None = Field(default=None, description="Kept; nothing acts on it.")
    usecase_setting: str | int | None = Field(default=None, description="Kept; nothing acts on it.")

    @field_validator("custom_instructions", mode="before")
    @classmethod
    def one_text(cls, value: object) -> object:
        """Documented as a list of texts, and sent as one text: both are read."""
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            return "\n".join(value)
        return value

    @field_validator("custom_categories", mode="before")
    @classmethod
    def one_mapping(cls, value: object) -> object:
        return categories(value)

    def columns(self) -> dict[str, Any]:
        given = self.model_dump(exclude_unset=True, exclude=set(SETTINGS))
        return {name: value or None for name, value in given.items() if name != "name" or value}

    def settings(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True, include=set(SETTINGS))

    def something(self) -> None:
        """Errors: InvalidInput."""
        if not self.columns() and not self.settings():
            raise InvalidInput(f"Give at least one of {', '.join(type(self).model_fields)}.")


class MemberName(Request):
    email: Email


class MemberRequest(Request):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"email": "noor@example.org", "role": "READER"}]}
    )

    email: Email
    role: Role = Role.READER


class KeyRequest(OwnRequest):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "chat backend", "scope": "write"}]}
    )

    name: Name
    scope: Access = Access.WRITE
    project_id: str | None = Field(
        default=None, description="Another project of the organization; yours where left out."
    )
    member: Email | None = Field(
        default=None,
        description="Whose it is: ends with them, and never does more than their role.",
    )
    expires_at: datetime | None = None

    @field_validator("expires_at", mode="before")
    @classmethod
    def time(cls, value: object) -> object:
        return value if value is None else moment("expires_at", value)


def role_of(access: Access) -> Role:
    """What a key may do, in the two words the Mem0 Platform has for it."""
    return Role.OWNER if access.allows(Access.ADMIN) else Role.READER


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
        "usecase": found.settings.get("usecase_setting"),
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
