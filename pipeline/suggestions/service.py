"""Decisions on suggestions: accept, reject or dismiss, one by one or many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import structlog

from pipeline.domain.errors import Conflict, InvalidInput
from pipeline.domain.suggestions import SuggestionKind, SuggestionState
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import NO_VECTOR
from pipeline.memories.service import project
from pipeline.ports import Embedder
from pipeline.suggestions.decisions import Acceptance, AcceptedSuggestion, Decisions
from pipeline.suggestions.store import DELETED, StoredSuggestion, Suggestions
from pipeline.vector_index.index import VectorIndex

log = structlog.get_logger()

# Maximum number of suggestions decided in one call.
MOST_DECIDED = 100
NO_TEXT = "A DELETE has no text: send none."


class Action(StrEnum):
    """A decision on a suggestion."""

    ACCEPT = "accept"
    REJECT = "reject"
    DISMISS = "dismiss"


DECLINED = {Action.REJECT: SuggestionState.REJECTED, Action.DISMISS: SuggestionState.DISMISSED}


class SuggestionStores(Protocol):
    """The part of the ledger that reads and decides suggestions."""

    suggestions: Suggestions
    decisions: Decisions


@dataclass(frozen=True, slots=True)
class Decided:
    """Result of one of several decisions. `error`: the reason why it was not taken."""

    suggestion_id: UUID
    event_id: UUID | None = None
    error: str | None = None


async def decide(
    project_id: ProjectId,
    suggestion_id: UUID,
    action: Action,
    *,
    text: str | None = None,
    by: UUID,
    ledger: SuggestionStores,
    embedder: Embedder,
    index: VectorIndex,
) -> UUID | None:
    """Decide on one suggestion. `text`: stored by an acceptance in place of the proposed text.

    Returns the event of an acceptance. Errors: as `Decisions`; InvalidInput for a text that the
    suggestion has no use for; ModelUnavailable if the text cannot be embedded.
    """
    if action is not Action.ACCEPT:
        await ledger.decisions.decline(project_id, suggestion_id, DECLINED[action], by=by)
        return None
    suggestion = await ledger.suggestions.get(project_id, suggestion_id)
    stored = stored_text(suggestion, text)
    vectors = await embedder.embed([stored]) if stored is not None else [None]
    edited = stored != suggestion.proposed_text
    acceptance = Acceptance(suggestion_id, stored, vectors[0], embedder.name, by, edited)
    accepted = await ledger.decisions.accept(project_id, acceptance)
    log.info("suggestion_accepted", event_id=str(accepted.event_id), kind=suggestion.kind)
    await project(accepted.memory_ids, index, event_id=accepted.event_id)
    return accepted.event_id


async def rehearse(
    project_id: ProjectId,
    suggestion_id: UUID,
    *,
    text: str | None,
    by: UUID,
    ledger: SuggestionStores,
    embedder: Embedder,
) -> AcceptedSuggestion:
    """Compute what an acceptance would change, and change nothing. Errors: as `decide`."""
    suggestion = await ledger.suggestions.get(project_id, suggestion_id)
    stored = stored_text(suggestion, text)
    acceptance = Acceptance(suggestion_id, stored, NO_VECTOR, embedder.name, by)
    return await ledger.decisions.accept(project_id, acceptance, dry_run=True)


def stored_text(suggestion: StoredSuggestion, text: str | None) -> str | None:
    """The text that an acceptance stores: the given or the proposed one; None for a DELETE.

    Errors: Conflict if its memories or messages are deleted; InvalidInput for a text without use,
    or if there is none.
    """
    if suggestion.deleted:
        raise Conflict(f"{DELETED} Nothing was written.")
    if suggestion.kind is SuggestionKind.DELETE and text is not None:
        raise InvalidInput(NO_TEXT)
    stored = text if text is not None else suggestion.proposed_text
    if suggestion.kind is not SuggestionKind.DELETE and stored is None:
        raise InvalidInput("This suggestion has no text of its own: send one.")
    return stored


async def decide_many(
    project_id: ProjectId,
    action: Action,
    *,
    ids: Sequence[UUID] = (),
    kind: SuggestionKind | None = None,
    by: UUID,
    ledger: SuggestionStores,
    embedder: Embedder,
    index: VectorIndex,
) -> list[Decided]:
    """Decide on the given suggestions, or on the oldest open ones of a kind, one by one.

    At most MOST_DECIDED. One that cannot be decided does not stop the others.
    Errors: NotFound if an id is unknown; then none is decided.
    """
    for suggestion_id in ids:
        await ledger.suggestions.get(project_id, suggestion_id)
    if kind is not None:
        ids = await ledger.suggestions.open_ids(project_id, kind, limit=MOST_DECIDED)
    results = []
    for suggestion_id in ids:
        try:
            event_id = await decide(
                project_id,
                suggestion_id,
                action,
                by=by,
                ledger=ledger,
                embedder=embedder,
                index=index,
            )
        except (Conflict, InvalidInput) as error:
            results.append(Decided(suggestion_id, error=str(error)))
        else:
            results.append(Decided(suggestion_id, event_id))
    return results
