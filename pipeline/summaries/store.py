"""Store of summaries: due ones, their messages, and the versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, func, select

from pipeline.domain.events import EventType, Instructions, Status
from pipeline.domain.local_times import at_offset
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.domain.modes import Mode, budgets_of
from pipeline.domain.scope import Scope
from pipeline.domain.summaries import SummaryState, SummaryTask, SummaryUpdate, SummaryVersion
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Usage
from pipeline.ledger.fetching import execute, fetch, fetch_value
from pipeline.ledger.filter_conditions import of_event
from pipeline.ledger.row_values import columns_of, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import events, lanes, messages, summaries, summary_states
from pipeline.summaries.sql import statement
from pipeline.text.tokens import tokens

# Limits of one version: messages, and their estimated tokens. A message is cut to LONGEST_CHARS.
MOST_MESSAGES, MOST_TOKENS, LONGEST_CHARS = 500, 6_000, 4_000
# Versions of a scope's summary that are kept.
KEPT_VERSIONS = 1_000
SPEAKERS = (Role.USER.value, Role.ASSISTANT.value)
SUMMARIZED = (Mode.CONSOLIDATE.value, Mode.APPEND.value)


@dataclass(frozen=True, slots=True)
class DueSummary:
    """A scope whose next version is due."""

    lane_id: UUID
    project_id: ProjectId


class Summaries(LedgerStore):
    """Store of summaries."""

    async def claim_due(self, *, limit: int, lease_s: float) -> list[DueSummary]:
        """Take the scopes whose next version is due; they are due again after `lease_s`."""
        values = {"limit": limit, "lease": timedelta(seconds=lease_s)}
        rows = await fetch(self._single, statement("claim_due"), values)
        return [DueSummary(row.lane_id, ProjectId(row.project_id)) for row in rows]

    async def claim(self, lane_id: UUID, *, lease_s: float) -> bool:
        """Claim a due summary for `lease_s`. False if another worker makes it, or it is not due."""
        values = {"lane_id": lane_id, "lease": timedelta(seconds=lease_s)}
        return await fetch_value(self._single, statement("claim"), values) is not None

    async def task(self, lane_id: UUID) -> SummaryTask | None:
        """The due summary of a scope with its messages; None if it is not due any more.

        The first version has the newest messages, as many as one call takes; a later one has the
        oldest after the version before it.
        """
        async with self._single.connect() as connection:
            query, values = statement("read_due"), {"lane_id": lane_id}
            state = (await connection.execute(query, values)).one_or_none()
            if state is None:
                return None
            first = state.previous is None
            rows = (await connection.execute(_messages(lane_id, state, first=first))).all()
        taken = _fitting(rows)
        if first:
            taken.reverse()
        more = len(taken) < len(rows) or len(rows) == MOST_MESSAGES
        until = state.settled_seq if first or not more else taken[-1].seq
        return value_of(
            SummaryTask,
            state,
            lane_id=lane_id,
            project_id=ProjectId(state.project_id),
            mode=Mode(state.mode or Mode.CONSOLIDATE),
            budgets=budgets_of(state.budget),
            until_seq=until,
            more=more and not first,
            request=SummaryUpdate(
                state.previous,
                [_message(position, row) for position, row in enumerate(taken)],
                Instructions(
                    state.custom_instructions,
                    state.includes,
                    state.excludes,
                    state.agent_custom_instructions,
                ),
            ),
        )

    async def save(self, task: SummaryTask, text: str, usage: Usage) -> bool:
        """Store the next version.

        False if another one is the newest by now, or if the scope was erased.
        """
        sourced = task.request.messages
        values = {
            **columns_of(task, "lane_id", "version", "epoch", "after_seq", "until_seq", "more"),
            "text": text,
            "messages": len(sourced),
            "tokens": sum(tokens(message.message.content) for message in sourced),
            "model": usage.model,
            "prompt": usage.prompt,
            "kept": KEPT_VERSIONS,
        }
        return await fetch_value(self._single, statement("save"), values) is not None

    async def postpone(
        self, task: SummaryTask, reason: str | None = None, *, delay_s: float | None = None
    ) -> None:
        """Keep the previous version, and try again after `delay_s` seconds.

        Without a reason and a delay: there is no message to summarize.
        """
        delay = None if delay_s is None else timedelta(seconds=delay_s)
        values = columns_of(task, "lane_id", "version", "epoch")
        await execute(
            self._single, statement("postpone"), values | {"reason": reason, "delay": delay}
        )

    async def page(
        self, scope: Scope, *, limit: int, offset: int
    ) -> tuple[list[SummaryVersion], int, SummaryState]:
        """A page of a scope's versions, newest first, their number, and the state of the next."""
        fits = and_(
            summaries.c.lane_id == scope.lane_id, lanes.c.forgotten_seq == summaries.c.after_seq
        )
        of_scope = summaries.join(lanes, lanes.c.id == summaries.c.lane_id)
        newest = func.max(summaries.c.version).over()
        query = (
            select(summaries, (summaries.c.version == newest).label("current"))
            .select_from(of_scope)
            .where(fits)
            .order_by(summaries.c.version.desc())
            .limit(limit)
            .offset(offset)
        )
        count = select(func.count()).select_from(of_scope).where(fits)
        state = select(summary_states).where(summary_states.c.lane_id == scope.lane_id)
        async with self._single.connect() as connection:
            rows = (await connection.execute(query)).all()
            number = await connection.scalar(count) or 0
            row = (await connection.execute(state)).one_or_none()
        left = value_of(SummaryState, row) if row else None
        return [value_of(SummaryVersion, row) for row in rows], number, left or SummaryState()


def _messages(lane_id: UUID, state: Row[Any], *, first: bool) -> Any:
    """Select the settled messages after the version before: the newest ones for a first version."""
    summarized = and_(
        events.c.event_type == EventType.ADD.value,
        events.c.status == Status.SUCCEEDED.value,
        events.c.mode.in_(SUMMARIZED),
        events.c.undone_at.is_(None),
        events.c.options["procedural"].astext.is_distinct_from("true"),
    )
    order = (messages.c.seq, messages.c.ordinal)
    return (
        select(
            messages.c.seq,
            messages.c.role,
            messages.c.name,
            func.left(messages.c.content, LONGEST_CHARS).label("content"),
            messages.c.said_at,
            events.c.options["utc_offset"].label("utc_offset"),
        )
        .join(events, of_event())
        .where(
            messages.c.lane_id == lane_id,
            messages.c.seq > (state.after_seq if first else state.previous_seq),
            messages.c.seq <= state.settled_seq,
            messages.c.role.in_(SPEAKERS),
            summarized,
        )
        .order_by(*(column.desc() if first else column for column in order))
        .limit(MOST_MESSAGES)
    )


def _fitting(rows: Sequence[Row[Any]]) -> list[Row[Any]]:
    """The messages of the first events that fit into one call; at least those of one event."""
    fitting: list[Row[Any]] = []
    size = 0
    for _, group in groupby(rows, key=lambda row: row.seq):
        own = list(group)
        size += sum(tokens(row.content) for row in own)
        if fitting and size > MOST_TOKENS:
            break
        fitting += own
    return fitting


def _message(position: int, row: Row[Any]) -> SourcedMessage:
    message = Message(Role(row.role), row.content, row.name)
    return SourcedMessage(Source(0, position), message, at_offset(row.said_at, row.utc_offset))
