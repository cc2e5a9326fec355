"""What to change when an event is tried again, and how to take one back."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from api.schemas.adds import MOST_MESSAGES
from api.schemas.body import EntityId, OwnRequest
from api.schemas.limits import DateText, InstructionText
from api.schemas.messages import MessageIn, as_list
from pipeline.domain.events import FailureCode
from pipeline.domain.messages import Message


class ReplayRequest(OwnRequest):
    """What to change before the event is tried again; nothing is a good answer. `stage` asks for
    the graph alone, of an event that SUCCEEDED with `graph_status` FAILED.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"custom_instructions": "Keep what Maya says of herself."}]}
    )

    messages: list[MessageIn] | None = Field(default=None, min_length=1, max_length=MOST_MESSAGES)
    custom_instructions: InstructionText | None = None
    includes: InstructionText | None = None
    excludes: InstructionText | None = None
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


class UndoRequest(OwnRequest):
    """`force` leaves memories as they are that were changed since, and lists them."""

    force: bool = False


class ReplayManyRequest(OwnRequest):
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
    start_date: DateText | None = None
    end_date: DateText | None = None

    @model_validator(mode="after")
    def something(self) -> ReplayManyRequest:
        if not any(getattr(self, name) for name in type(self).model_fields):
            names = ", ".join(type(self).model_fields)
            raise ValueError(f"give at least one of {names}")
        if self.stage and self.code:
            raise ValueError("an event whose graph failed has no code: leave out code or stage")
        return self
