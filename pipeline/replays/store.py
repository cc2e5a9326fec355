"""Shadows: a scope's whole log, worked again apart from the scope, and looked at before it counts.

A shadow is a project nobody holds a key of, so every promise that keeps tenants apart keeps it
apart: no list, search, graph or figure of the scope's own project can reach it. In it there is one
lane, a copy of the scope's log, and ordinary workers work it off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.events import FINAL, StageName, Status
from pipeline.domain.lanes import Wake
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.locks import lock_lanes
from pipeline.ledger.tables import (
    entities,
    event_costs,
    events,
    failed_runs,
    lanes,
    memories,
    memory_history,
    messages,
    projects,
    receipts,
    relations,
    shadows,
    stage_runs,
)
from pipeline.replays.sql import statement

NO_SUCH_REPLAY = "Replay not found or you don't have permission to access it."


@dataclass(frozen=True, slots=True)
class Wish:
    """What a replay asks for in place of what is configured.

    `recorded`: no model is asked; each batch is worked with the answers it had.
    """

    custom_instructions: str | None = None
    llm_model: str | None = None
    embedder_model: str | None = None
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Shadow:
    """`scope` is the one that is replayed, `behind` how many of its events came since the copy."""

    id: UUID
    scope: Scope
    wish: Wish
    created_at: datetime
    switched_at: datetime | None
    behind: int
    counts: Mapping[Status, int]
    failures: Mapping[str, int]

    @property
    def apart(self) -> Scope:
        """The same ids in the shadow's own project."""
        ids = self.scope
        return Scope(ProjectId(self.id), ids.user_id, ids.agent_id, ids.app_id, ids.run_id)

    @property
    def done(self) -> bool:
        """All that was copied has ended."""
        return all(status in FINAL for status, count in self.counts.items() if count)


@dataclass(frozen=True, slots=True)
class ReplayLimits:
    """`log`: events of one replay. Of one project: `open` replays that are neither switched on nor
    discarded, and `waiting` events of replays.
    """

    log: int
    open: int
    waiting: int


class Shadows:
    def __init__(self, engine: AsyncEngine, *, grace: timedelta) -> None:
        self._engine = engine
        self._grace = grace

    async def cast(
        self, scope: Scope, wish: Wish, limits: ReplayLimits
    ) -> tuple[UUID, Wake | None]:
        """A shadow of the scope, with its log in a lane of its own: its id, and whom to wake.

        The scope is not locked: the copy is one statement and so one view of the log, and a switch
        looks at what has changed since. Errors: NotFound where the scope has no event; Conflict
        beyond a limit, or where its recorded answers cannot be told apart any more.
        """
        shadow = Scope(
            ProjectId(uuid4()), scope.user_id, scope.agent_id, scope.app_id, scope.run_id
        )
        async with self._engine.begin() as connection:
            await _one_at_a_time(connection, scope.project_id)
            await _refuse_more(connection, scope, limits)
            await connection.execute(
                insert(shadows).values(
                    id=shadow.project_id,
                    **_columns(scope),
                    custom_instructions=wish.custom_instructions,
                    llm_model=wish.llm_model,
                    embedder_model=wish.embedder_model,
                    recorded=wish.recorded,
                )
            )
            await connection.execute(
                insert(lanes).values(id=shadow.lane_id, state="IDLE", **_columns(shadow))
            )
            copied, wake = await self.copy(connection, scope, shadow)
            if not copied:
                raise NotFound("These ids have no event that has ended and could be replayed.")
            if wish.recorded:
                await _refuse_torn(connection, scope.lane_id)
        return shadow.project_id, wake

    async def copy(
        self, connection: AsyncConnection, scope: Scope, shadow: Scope
    ) -> tuple[int, Wake | None]:
        """Bring what the scope has done since to the shadow: how many events, and whom to wake."""
        values = {
            "shadow_id": shadow.project_id,
            "lane_id": scope.lane_id,
            "shadow_lane_id": shadow.lane_id,
            "grace": self._grace,
        }
        row = (await connection.execute(statement("copy_log"), values)).one()
        wake = Wake(shadow.lane_id, row.fence, StageName.EXTRACT) if row.woken else None
        return row.copied, wake

    async def get(self, project_id: ProjectId, shadow_id: UUID) -> Shadow:
        """Errors: NotFound, also for another project's."""
        async with self._engine.connect() as connection:
            return await read(connection, project_id, shadow_id)

    async def page(
        self, project_id: ProjectId, *, limit: int, offset: int
    ) -> tuple[list[Shadow], int]:
        """The project's, newest first, and how many there are."""
        mine = shadows.c.project_id == project_id
        ids = (
            select(shadows.c.id)
            .where(mine)
            .order_by(shadows.c.created_at.desc(), shadows.c.id)
            .limit(limit)
            .offset(offset)
        )
        count = select(func.count()).select_from(shadows).where(mine)
        async with self._engine.connect() as connection:
            found = (await connection.scalars(ids)).all()
            page = [await read(connection, project_id, one) for one in found]
            return page, await connection.scalar(count) or 0

    async def stop(self, shadow: Shadow) -> None:
        """Nobody works on the shadow after this: a worker that still does has lost its lane."""
        async with self._engine.begin() as connection:
            await connection.execute(
                update(lanes)
                .where(lanes.c.id == shadow.apart.lane_id)
                .values(state="IDLE", due_at=None, fence=lanes.c.fence + 1)
            )

    async def vectors(self, shadow: Shadow) -> dict[str, list[UUID]]:
        """Ids of the shadow's memories by the embedder of their vectors."""
        query = (
            select(memories.c.embedder, func.array_agg(memories.c.id))
            .where(memories.c.lane_id == shadow.apart.lane_id)
            .group_by(memories.c.embedder)
        )
        async with self._engine.connect() as connection:
            return {row[0]: list(row[1]) for row in await connection.execute(query)}

    async def erase(self, shadow: Shadow) -> None:
        """Every row of the shadow, and that there was one."""
        async with self._engine.begin() as connection:
            await lock_lanes(connection, lanes.c.id == shadow.apart.lane_id)
            await sweep_out(connection, shadow)
            await connection.execute(delete(shadows).where(shadows.c.id == shadow.id))


async def read(connection: AsyncConnection, project_id: ProjectId, shadow_id: UUID) -> Shadow:
    mine = and_(shadows.c.id == shadow_id, shadows.c.project_id == project_id)
    row = (await connection.execute(select(shadows).where(mine))).one_or_none()
    if row is None:
        raise NotFound(NO_SUCH_REPLAY)
    scope = Scope(row.project_id, row.user_id, row.agent_id, row.app_id, row.run_id)
    since = select(func.count()).where(
        events.c.lane_id == scope.lane_id,
        events.c.seq > row.copied_seq,
        events.c.status != Status.CANCELLED,
    )
    books = (
        select(events.c.status, events.c.failure_code, func.count().label("events"))
        .where(events.c.project_id == shadow_id)
        .group_by(events.c.status, events.c.failure_code)
    )
    counted = (await connection.execute(books)).all()
    behind = 0 if row.switched_at else await connection.scalar(since) or 0
    return _shadow(row, scope, behind, counted)


def _shadow(row: Row[Any], scope: Scope, behind: int, counted: Sequence[Row[Any]]) -> Shadow:
    counts = dict.fromkeys(Status, 0)
    for book in counted:
        counts[Status(book.status)] += book.events
    return Shadow(
        id=row.id,
        scope=scope,
        wish=Wish(row.custom_instructions, row.llm_model, row.embedder_model, row.recorded),
        created_at=row.created_at,
        switched_at=row.switched_at,
        behind=behind,
        counts=counts,
        failures={book.failure_code: book.events for book in counted if book.status == "FAILED"},
    )


async def sweep_out(connection: AsyncConnection, shadow: Shadow) -> None:
    """Delete whatever of the shadow is still in the shadow's own project."""
    mine = shadow.id
    lane_id = shadow.apart.lane_id
    batches = select(events.c.batch_id).where(events.c.project_id == mine)
    ids = select(events.c.id).where(events.c.project_id == mine)
    taken_over = select(events.c.batch_id).where(events.c.lane_id == shadow.scope.lane_id)
    spent = batches.except_(taken_over)
    kept = events.c.batch_id == stage_runs.c.batch_id
    for doomed in (
        delete(stage_runs).where(stage_runs.c.lane_id == lane_id, ~taken_over.where(kept).exists()),
        update(stage_runs)
        .where(stage_runs.c.lane_id == lane_id)
        .values(lane_id=shadow.scope.lane_id),
        delete(failed_runs).where(failed_runs.c.batch_id.in_(spent)),
        delete(receipts).where(receipts.c.event_id.in_(ids)),
        delete(event_costs).where(event_costs.c.event_id.in_(ids)),
        delete(messages).where(messages.c.lane_id == lane_id),
        delete(relations).where(relations.c.lane_id == lane_id),
        delete(entities).where(entities.c.lane_id == lane_id),
        delete(memory_history).where(memory_history.c.project_id == mine),
        delete(memories).where(memories.c.lane_id == lane_id),
        delete(events).where(events.c.project_id == mine),
        delete(lanes).where(lanes.c.id == lane_id),
    ):
        await connection.execute(doomed)


async def _one_at_a_time(connection: AsyncConnection, project_id: ProjectId) -> None:
    """Count and insert as one: the project's row is locked, though not against its adds."""
    query = select(projects.c.id).where(projects.c.id == project_id)
    await connection.execute(query.with_for_update(key_share=True))


async def _refuse_more(connection: AsyncConnection, scope: Scope, limits: ReplayLimits) -> None:
    log = await connection.scalar(select(func.count()).where(events.c.lane_id == scope.lane_id))
    log = log or 0
    if log > limits.log:
        raise Conflict(f"These ids have {log} events; at most {limits.log} can be replayed.")
    mine = and_(shadows.c.project_id == scope.project_id, shadows.c.switched_at.is_(None))
    count = await connection.scalar(select(func.count()).select_from(shadows).where(mine)) or 0
    if count >= limits.open:
        raise Conflict(
            f"This project has {count} replays that are neither switched on nor discarded; at most"
            f" {limits.open} are allowed: switch one on or discard it with DELETE first."
        )
    depth = func.sum(lanes.c.accepted_seq - lanes.c.settled_seq)
    in_replays = lanes.c.project_id.in_(select(shadows.c.id).where(mine))
    waiting = await connection.scalar(select(depth).where(in_replays, lanes.c.state != "IDLE"))
    waiting = int(waiting or 0)
    if waiting and waiting + log > limits.waiting:
        raise Conflict(
            f"{waiting} events of this project's replays wait already, this replay has {log}, and"
            f" at most {limits.waiting} may wait: ask again later, or discard a replay."
        )


async def _refuse_torn(connection: AsyncConnection, lane_id: UUID) -> None:
    """Answers are saved by batch: one that lost an event to an undo cannot be repeated."""
    undone, kept = events.alias("undone"), events.alias("kept")
    torn = await connection.scalar(
        select(undone.c.id)
        .join(kept, and_(kept.c.batch_id == undone.c.batch_id, kept.c.undone_at.is_(None)))
        .where(undone.c.lane_id == lane_id, undone.c.undone_at.is_not(None))
        .limit(1)
    )
    if torn is not None:
        raise Conflict(
            f"Event {torn} was undone, and others share its recorded answers:"
            ' replay with "answers": "fresh".'
        )


def _columns(scope: Scope) -> dict[str, Any]:
    return {
        "project_id": scope.project_id,
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "app_id": scope.app_id,
        "run_id": scope.run_id,
    }
