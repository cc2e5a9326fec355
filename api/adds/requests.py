"""Adds: a conversation turn as clients send it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Header
from pydantic import BeforeValidator, Field, model_validator

from api.adds.messages import Messages
from api.http.body import (
    LONGEST_ID,
    EntityId,
    ExpirationDate,
    LocalMoment,
    Request,
    as_id,
    examples,
)
from api.http.limits import Categories, InstructionText
from pipeline.domain.events import AddOptions, Instructions, Priority
from pipeline.domain.filters import ANY, ANY_IS_NO_ID, ENTITY_IDS
from pipeline.domain.limits import MOST_MESSAGES, MemoryText, Metadata
from pipeline.domain.local_times import offset_of
from pipeline.domain.messages import Message, Role
from pipeline.domain.modes import Mode
from pipeline.domain.scope import Scope
from pipeline.tenants.projects import Project

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="Identifies this add: a second request with the same key adds nothing.",
    ),
]


def categories(value: object) -> object:
    """A list of `{"name": "meaning"}` objects as one object."""
    if not isinstance(value, list):
        return value
    merged: dict[str, str] = {}
    for item in value:
        if not isinstance(item, dict):
            kind = type(item).__name__
            raise ValueError(  # noqa: TRY004  pydantic reports only ValueError to the client
                f'Expected a dictionary of items but got type "{kind}".'
            )
        merged |= {str(name): about or "" for name, about in item.items()}
    return merged


NamedCategories = Annotated[Categories, BeforeValidator(categories)]


class AddRequest(Request):
    """An add: messages, the ids they belong to, and options."""

    model_config = examples(
        {
            "messages": [
                {"role": "user", "content": "I'm Maya. I just moved from Bern to Porto."},
                {"role": "assistant", "content": "Welcome to Porto, Maya!"},
            ],
            "user_id": "maya",
            "metadata": {"channel": "web"},
        }
    )

    messages: Messages
    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None
    filters: dict[str, Any] | None = None
    metadata: Metadata | None = None
    infer: bool = True
    deduced_memories: list[MemoryText] | None = Field(
        default=None,
        max_length=MOST_MESSAGES,
        description="With `infer=false`: stored instead of the messages, one memory each.",
    )
    memory_type: Literal["procedural_memory"] | None = Field(
        default=None,
        description="`procedural_memory`: the messages are an agent's work; one summary is stored.",
    )
    mode: Mode | None = Field(
        default=None,
        description=(
            "consolidate: extract facts, compare and apply them. append: extract and add. turns: "
            "keep the messages only. Default: the project's mode."
        ),
    )
    dry_run: bool = Field(
        default=False,
        description="Compute the receipt and store nothing. Poll the event for it.",
    )
    incognito: bool = Field(
        default=False,
        description="Answer the add and store nothing of it.",
    )
    enable_graph: bool | None = Field(
        default=None,
        description="False: no entities and relations. Default: the project's setting.",
    )
    priority: Priority = Field(
        default=Priority.NORMAL,
        description=(
            "low: back-fill, which runs behind adds of normal priority, and is refused at half of "
            "the limits of waiting events."
        ),
    )
    async_mode: bool = True
    output_format: str | None = None
    timestamp: LocalMoment = Field(
        default=None,
        description=(
            "When the messages were said; default: now. Its offset from UTC, as in "
            '`2026-03-02T08:00:00+09:00`, gives the day for "yesterday".'
        ),
    )
    expiration_date: ExpirationDate = None
    immutable: bool = False
    custom_instructions: InstructionText | None = None
    includes: InstructionText | None = None
    excludes: InstructionText | None = None
    agent_custom_instructions: InstructionText | None = Field(
        default=None, description="Of what the assistant says about itself."
    )
    custom_categories: NamedCategories | None = Field(
        default=None, description='Instead of the project\'s: `[{"name": "what it is for"}, …]`.'
    )

    @model_validator(mode="after")
    def require_ids(self) -> AddRequest:
        """Require at least one id, and no wildcard among the ids."""
        values = [value for value in self.ids().values() if value]
        if not values:
            raise ValueError("give at least one of user_id, agent_id, app_id, run_id")
        if any(len(value) > LONGEST_ID for value in values):
            raise ValueError(f"an id is longer than {LONGEST_ID} characters")
        if ANY in values:
            raise ValueError(ANY_IS_NO_ID)
        return self

    @model_validator(mode="after")
    def nothing_to_rehearse(self) -> AddRequest:
        """Refuse a dry run of an incognito add, because a dry run stores its messages."""
        if self.incognito and self.dry_run:
            raise ValueError("an incognito add stores nothing: there is no dry run of it")
        return self

    def ids(self) -> dict[str, str | None]:
        """The ids, at the top level or in the filters: the clients use both."""
        return {name: getattr(self, name) or _plain(self.filters, name) for name in ENTITY_IDS}

    def scope(self, project: Project) -> Scope:
        """The scope of these ids in the project."""
        return Scope(project.id, **self.ids())

    def options(self) -> AddOptions:
        """Options of the add, apart from messages and ids."""
        return AddOptions(
            infer=self.infer,
            metadata=self.metadata or {},
            immutable=self.immutable,
            expiration_date=self.expiration_date,
            procedural=self.memory_type is not None,
            mode=self.mode,
            graph=self.enable_graph,
            priority=self.priority,
            utc_offset=offset_of(self.timestamp),
            instructions=Instructions(
                self.custom_instructions,
                self.includes,
                self.excludes,
                self.agent_custom_instructions,
                self.custom_categories,
            ),
        )

    def turns(self) -> list[Message]:
        """The messages to store."""
        deduced = [text for text in self.deduced_memories or () if text.strip()]
        if deduced and not self.infer:
            return [Message(Role.USER, text) for text in deduced]
        return [message.turn() for message in self.messages]


def _plain(filters: dict[str, Any] | None, name: str) -> str | None:
    value = as_id((filters or {}).get(name))
    return value if isinstance(value, str) else None
