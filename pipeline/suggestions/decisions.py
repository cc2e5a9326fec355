"""Decisions of people on suggestions: one transaction each.

    OPEN ──accept──► ACCEPTED   an event with a receipt, which can be undone
    OPEN ──reject──► REJECTED   OPEN ──dismiss──► DISMISSED
    OPEN ──accept──► INVALID    a memory that it names has changed since: nothing is written

Lock order: the lane, the memories, the suggestion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, and_, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.consolidation.decided import DecidedChange
from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.events import EventType
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.suggestions import SuggestionKind, SuggestionState, accepted_changes
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector
from pipeline.ledger.fetching import known_row
from pipeline.ledger.locks import lock_lane_of, locked
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import receipts, suggestions
from pipeline.memories.decided import DecidedEvent, write_decided
from pipeline.memories.editing import lock_active
from pipeline.suggestions.store import DELETED, NO_SUCH_SUGGESTION

SOURCE = "suggestion"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """An acceptance: the text to store, None for a DELETE, with its vector and embedder.

    `by`: id of the API key. `edited`: a person wrote the text.
    """

    suggestion_id: UUID
    text: str | None
    vector: Vector | None
    embedder: str
    by: UUID
    edited: bool = False


@dataclass(frozen=True, slots=True)
class AcceptedSuggestion:
    """The event of an acceptance with its note, and the changes that it made."""

    event_id: UUID
    note: str
    changes: Sequence[DecidedChange]

    @property
    def memory_ids(self) -> list[UUID]:
        """The memories that it changed."""
        return [c.before.id for c in self.changes if c.outcome is not Outcome.NOOP]


class Decisions(LedgerStore):
    """Store that writes decisions on suggestions."""

    async def decline(
        self, project_id: ProjectId, suggestion_id: UUID, state: SuggestionState, *, by: UUID
    ) -> None:
        """Reject or dismiss an open suggestion; a repeated call changes nothing.

        Errors: NotFound; Conflict if it was decided otherwise.
        """
        this = and_(suggestions.c.project_id == project_id, suggestions.c.id == suggestion_id)
        decided = (
            update(suggestions)
            .where(this, suggestions.c.state.in_(("OPEN", "INVALID")))
            .values(state=state, decided_at=func.now(), decided_by=str(by))
        )
        async with self._engine.begin() as connection:
            if (await connection.execute(decided)).rowcount:
                return
            current = await connection.scalar(select(suggestions.c.state).where(this))
        if current is None:
            raise NotFound(NO_SUCH_SUGGESTION)
        if current != state:
            raise Conflict(f"This suggestion is {current} already.")

    async def accept(
        self, project_id: ProjectId, acceptance: Acceptance, *, dry_run: bool = False
    ) -> AcceptedSuggestion:
        """Apply an open suggestion as an event of its lane, in one transaction, which a dry run
        rolls back.

        Errors: NotFound; Conflict if it is not open, if one of its memories has changed since (the
        suggestion is INVALID from then on), if what it states is deleted, or if another memory has
        the text.
        """
        suggestion_id = acceptance.suggestion_id
        this = and_(suggestions.c.project_id == project_id, suggestions.c.id == suggestion_id)
        async with self._engine.connect() as connection:
            row = await lock_lane_of(connection, suggestions, this, missing=NO_SUCH_SUGGESTION)
            versions = {UUID(t["memory_id"]): t["version"] for t in row.targets}
            added = await _added(connection, row)
            current = await lock_active(connection, project_id, [*versions, *added])
            row = await _suggestion_locked(connection, row.id)
            changed = [
                memory_id
                for memory_id, version in versions.items()
                if memory_id not in current or current[memory_id].version != version
            ]
            accepted = None
            if changed:
                invalid = update(suggestions).where(suggestions.c.id == row.id)
                await connection.execute(invalid.values(state=SuggestionState.INVALID))
            elif row.outdated:
                # Since the request has read it, a person has deleted what it would store again.
                raise Conflict(f"{DELETED} Nothing was written.")
            else:
                targets = _targets(row, versions, added, current)
                accepted = await _apply(connection, project_id, row, targets, acceptance)
            await (connection.rollback() if dry_run else connection.commit())
        if accepted is not None:
            return accepted
        names = ", ".join(map(str, changed))
        raise Conflict(f"Changed since this was suggested: memory {names}. Nothing was written.")


async def _suggestion_locked(connection: AsyncConnection, suggestion_id: UUID) -> Row[Any]:
    """Lock a suggestion, which must be open. Errors: Conflict; NotFound if it was erased."""
    query = locked(suggestions, suggestions.c.id == suggestion_id, *suggestions.c)
    row = await known_row(connection, query, missing=NO_SUCH_SUGGESTION)
    if row.state != SuggestionState.OPEN:
        by = f", by event {row.decision_event_id}" if row.decision_event_id else ""
        raise Conflict(f"This suggestion is {row.state} already{by}.")
    return row


async def _added(connection: AsyncConnection, row: Row[Any]) -> list[UUID]:
    """Ids of the memories that an add stored in place of the UPDATE that it withheld."""
    if row.kind != SuggestionKind.UPDATE or row.event_id is None:
        return []
    lines = select(receipts.c.memory_id).where(
        receipts.c.event_id == row.event_id,
        receipts.c.suggestion_id == row.id,
        receipts.c.outcome == Outcome.ADD,
        receipts.c.memory_id.is_not(None),
    )
    return list((await connection.scalars(lines)).all())


def _targets(
    row: Row[Any],
    targets: Sequence[UUID] | dict[UUID, int],
    added: Sequence[UUID],
    current: dict[UUID, Memory],
) -> list[Memory]:
    """The memories to change. An added memory that has another text by now stays as it is."""
    replaced = [
        current[memory_id]
        for memory_id in added
        if memory_id in current and current[memory_id].text == row.fact_text
    ]
    return [*(current[memory_id] for memory_id in targets), *replaced]


async def _apply(
    connection: AsyncConnection,
    project_id: ProjectId,
    row: Row[Any],
    targets: Sequence[Memory],
    acceptance: Acceptance,
) -> AcceptedSuggestion:
    """Write the changes, the event and the decision."""
    event_id = uuid4()
    reason = f"Accepted suggestion: {row.reason}"
    changes = accepted_changes(SuggestionKind(row.kind), targets, acceptance.text, reason)
    event = DecidedEvent(
        event_id,
        EventType.SUGGESTION,
        {"source": SOURCE, "suggestion_id": str(row.id), "kind": row.kind},
        f"A person accepted the suggestion {row.id}.",
        row.id,
        edited=acceptance.edited,
    )
    await write_decided(
        connection,
        project_id,
        row.lane_id,
        event,
        changes,
        vector=acceptance.vector,
        embedder=acceptance.embedder,
    )
    await connection.execute(
        update(suggestions)
        .where(suggestions.c.id == row.id)
        .values(
            state=SuggestionState.ACCEPTED,
            decided_at=func.now(),
            decided_by=str(acceptance.by),
            decision_event_id=event_id,
        )
    )
    return AcceptedSuggestion(event_id, event.note, changes)
