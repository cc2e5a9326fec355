"""Responses about suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from typing_extensions import TypedDict

from api.events.responses import ReceiptLineJson, receipt_line
from api.http.shared_responses import Id, json_of
from pipeline.domain.suggestions import SuggestionKind, SuggestionState, shown_changes
from pipeline.events.event_view import ReceiptLine
from pipeline.suggestions.decisions import AcceptedSuggestion
from pipeline.suggestions.service import Decided
from pipeline.suggestions.store import StoredSuggestion, Target

# Maximum number of characters of a quoted message.
LONGEST_QUOTE = 2_000


class TargetJson(TypedDict):
    """A memory that a suggestion would change, in the version that it is about."""

    memory_id: Id
    version: int


class SuggestedChangeJson(TypedDict):
    """One memory before and after the change. `lost`: names, numbers and dates that get lost."""

    memory_id: Id
    before: str | None
    after: str | None
    merged_into: Id | None
    lost: list[str]


class SourceJson(TypedDict):
    """The message that a memory was extracted from; without a quote, a person wrote the memory."""

    memory_id: Id
    said_at: datetime | None
    speaker: str | None
    quote: str | None


class SuggestionJson(TypedDict):
    """A change that waits for a person's decision: diff, sources, and what it loses."""

    id: Id
    kind: SuggestionKind
    state: SuggestionState
    origin: str
    event_id: Id | None
    fact: str | None
    targets: list[TargetJson]
    changes: list[SuggestedChangeJson]
    sources: list[SourceJson]
    proposed_text: str | None
    reason: str
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    decision_event_id: Id | None


class WouldAcceptJson(TypedDict):
    """The receipt that an acceptance would get."""

    dry_run: bool
    note: str
    results: list[ReceiptLineJson]


class DecisionJson(TypedDict):
    """The result of one decision. `error`: the reason why it was not taken."""

    id: Id
    event_id: Id | None
    error: str | None


class DecidedJson(TypedDict):
    """The results of many decisions."""

    decided: int
    results: list[DecisionJson]


def suggestion(row: StoredSuggestion) -> SuggestionJson:
    """A change that waits for a person's decision: diff, sources, and what it loses."""
    texts = [(target.memory_id, target.text) for target in row.targets]
    return json_of(
        SuggestionJson,
        row,
        fact=row.fact_text,
        targets=[json_of(TargetJson, target) for target in row.targets],
        changes=[
            json_of(SuggestedChangeJson, change, lost=list(change.lost))
            for change in shown_changes(row.kind, texts, row.proposed_text)
        ],
        sources=[source(target) for target in row.targets],
    )


def source(row: Target) -> SourceJson:
    """The message that a memory was extracted from; without a quote, a person wrote the memory."""
    return json_of(SourceJson, row, quote=row.quote[:LONGEST_QUOTE] if row.quote else None)


def would_accept(suggestion_id: UUID, planned: AcceptedSuggestion) -> WouldAcceptJson:
    """The receipt that an acceptance would get."""
    lines = [
        ReceiptLine(
            c.outcome, c.before.id, c.text, c.before.text, c.reason, 0, suggestion_id=suggestion_id
        )
        for c in planned.changes
    ]
    return {
        "dry_run": True,
        "note": planned.note,
        "results": [receipt_line(line) for line in lines],
    }


def decided(rows: Sequence[Decided]) -> DecidedJson:
    """The results of many decisions."""
    return {
        "decided": sum(row.error is None for row in rows),
        "results": [json_of(DecisionJson, row, id=row.suggestion_id) for row in rows],
    }
