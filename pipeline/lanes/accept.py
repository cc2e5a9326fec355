"""Accept adds: one commit stores each as an event with its messages, at the end of its lane.

IDLE ──accept──► QUEUED      a lane that is not idle stays as it is
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy.exc import IntegrityError

from pipeline.domain.errors import Conflict
from pipeline.domain.events import AddOptions, StageName
from pipeline.domain.lanes import Hint
from pipeline.domain.messages import Message, Omission
from pipeline.domain.scope import Scope
from pipeline.lanes.batches import OPTIONS, omission_rows
from pipeline.lanes.idempotency import digest
from pipeline.lanes.sql import statement
from pipeline.ledger.failures import broken_constraint
from pipeline.ledger.store import WakingStore
from pipeline.text import terms as lexical

# Characters of a group whose terms are computed before its commit: 2 ms at most. The terms of the
# other texts follow in a second statement, so that a long text delays no other add.
TERMS_FIRST_CHARS = 2_000
# Refusals of the trigger on lanes, by the name of its constraint.
PRIVATE_RUNS = {
    "private_run_ended": (
        "This run was private and has ended: begin another run, or declare it again with "
        "PUT /v1/runs/{run_id}/."
    ),
    "private_run_incognito": "This run is incognito, so nothing about it can be stored.",
}


@dataclass(frozen=True, slots=True)
class Add:
    """One add of one scope.

    `said_at` None means now. `key`: the client's idempotency key; a second add with the same key is
    the same add. `traceparent`: the span of its request.
    """

    event_id: UUID
    scope: Scope
    messages: Sequence[Message]
    options: AddOptions
    tokens: int
    said_at: datetime | None = None
    key: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Result of an add: its event, and the hint to publish, if its lane needs one.

    `is_new` is False if its key was already used, for `event_id`; `same_body` is False if that add
    had another body; `project_exists` is False if the project is deleted, `project_ends` True if
    its deletion has begun. In all these cases nothing was added.
    `has_terms` is False if its messages have no terms yet: see `Adds.add_terms`.
    """

    event_id: UUID
    hint: Hint | None = None
    is_new: bool = True
    same_body: bool = True
    project_exists: bool = True
    has_terms: bool = True
    project_ends: bool = False


class Adds(WakingStore):
    """Store of adds."""

    async def accept(self, adds: Sequence[Add]) -> list[Accepted]:
        """Store the adds durably in one commit, each at the end of its scope's lane.

        A lane that is not idle needs no hint: its worker continues with the queue, unless the
        lane had only events of low priority and gets one of normal priority. Errors: Conflict
        for an add to a private run that has ended; IntegrityError if it is one of several.
        """
        first = _with_terms(adds)
        placed = [
            (place, ordinal, message)
            for place, add in enumerate(adds, start=1)
            for ordinal, message in enumerate(add.messages)
        ]
        values = {
            "event_ids": [add.event_id for add in adds],
            "lane_ids": [add.scope.lane_id for add in adds],
            "project_ids": [add.scope.project_id for add in adds],
            "user_ids": [add.scope.user_id for add in adds],
            "agent_ids": [add.scope.agent_id for add in adds],
            "app_ids": [add.scope.app_id for add in adds],
            "run_ids": [add.scope.run_id for add in adds],
            "options": [OPTIONS.dump_json(add.options).decode() for add in adds],
            "tokens": [add.tokens for add in adds],
            "said_at": [add.said_at for add in adds],
            "keys": [add.key for add in adds],
            "digests": [_digest(add) for add in adds],
            "traceparents": [add.traceparent for add in adds],
            "message_of": [place for place, _, _ in placed],
            "ordinals": [ordinal for _, ordinal, _ in placed],
            "roles": [message.role.value for _, _, message in placed],
            "names": [message.name for _, _, message in placed],
            "contents": [message.content for _, _, message in placed],
            "omitted": [_as_json(message.omitted) for _, _, message in placed],
            # One string each: the arrays in an array must have the same length.
            "terms": [
                " ".join(lexical.terms(message.content)) if place in first else None
                for place, _, message in placed
            ],
            "grace": self._grace,
        }
        try:
            rows = await self._direct.rows(statement("accept"), values)
        except IntegrityError as error:
            # Of several adds, the caller finds the refused one: it writes each alone.
            if len(adds) == 1 and (reason := _refusal(error)) is not None:
                raise Conflict(reason) from error
            raise
        by_place = {row.place: row for row in rows}
        return [
            _accepted(add, by_place.get(place), has_terms=place in first)
            for place, add in enumerate(adds, start=1)
        ]

    async def add_terms(self, adds: Sequence[Add]) -> None:
        """Store the terms of accepted adds that have none. Searches by words find them from then.

        Each row is written once, by this or by the sweeper: see pipeline/search/words/term_rebuild.
        """
        placed = [
            (add.event_id, ordinal, message.content)
            for add in adds
            for ordinal, message in enumerate(add.messages)
        ]
        texts = await lexical.cut([content for _, _, content in placed])
        values = {
            "event_ids": [event_id for event_id, _, _ in placed],
            "ordinals": [ordinal for _, ordinal, _ in placed],
            "terms": [" ".join(terms) for terms in texts],
        }
        await self._direct.rows(statement("cut_messages"), values)

    async def locked(self, lane_ids: Collection[UUID]) -> set[UUID]:
        """Return the given lanes that another transaction has locked at the moment."""
        rows = await self._direct.rows(statement("locked_lanes"), {"lane_ids": list(lane_ids)})
        return {row.id for row in rows}


def _refusal(error: IntegrityError) -> str | None:
    """The reason why a private run refuses an add; None for any other error."""
    return PRIVATE_RUNS.get(broken_constraint(error) or "")


def _with_terms(adds: Sequence[Add]) -> set[int]:
    """Places of the first adds whose texts have TERMS_FIRST_CHARS together."""
    first, characters = set[int](), 0
    for place, add in enumerate(adds, start=1):
        characters += sum(len(message.content) for message in add.messages)
        if characters > TERMS_FIRST_CHARS:
            break
        first.add(place)
    return first


def _accepted(add: Add, row: Any | None, *, has_terms: bool) -> Accepted:
    """The result of an add. No row: the ledger does not have the project."""
    if row is None:
        return Accepted(add.event_id, is_new=False, project_exists=False)
    hint = Hint(add.scope.lane_id, row.fence, StageName.EXTRACT, low=row.low) if row.woken else None
    return Accepted(
        row.event_id,
        hint,
        is_new=row.fresh,
        same_body=row.same,
        has_terms=has_terms or not row.fresh,
        project_ends=row.deleting,
    )


def _as_json(omitted: Sequence[Omission]) -> str | None:
    return orjson.dumps(omission_rows(omitted)).decode() if omitted else None


def _digest(add: Add) -> bytes | None:
    """Digest of the content of an add with an idempotency key; None without a key."""
    if add.key is None:
        return None
    return digest(add.scope, add.messages, add.options, said_at=add.said_at)
