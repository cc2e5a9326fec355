"""Bodies of lists, and what they share with searches: filters, dates and pages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import Field, model_validator

from api.http.body import EntityId, Request, examples
from api.http.limits import DateText, Fields
from api.versions.snapshots import SnapshotOptions
from pipeline.domain.filters import ENTITY_IDS, Filter, parse, period, require_scope
from pipeline.domain.limits import Metadata

LONGEST_WAIT_S = 60.0


class ReadRequest(Request, SnapshotOptions):
    """Filters of lists and searches. A null means the default."""

    filters: dict[str, Any] | None = None
    user_id: EntityId = None
    agent_id: EntityId = None
    app_id: EntityId = None
    run_id: EntityId = None
    categories: Any = None
    metadata: Metadata | None = None
    keywords: Any = None
    start_date: DateText | None = None
    end_date: DateText | None = Field(default=None, description="A bare date includes its day.")
    show_expired: bool = False
    show_superseded: bool = Field(
        default=False,
        description=(
            "Also memories that a newer statement of the same attribute supersedes (mode append)."
        ),
    )
    after_event: UUID | None = Field(
        default=None, description="Answer once this event of yours has ended, or `wait` is over."
    )
    wait: float = Field(default=0.0, ge=0, le=LONGEST_WAIT_S, description="Seconds.")

    @model_validator(mode="before")
    @classmethod
    def without_nulls(cls, value: Any) -> Any:
        """Use the default of each field that is null."""
        if not isinstance(value, dict):
            return value
        return {name: given for name, given in value.items() if given is not None}

    def tree(self, user: str | None = None) -> Filter:
        """All filters, joined with AND, and with `user`, the user of a token.

        Errors: InvalidInput; also if they name no id.
        """
        condition = self.condition()
        if user is not None:
            own = {"user_id": {"eq": user}}
            condition = {"AND": [own, condition]} if condition else own
        return require_scope(parse(condition))

    def condition(self) -> dict[str, Any]:
        """The filters, and the conditions beside them, as one filter."""
        beside = {name: value for name in ENTITY_IDS if (value := getattr(self, name))}
        for name in ("categories", "metadata", "keywords"):
            if value := getattr(self, name):
                beside[name] = value
        if between := period(self.start_date, self.end_date):
            beside["created_at"] = between
        parts = [part for part in (self.filters, beside) if part]
        return parts[0] if len(parts) == 1 else {"AND": parts} if parts else {}


class ListRequest(ReadRequest):
    """A list of memories."""

    model_config = examples({"filters": {"user_id": "maya"}})

    page: int | None = None
    page_size: int | None = None
    fields: Fields | None = Field(
        default=None, description="Keys of a memory to answer with; `metadata.x` is one key of it."
    )
