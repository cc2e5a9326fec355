"""Shadows: a scope's whole log, processed again apart from the scope, to compare before a switch.

A shadow is a project without API keys. The rules that separate tenants therefore separate it from
the scope's own project: no list, search, graph or total includes it. It has one lane with a copy of
the scope's log, which ordinary workers process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, and_, delete, exists, func, insert, not_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.events import FINAL, StageName, Status
from pipeline.domain.lanes import Hint
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import count_near
from pipeline.ledger.fetching import execute, fetch, known_row
from pipeline.ledger.filter_conditions import looked_up, shown
from pipeline.ledger.locks import lock_lanes
from pipeline.ledger.owned_rows import ListPage
from pipeline.ledger.row_values import value_of
from pipeline.ledger.store import WakingStore
from pipeline.ledger.tables import (
    conflicts,
    entities,
    event_costs,
    events,
    failed_runs,
    graph_receipts,
    lanes,
    memories,
    memory_history,
    messages,
    past_states,
    projects,
    receipts,
    relations,
    shadows,
    stage_runs,
    suggestions,
)
from pipeline.replays.sql import statement

NO_SUCH_REPLAY = "Replay not found or you don't have permission to access it."


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of a replay that override the configuration.

    `recorded`: call no model; process each batch with its recorded answers.
    """

    custom_instructions: str | None = None
    llm_model: str | None = None
    embedder_model: str | None = None
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Shadow:
    """A replay of `scope`. `behind`: number of events of the scope that came after the copy."""

    id: UUID
    scope: Scope
    options: ReplayOptions
    created_at: datetime
    switched_at: datetime | None
    behind: int
    counts: Mapping[Status, int]
    failures: Mapping[str, int]

    @property
    def apart(self) -> Scope:
        """The same ids in the shadow's own project."""
        return replace(self.scope, project_id=ProjectId(self.id))

    @property
    def done(self) -> bool:
        """Tell if all copied events have ended."""
        return all(status in FINAL for status, count in self.counts.items() if count)


@dataclass(frozen=True, slots=True)
class ReplayLimits:
    """Limits of replays.

    `log`: events of one replay. Per project: `open` replays that are neither switched on nor
    discarded, and `waiting` events of replays.
    """

    log: int
    open: int
    waiting: int


class Shadows(WakingStore):
    """Create, read and delete shadows."""

    async def create(
        self, scope: Scope, options: ReplayOptions, limits: ReplayLimits
    ) -> tuple[UUID, Hint | None]:
        """Create a shadow of the scope with a copy of its log.

        Returns its id, and the hint for its lane, if it has work.

        The scope is not locked: the copy is one statement, so it sees one snapshot of the log, and
        a switch checks what has changed since.

        Errors: NotFound if the scope has no event to replay; Conflict beyond a limit, or if an
        undone event shares its recorded answers with other events.
        """
        shadow = replace(scope, project_id=ProjectId(uuid4()))
        async with self._engine.begin() as connection:
            await _one_at_a_time(connection, scope.project_id)
            await _refuse_more(connection, scope, limits)
            await connection.execute(
                insert(shadows).values(id=shadow.project_id, **scope.ids, **asdict(options))
            )
            await connection.execute(
                insert(lanes).values(id=shadow.lane_id, state="IDLE", **shadow.ids)
            )
            copied, hint = await self.copy(connection, scope, shadow)
            if not copied:
                raise NotFound("These ids have no event that has ended and could be replayed.")
            if options.recorded:
                await _refuse_torn(connection, scope.lane_id)
        return shadow.project_id, hint

    async def copy(
        self, connection: AsyncConnection, scope: Scope, shadow: Scope
    ) -> tuple[int, Hint | None]:
        """Append the scope's new settled events to the shadow.

        Returns their number, and the hint for the lane, if it has work.
        """
        values = {
            "shadow_id": shadow.project_id,
            "lane_id": scope.lane_id,
            "shadow_lane_id": shadow.lane_id,
            "grace": self._grace,
        }
        row = (await connection.execute(statement("copy_log"), values)).one()
        hint = Hint(shadow.lane_id, row.fence, StageName.EXTRACT) if row.woken else None
        return row.copied, hint

    async def get(self, project_id: ProjectId, shadow_id: UUID) -> Shadow:
        """Return a shadow of the project. Errors: NotFound, also for another project's shadow."""
        async with self._engine.connect() as connection:
            return await read(connection, project_id, shadow_id)

    async def page(
        self,
        project_id: ProjectId,
        *,
        ids: Mapping[str, str] | None = None,
        limit: int,
        offset: int,
    ) -> ListPage[Shadow]:
        """A page of the project's shadows, newest first, and their number: see `count_near`.

        `ids`: only those of scopes with these entity ids. A project has few shadows, so they are
        read by project.
        """
        scope_ids = ids or {}
        of_temporary = exists().where(
            lanes.c.project_id == project_id,
            lanes.c.run_id == shadows.c.run_id,
            not_(shown(lanes, scope_ids)),
        )
        own = (shadows.c[name] == value for name, value in scope_ids.items())
        mine = and_(shadows.c.project_id == project_id, not_(of_temporary), *own)
        newest = (
            select(shadows.c.id)
            .where(mine)
            .order_by(shadows.c.created_at.desc(), shadows.c.id)
            .limit(limit)
            .offset(offset)
        )
        counted = select(shadows.c.id).where(mine)
        count = await count_near(self._engine, counted, limit=limit, offset=offset)
        async with self._engine.connect() as connection:
            shadow_ids = (await connection.scalars(newest)).all()
            page = [await read(connection, project_id, shadow_id) for shadow_id in shadow_ids]
            return ListPage(page, count)

    async def stop(self, shadow: Shadow) -> None:
        """Stop all work on the shadow.

        Its lane becomes idle, and a worker that still runs loses its fence.
        """
        lane = update(lanes).where(lanes.c.id == shadow.apart.lane_id)
        idle = lane.values(state="IDLE", due_at=None, fence=lanes.c.fence + 1)
        await execute(self._engine, idle)

    async def vectors(self, shadow: Shadow) -> dict[str, list[UUID]]:
        """Map each embedder to the ids of the shadow's memories with vectors of this embedder."""
        query = (
            select(memories.c.embedder, func.array_agg(memories.c.id).label("ids"))
            .where(memories.c.lane_id == shadow.apart.lane_id)
            .group_by(memories.c.embedder)
        )
        return {row.embedder: list(row.ids) for row in await fetch(self._engine, query)}

    async def erase(self, shadow: Shadow) -> None:
        """Delete all rows of the shadow, including the shadow itself."""
        async with self._engine.begin() as connection:
            await lock_lanes(connection, lanes.c.id == shadow.apart.lane_id)
            await sweep_out(connection, shadow)
            await connection.execute(delete(shadows).where(shadows.c.id == shadow.id))


async def read(connection: AsyncConnection, project_id: ProjectId, shadow_id: UUID) -> Shadow:
    """Read a shadow with the counts of its events. Errors: NotFound."""
    mine = and_(shadows.c.id == shadow_id, shadows.c.project_id == project_id)
    row = await known_row(connection, select(shadows).where(mine), missing=NO_SUCH_REPLAY)
    scope = Scope.of(row)
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
    """Build a shadow from its row and from event counts by status and failure code."""
    counts = dict.fromkeys(Status, 0)
    for book in counted:
        counts[Status(book.status)] += book.events
    return Shadow(
        id=row.id,
        scope=scope,
        options=value_of(ReplayOptions, row),
        created_at=row.created_at,
        switched_at=row.switched_at,
        behind=behind,
        counts=counts,
        failures={book.failure_code: book.events for book in counted if book.status == "FAILED"},
    )


async def sweep_out(connection: AsyncConnection, shadow: Shadow) -> None:
    """Delete every row that is still in the shadow's own project.

    Stage outputs of batches that the scope has taken over move to the scope's lane.
    """
    mine = shadow.id
    lane_id = shadow.apart.lane_id
    batches = select(events.c.batch_id).where(events.c.project_id == mine)
    ids = select(events.c.id).where(events.c.project_id == mine)
    taken_over = select(events.c.batch_id).where(events.c.lane_id == shadow.scope.lane_id)
    spent = batches.except_(taken_over)
    same_batch = events.c.batch_id == stage_runs.c.batch_id
    for doomed in (
        delete(stage_runs).where(
            stage_runs.c.lane_id == lane_id, ~taken_over.where(same_batch).exists()
        ),
        update(stage_runs)
        .where(stage_runs.c.lane_id == lane_id)
        .values(lane_id=shadow.scope.lane_id),
        delete(failed_runs).where(looked_up(failed_runs.c.batch_id, spent)),
        delete(receipts).where(looked_up(receipts.c.event_id, ids)),
        delete(graph_receipts).where(looked_up(graph_receipts.c.event_id, ids)),
        delete(event_costs).where(looked_up(event_costs.c.event_id, ids)),
        delete(messages).where(messages.c.lane_id == lane_id),
        delete(relations).where(relations.c.lane_id == lane_id),
        delete(entities).where(entities.c.lane_id == lane_id),
        delete(suggestions).where(suggestions.c.lane_id == lane_id),
        delete(conflicts).where(conflicts.c.lane_id == lane_id),
        delete(memory_history).where(memory_history.c.project_id == mine),
        delete(past_states).where(past_states.c.project_id == mine),
        delete(memories).where(memories.c.lane_id == lane_id),
        delete(events).where(events.c.project_id == mine),
        delete(lanes).where(lanes.c.id == lane_id),
    ):
        await connection.execute(doomed)


async def _one_at_a_time(connection: AsyncConnection, project_id: ProjectId) -> None:
    """Lock the project's row, so that counting and inserting a replay are atomic.

    Adds lock the row in a mode that does not conflict.
    """
    query = select(projects.c.id).where(projects.c.id == project_id)
    await connection.execute(query.with_for_update(key_share=True))


async def _refuse_more(connection: AsyncConnection, scope: Scope, limits: ReplayLimits) -> None:
    """Refuse a replay that exceeds one of the limits. Errors: Conflict."""
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
    """Refuse recorded answers if an undone event shares its batch with other events.

    Answers are recorded by batch, so such a batch cannot be repeated without the undone event.
    Errors: Conflict.
    """
    undone, valid = events.alias("undone"), events.alias("valid")
    torn = await connection.scalar(
        select(undone.c.id)
        .join(valid, and_(valid.c.batch_id == undone.c.batch_id, valid.c.undone_at.is_(None)))
        .where(undone.c.lane_id == lane_id, undone.c.undone_at.is_not(None))
        .limit(1)
    )
    if torn is not None:
        raise Conflict(
            f"Event {torn} was undone, and others share its recorded answers:"
            ' replay with "answers": "fresh".'
        )
