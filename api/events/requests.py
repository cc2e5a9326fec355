"""Requests to replay or undo events."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from api.adds.messages import Messages
from api.http.body import EntityId, OwnRequest, examples
from api.http.limits import DateText, InstructionText
from pipeline.domain.events import FailureCode
from pipeline.domain.graph.values import GraphStatus
from pipeline.domain.messages import Message

# Event types that clients may ask for, but that the ledger does not record.
UNRECORDED = ("UPDATE", "DELETE", "SEARCH", "GET", "GET_ALL")


class ReplayRequest(OwnRequest):
    """Changes for the retry of an event; all are optional. `stage` repeats only the graph stage of
    an event that SUCCEEDED with `graph_status` FAILED or PARTIAL.
    """

    model_config = examples({"custom_instructions": "Keep facts about Maya."})

    messages: Messages | None = None
    custom_instructions: InstructionText | None = None
    includes: InstructionText | None = None
    excludes: InstructionText | None = None
    stage: Literal["relate"] | None = None
    dry_run: bool = Field(
        default=False, description="Answer a new event, which computes the receipt of the replay."
    )

    @model_validator(mode="after")
    def whole_or_graph(self) -> ReplayRequest:
        """Refuse edits if only the graph stage is repeated."""
        if self.stage and (self.messages or self.instructions() or self.dry_run):
            raise ValueError("the graph alone takes the facts as they are: send only the stage")
        return self

    def turns(self) -> list[Message]:
        """The messages that replace those of the event; if empty, they stay."""
        return [m.turn() for m in self.messages or ()]

    def instructions(self) -> dict[str, str]:
        """The instructions that replace the event's."""
        given = {
            "custom": self.custom_instructions,
            "includes": self.includes,
            "excludes": self.excludes,
        }
        return {name: value for name, value in given.items() if value is not None}


class UndoRequest(OwnRequest):
    """Options of an undo. `force` skips memories that were changed since then, and lists them.
    `dry_run` answers what an undo would do, and does nothing.
    """

    force: bool = False
    dry_run: bool = False


class ReplayManyRequest(OwnRequest):
    """FAILED events to retry; they must match all given conditions. With `stage`, events that
    SUCCEEDED with this `graph_status` (default FAILED), for the graph stage only.
    """

    model_config = examples({"code": "LLM_UNAVAILABLE"})

    code: FailureCode | None = None
    stage: Literal["relate"] | None = None
    graph_status: Literal[GraphStatus.FAILED, GraphStatus.PARTIAL] | None = None
    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None
    start_date: DateText | None = None
    end_date: DateText | None = None

    @model_validator(mode="after")
    def something(self) -> ReplayManyRequest:
        """Require at least one field."""
        if not any(getattr(self, name) for name in type(self).model_fields):
            names = ", ".join(type(self).model_fields)
            raise ValueError(f"give at least one of {names}")
        if self.stage and self.code:
            raise ValueError("an event whose graph failed has no code: leave out code or stage")
        if self.graph_status and not self.stage:
            raise ValueError('a graph_status selects graphs: add "stage": "relate"')
        return self
