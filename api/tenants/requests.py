"""Requests about organizations, projects, members and API keys."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AliasChoices,
    Field,
    field_validator,
    model_validator,
)

from api.adds.requests import NamedCategories
from api.http.body import Moment, OwnRequest, Request, examples
from api.http.limits import LONGEST_INSTRUCTIONS, Attributes
from pipeline.domain.errors import InvalidInput
from pipeline.domain.lanes import Gather
from pipeline.domain.limits import one_line
from pipeline.domain.modes import Mode, Period
from pipeline.domain.tenants import Access
from pipeline.tenants.members import MemberRole
from pipeline.text.relations.names import snake

# Settings of a project; those other than `decay`, `default_cut` and `allowed_origins` are stored
# and returned without effect.
SETTINGS = (
    *("multilingual", "decay", "default_cut", "allowed_origins", "memory_depth"),
    "usecase_setting",
)


# Fields of the Mem0 Platform's project that have no meaning here.
NOT_HERE = {
    "update_custom_instructions": None,
    "summary_custom_instructions": None,
    "summary_batch_size": 0,
    "summary_max_tokens": None,
    "expiration_date": None,
    "active_prompt_profile": None,
}


# Largest budgets: above what any model sells, and exact as a number of JSON.
MOST_TOKENS, MOST_USD = 10**15, 10**9


def _plain(name: str) -> str:
    if not name.strip():
        raise ValueError("a name cannot be blank")
    return one_line(name.strip())


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_plain)]
InstructionText = Annotated[str, Field(max_length=LONGEST_INSTRUCTIONS)]
Email = Annotated[
    str,
    Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$"),
    AfterValidator(str.lower),  # so that look-ups ignore case
]


MOST_ORIGINS = 50
ORIGIN = re.compile(
    r"https?://[a-z0-9][a-z0-9.-]*(?::\d{1,5})?|https?://\[[0-9a-f:]+\](?::\d{1,5})?"
)


def _origin(value: str) -> str:
    """The origin in lower case. Errors: ValueError unless it is a scheme and a host."""
    if not ORIGIN.fullmatch(value.lower()):
        raise ValueError("give an origin such as https://chat.example.org, without a path")
    return value.lower()


Origin = Annotated[str, Field(max_length=300), AfterValidator(_origin)]


class DecayOptions(Request):
    """The decay of a project's memories."""

    half_life_days: float = Field(ge=0.1, le=36_500)


GATHER = Gather()


class GatherOptions(OwnRequest):
    """Limits up to which the turns of a scope wait for each other."""

    messages: int = Field(default=GATHER.messages, ge=2, le=500)
    tokens: int = Field(default=GATHER.tokens, ge=50, le=100_000, description="Estimated.")
    seconds: float = Field(
        default=GATHER.seconds, gt=0, le=3_600, description="After the oldest turn."
    )


class OrganizationRequest(Request):
    """A new organization."""

    model_config = examples({"name": "Harbour Clinic"})

    name: Name


class ProjectRequest(Request):
    """A new project."""

    model_config = examples({"name": "support", "description": "The help desk"})

    name: Name
    description: InstructionText | None = None


class BudgetRequest(OwnRequest):
    """A limit of model costs: tokens of prompts and answers, US dollars, or both."""

    tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS, strict=True)
    usd: float | None = Field(default=None, ge=0, le=MOST_USD, strict=True)
    per: Period = Field(default=Period.DAY, description="Calendar day or month, in UTC.")

    @model_validator(mode="after")
    def limited(self) -> BudgetRequest:
        """Require a limit."""
        if self.tokens is None and self.usd is None:
            raise ValueError("give tokens, usd or both")
        return self


class BudgetsRequest(OwnRequest):
    """The budget of the whole project, and that of each of its users."""

    project: BudgetRequest | None = None
    user: BudgetRequest | None = None


class CuratorSchedule(OwnRequest):
    """Schedule of the curator: hours between two runs over a scope, and minutes without a new
    message before one begins.
    """

    every_hours: float = Field(default=24.0, ge=0.1, le=8_760)
    idle_minutes: float = Field(default=60.0, ge=0, le=525_600)


class GraphTypesRequest(OwnRequest):
    """Types of entities and names of relations that a project adds to the built-in ones."""

    entity_types: NamedCategories = Field(default_factory=dict)
    relation_types: NamedCategories = Field(default_factory=dict)

    def stored(self) -> dict[str, dict[str, str]]:
        """The types by name in snake_case."""
        given = {"entity_types": self.entity_types, "relation_types": self.relation_types}
        return {
            kind: {name: about for word, about in types.items() if (name := snake(word))}
            for kind, types in given.items()
        }


class ProjectUpdateRequest(Request):
    """Changes of a project. An empty text or list clears a field; an absent field stays."""

    model_config = examples({"custom_instructions": "Leave out what is said in jest."})

    name: Name | None = None
    description: InstructionText | None = None
    custom_instructions: InstructionText | None = None
    agent_custom_instructions: InstructionText | None = None
    includes: InstructionText | None = Field(
        default=None, validation_alias=AliasChoices("includes", "inclusion_prompt")
    )
    excludes: InstructionText | None = Field(
        default=None, validation_alias=AliasChoices("excludes", "exclusion_prompt")
    )
    custom_categories: NamedCategories | None = Field(
        default=None,
        description='`[{"name": "what it is for"}, …]`, instead of the built-in ones.',
    )
    mode: Mode | None = Field(
        default=None, description="Mode of adds that name none; null: consolidate."
    )
    budget: BudgetsRequest | None = Field(
        default=None,
        description=(
            "Replaces all limits; null: none. From 80 % of a limit adds run in mode append, from "
            "100 % in mode turns."
        ),
    )
    curator: CuratorSchedule | None = Field(
        default=None,
        description="When the curator looks through idle scopes; null: only on request.",
    )
    tamper_evidence: bool | None = Field(
        default=None,
        description=(
            "Seal events, receipts and history, so that `GET /v1/verify/` names a row that was "
            "changed in the database. Needs `MEMLANE_SEAL_KEY`; false or null: off."
        ),
    )
    gather: bool | GatherOptions | None = Field(
        default=None,
        description=(
            "Turns wait until the topic changes, there are enough of them, or the time is over; "
            "then they are processed together. True: with the usual limits; false or null: off."
        ),
    )
    enable_graph: bool | None = Field(
        default=None, description="Graph of adds that do not say; null: the server's setting."
    )
    graph_types: GraphTypesRequest | None = Field(
        default=None,
        description=(
            "Types of entities and names of relations besides the built-in ones, each with its "
            "meaning. Replaces all of them; null: none."
        ),
    )
    custom_attributes: Attributes | None = Field(
        default=None,
        description=(
            '`{"badge_number": "one", "instruments": "several"}`: how many values a subject has of '
            "an attribute at a time. A newer value of `one` replaces the older. Replaces all of "
            "them, and goes before the built-in list and the model's word; null: none."
        ),
    )
    multilingual: bool | None = Field(default=None, description="Kept; nothing acts on it.")
    decay: bool | DecayOptions | None = Field(
        default=None,
        description=(
            "Old memories that no search returns rank lower, often returned ones higher. "
            "True: with a half-life of 30 days."
        ),
    )
    default_cut: bool | None = Field(
        default=None,
        description=(
            "False: a search without `top_k` and `threshold` returns up to 10 results, also those "
            "without any sign of an answer."
        ),
    )
    allowed_origins: Annotated[list[Origin], Field(max_length=MOST_ORIGINS)] | None = Field(
        default=None,
        description=(
            "Origins such as `https://chat.example.org` whose scripts may call the API with a"
            " user's token (CORS), and whose pages may embed the user's page. Replaces all."
        ),
    )
    memory_depth: str | int | None = Field(default=None, description="Kept; nothing acts on it.")
    usecase_setting: str | int | None = Field(default=None, description="Kept; nothing acts on it.")

    @field_validator("custom_instructions", mode="before")
    @classmethod
    def one_text(cls, value: object) -> object:
        """Accept a list of texts, as documented, or one text, as clients send."""
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            return "\n".join(value)
        return value

    def columns(self) -> dict[str, Any]:
        """The changed columns of the project."""
        limits = GatherOptions() if self.gather is True else self.gather or None
        own = {
            "budget": self.budget and self.budget.model_dump(exclude_none=True),
            "curator": self.curator and self.curator.model_dump(),
            "gather": limits and limits.model_dump(),
            "graph_types": self.graph_types and self.graph_types.stored(),
        }
        rest = {*SETTINGS, *own, "enable_graph", "tamper_evidence"}
        given = self.model_dump(exclude_unset=True, exclude=rest)
        given |= {name: value for name, value in own.items() if name in self.model_fields_set}
        changed = {name: value or None for name, value in given.items() if name != "name" or value}
        if "enable_graph" in self.model_fields_set:
            changed["enable_graph"] = self.enable_graph
        return changed

    def settings(self) -> dict[str, Any]:
        """The changed settings."""
        return self.model_dump(exclude_unset=True, include=set(SETTINGS))

    def something(self) -> None:
        """Require at least one change. Errors: InvalidInput."""
        switched = "tamper_evidence" in self.model_fields_set
        if not (self.columns() or self.settings() or switched):
            raise InvalidInput(f"Give at least one of {', '.join(type(self).model_fields)}.")


class MemberName(Request):
    """The email of a member."""

    email: Email


class MemberRequest(Request):
    """A member and a role."""

    model_config = examples({"email": "noor@example.org", "role": "READER"})

    email: Email
    role: MemberRole = MemberRole.READER


class KeyRequest(OwnRequest):
    """A new API key."""

    model_config = examples({"name": "chat backend", "scope": "write"})

    name: Name
    scope: Access = Access.WRITE
    project_id: str | None = Field(
        default=None, description="Another project of the organization; yours where left out."
    )
    member: Email | None = Field(
        default=None,
        description="The member who owns the key. The key ends with the membership and never allows"
        " more than the member's role.",
    )
    expires_at: Moment = None


def role_of(access: Access) -> MemberRole:
    """The Mem0 Platform's role for the access of a key."""
    return MemberRole.OWNER if access.allows(Access.ADMIN) else MemberRole.READER
