"""Requests as clients send them. The only place that knows JSON names; unknown keys are ignored.

Facts: the Mem0 Python, TypeScript and CLI clients.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from pipeline.domain import AddOptions, FailureCode, Instructions, Message, Role, Scope
from pipeline.filters import ENTITY_IDS, Filter, moment, parse, require_scope
from pipeline.ledger.projects import Project

MOST_MESSAGES = 500
LONGEST_ID = 512
LONGEST_WAIT_S = 60.0


def _id(value: object) -> object:
    """Ids may be numbers in JSON; blank ones are as good as none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and not value.strip():
        return None
    return value


EntityId = Annotated[Annotated[str, Field(max_length=LONGEST_ID)] | None, BeforeValidator(_id)]


class Request(BaseModel):
    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def storable(cls, value: Any) -> Any:
        """PostgreSQL's text holds no NUL and no half of a surrogate pair: say so, store nothing."""
        if fault := _unstorable(value):
            raise ValueError(f"the body holds {fault}; remove it")
        return value


def _unstorable(value: object) -> str | None:
    match value:
        case str():
            if "\x00" in value:
                return "a NUL character (\\u0000)"
            return None if value.isascii() or _is_unicode(value) else "text that is not Unicode"
        case dict():
            parts: Iterable[object] = (part for pair in value.items() for part in pair)
        case list():
            parts = value
        case _:
            return None
    return next((fault for part in parts if (fault := _unstorable(part))), None)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class MessageIn(BaseModel):
    """One turn. `content` is a string, or a list of `{"type": "text", "text": …}` parts."""

    role: str = "user"
    content: str
    name: str | None = None

    @field_validator("role")
    @classmethod
    def known_role(cls, value: str) -> str:
        role = {"agent": "assistant", "developer": "system"}.get(value, value)
        if role not in set(Role):
            raise ValueError(f"{value!r} is not a role; use user, assistant or system")
        return role

    @field_validator("content", mode="before")
    @classmethod
    def plain_text(cls, value: object) -> object:
        parts = [value] if isinstance(value, dict) else value
        if not isinstance(parts, list):
            return value
        texts = []
        for part in parts:
            if not isinstance(part, dict) or not isinstance(part.get("text"), str):
                kind = part.get("type") if isinstance(part, dict) else type(part).__name__
                raise ValueError(  # noqa: TRY004  pydantic reports ValueError as the caller's
                    f"only text can be remembered, not {kind}; leave that part out"
                )
            texts.append(part["text"])
        return "\n".join(texts)

    def turn(self) -> Message:
        return Message(Role(self.role), self.content, self.name)


def as_list(value: object) -> object:
    """A bare string is one user message, a bare object one message."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return [value] if isinstance(value, dict) else value


class AddRequest(Request):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "messages": [
                        {"role": "user", "content": "I'm Maya. I just moved from Bern to Porto."},
                        {"role": "assistant", "content": "Welcome to Porto, Maya!"},
                    ],
                    "user_id": "maya",
                    "metadata": {"channel": "web"},
                }
            ]
        }
    )

    messages: list[MessageIn] = Field(min_length=1, max_length=MOST_MESSAGES)
    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None
    filters: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    infer: bool = True
    async_mode: bool = True
    output_format: str | None = None
    timestamp: datetime | None = None
    expiration_date: date | None = None
    immutable: bool = False
    custom_instructions: str | None = None
    includes: str | None = None
    excludes: str | None = None

    @field_validator("messages", mode="before")
    @classmethod
    def as_list(cls, value: object) -> object:
        return as_list(value)

    @field_validator("timestamp", mode="before")
    @classmethod
    def time(cls, value: object) -> object:
        return value if value is None else moment("timestamp", value)

    @model_validator(mode="after")
    def somebody(self) -> AddRequest:
        given = [value for value in self.ids().values() if value]
        if not given:
            raise ValueError("give at least one of user_id, agent_id, app_id, run_id")
        if any(len(value) > LONGEST_ID for value in given):
            raise ValueError(f"an id is longer than {LONGEST_ID} characters")
        return self

    def ids(self) -> dict[str, str | None]:
        """Top level or inside filters: the clients' documents and their code disagree."""
        return {name: getattr(self, name) or _plain(self.filters, name) for name in ENTITY_IDS}

    def scope(self, project: Project) -> Scope:
        return Scope(project.id, **self.ids())

    def options(self) -> AddOptions:
        return AddOptions(
            infer=self.infer,
            metadata=self.metadata or {},
            immutable=self.immutable,
            expiration_date=self.expiration_date,
            instructions=Instructions(self.custom_instructions, self.includes, self.excludes),
        )

    def turns(self) -> list[Message]:
        return [m.turn() for m in self.messages]


class ReplayRequest(Request):
    """What to change before the event is tried again; nothing is a good answer. `stage` asks for
    the graph alone, of an event that SUCCEEDED with `graph_status` FAILED.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"custom_instructions": "Keep what Maya says of herself."}]}
    )

    messages: list[MessageIn] | None = Field(default=None, min_length=1, max_length=MOST_MESSAGES)
    custom_instructions: str | None = None
    includes: str | None = None
    excludes: str | None = None
    stage: Literal["relate"] | None = None

    @field_validator("messages", mode="before")
    @classmethod
    def as_list(cls, value: object) -> object:
        return as_list(value)

    @model_validator(mode="after")
    def whole_or_graph(self) -> ReplayRequest:
        if self.stage and (self.messages or self.instructions()):
            raise ValueError("the graph alone takes the facts as they are: send only the stage")
        return self

    def turns(self) -> list[Message]:
        return [m.turn() for m in self.messages or ()]

    def instructions(self) -> dict[str, str]:
        given = {
            "custom": self.custom_instructions,
            "includes": self.includes,
            "excludes": self.excludes,
        }
        return {name: value for name, value in given.items() if value is not None}


class UndoRequest(Request):
    """`force` leaves memories as they are that were changed since, and lists them."""

    force: bool = False


class ReplayManyRequest(Request):
    """Which FAILED events to try again: all that is given must hold. With `stage`, those that
    SUCCEEDED with `graph_status` FAILED, for their graph alone.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"code": "LLM_UNAVAILABLE"}]})

    code: FailureCode | None = None
    stage: Literal["relate"] | None = None
    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None
    start_date: str | None = None
    end_date: str | None = None

    @model_validator(mode="after")
    def something(self) -> ReplayManyRequest:
        if not any(getattr(self, name) for name in type(self).model_fields):
            names = ", ".join(type(self).model_fields)
            raise ValueError(f"give at least one of {names}")
        if self.stage and self.code:
            raise ValueError("an event whose graph failed has no code: leave out code or stage")
        return self


class ReadRequest(Request):
    """What list and search share: whose memories."""

    filters: dict[str, Any] | None = None
    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None
    show_expired: bool = False
    after_event: UUID | None = Field(
        default=None, description="Answer once this event of yours has ended, or `wait` is over."
    )
    wait: float = Field(default=0.0, ge=0, le=LONGEST_WAIT_S, description="Seconds.")

    def tree(self) -> Filter:
        """The filter with the top-level ids ANDed. Errors: InvalidInput."""
        given = {name: value for name in ENTITY_IDS if (value := getattr(self, name))}
        parts = [part for part in (self.filters, given) if part]
        return require_scope(parse({"AND": parts} if parts else {}))


class ListRequest(ReadRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"filters": {"user_id": "maya"}}]})

    page: int | None = None
    page_size: int | None = None


class SearchRequest(ReadRequest):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "Where does Maya live?", "filters": {"user_id": "maya"}, "top_k": 5}
            ]
        }
    )

    query: str = Field(min_length=1, max_length=8_000)
    top_k: int = Field(default=10, ge=1, le=1000)
    threshold: float = Field(default=0.1, ge=0, le=1)

    @field_validator("query")
    @classmethod
    def not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("say what to search for")
        return value.strip()


class UpdateRequest(Request):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Maya lives in Lisbon."}]})

    text: str | None = None
    metadata: dict[str, Any] | None = None
    timestamp: datetime | None = None
    expiration_date: date | None = None

    @model_validator(mode="before")
    @classmethod
    def older_name(cls, value: Any) -> Any:
        """Older clients send `message` or `data` for `text`."""
        if isinstance(value, dict) and "text" not in value:
            for name in ("message", "data", "memory"):
                if isinstance(value.get(name), str):
                    return {**value, "text": value[name]}
        return value

    @field_validator("text")
    @classmethod
    def not_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("a memory cannot be blank; delete it instead")
        return value

    @field_validator("timestamp", mode="before")
    @classmethod
    def time(cls, value: object) -> object:
        return value if value is None else moment("timestamp", value)

    def values(self) -> dict[str, Any]:
        """The columns to change. An explicit null clears expiration_date, absence keeps it."""
        values: dict[str, Any] = {}
        if self.text is not None:
            values["text"] = self.text.strip()
        if self.metadata is not None:
            values["metadata"] = self.metadata
        if self.timestamp is not None:
            values["valid_from"] = self.timestamp
        if "expiration_date" in self.model_fields_set:
            values["expiration_date"] = self.expiration_date
        return values


def _plain(filters: dict[str, Any] | None, name: str) -> str | None:
    value = _id((filters or {}).get(name))
    return value if isinstance(value, str) else None
