"""Erasure in the ledger: one transaction deletes all rows of an owner.

Lock order: the idempotency keys, then the lanes, as adds lock them; then the memories, which people
change without a lane. From then on no other transaction can add to the rows that are counted and
deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import (
    CheckConstraint,
    Column,
    ColumnElement,
    DateTime,
    Delete,
    ForeignKey,
    Index,
    Select,
    Table,
    Text,
    Uuid,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from pipeline.accounting.balance import fold_all
from pipeline.domain.errors import NotFound
from pipeline.domain.events import EventType, Status
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.erasure.sql import statement
from pipeline.ledger.filter_conditions import among
from pipeline.ledger.locks import lock_lanes, locked
from pipeline.ledger.tables import (
    conflicts,
    curator_runs,
    entities,
    events,
    feedback,
    graph_receipts,
    idempotency_keys,
    kept_answers,
    lanes,
    memories,
    memory_accesses,
    memory_history,
    messages,
    metadata,
    owners,
    past_states,
    private_runs,
    rebuilt,
    receipts,
    relations,
    shadows,
    suggestions,
    summaries,
    summary_states,
    turn_vectors,
    usage_daily,
)
from pipeline.ledger.tables.webhooks import webhook_deliveries
from pipeline.replays.store import read, sweep_out
from pipeline.seals.entries import record_erasure
from pipeline.seals.keys import SealKeys
from pipeline.tenants.owners import KINDS
from pipeline.tenants.projects import keep

# Time one process has to delete the vectors before another one may claim the erasure.
LEASE = timedelta(seconds=60)
# Pause before the second pass; no vector write that was under way lasts that long.
AGAIN = timedelta(seconds=60)
ERASED = "Erased by request; only numbers are left."
DONE = "Everything of it is erased; GET /v1/erasures/{event_id}/ says how much there was."
NO_SUCH_ERASURE = "There is no erasure with this id."


# Receipts of erasures. The erased id is not stored: the client that has the event's id knows it.
erasures = Table(
    "erasures",
    metadata,
    Column("event_id", ForeignKey("events.id"), primary_key=True),
    Column("project_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    # Number of rows erased, by store; `vectors` once they are counted.
    Column("counts", JSONB, nullable=False),
    # Ids of the memories and turns to delete from the index, and the time of the next pass; both
    # NULL once the erasure is complete.
    Column("memory_ids", ARRAY(Uuid)),
    Column("due_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    CheckConstraint("kind IN ('user', 'agent', 'app', 'run')", name="kind"),
    CheckConstraint("(memory_ids IS NULL) = (due_at IS NULL)", name="due"),
    Index("ix_erasures_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
)


@dataclass(frozen=True, slots=True)
class OwnerKey:
    """Identity of an owner to erase: `kind` is user, agent, app or run."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class PendingErasure:
    """A claimed erasure with vectors to delete. `vectors`: their number, None until counted."""

    event_id: UUID
    memory_ids: Sequence[UUID]
    vectors: int | None


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """Receipt of an erasure. `counts`: number of rows erased, by store.

    It does not name the owner, because the name is erased, too.
    """

    event_id: UUID
    kind: str
    status: Status
    counts: Mapping[str, int]
    created_at: datetime
    completed_at: datetime | None


class Erasures:
    """Erase owners from the ledger and keep the receipts. `seal_keys`: sign what they cover."""

    def __init__(self, engine: AsyncEngine, seal_keys: SealKeys) -> None:
        self._seal_keys = seal_keys
        self._engine = engine
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def erase(self, project_id: ProjectId, owner: OwnerKey) -> UUID:
        """Delete every scope with this id from the ledger. Returns the id of the event."""
        own = Scope(project_id)
        async with self._engine.begin() as connection:
            await keep(connection, project_id)
            lane_ids = await _lock(connection, own, owner)
            event_id = await _event_id(connection, project_id, owner)
            copies = await _drop_shadows(connection, project_id, owner)
            of_lanes = among(memories.c.lane_id, lane_ids)
            memory_ids = (await connection.scalars(locked(memories, of_lanes))).all()
            turn_ids = (await connection.scalars(_turns_of(lane_ids))).all()
            await _withdraw(connection, project_id, owner)
            await record_erasure(
                connection,
                self._seal_keys,
                project_id,
                event_id,
                lane_ids=lane_ids,
                memory_ids=memory_ids,
                question_ids=await _withdrawn(connection, project_id),
            )
            counts = {
                store: (await connection.execute(rows)).rowcount
                for store, rows in _all_of(project_id, owner, lane_ids, memory_ids)
            }
            counts |= await _empty(connection, own, lane_ids, event_id)
            await connection.execute(
                insert(erasures).values(
                    event_id=event_id,
                    project_id=project_id,
                    kind=owner.kind,
                    counts=counts,
                    memory_ids=[*memory_ids, *copies, *turn_ids],
                    due_at=func.now(),
                )
            )
            await fold_all(connection)  # the books contain the owner's id, too
        return event_id

    async def claim(self) -> PendingErasure | None:
        """Claim the next erasure with vectors to delete, for 60 seconds; None if none is due."""
        async with self._single.connect() as connection:
            values = {"lease": LEASE}
            row = (await connection.execute(statement("claim_erasure"), values)).one_or_none()
        return PendingErasure(row.event_id, row.memory_ids, row.vectors) if row else None

    async def record_vectors(self, event_id: UUID, vectors: int) -> None:
        """Store the number of vectors, before the first one is deleted."""
        known = func.jsonb_build_object(cast("vectors", Text), vectors)
        query = (
            update(erasures)
            .where(erasures.c.event_id == event_id, ~erasures.c.counts.has_key("vectors"))
            .values(counts=erasures.c.counts.op("||")(cast(known, JSONB)))
        )
        async with self._single.connect() as connection:
            await connection.execute(query)

    async def end(self, event_id: UUID) -> None:
        """Record that the index holds no vector of the erasure, after each of the two passes."""
        values = {"event_id": event_id, "again": AGAIN, "note": DONE.format(event_id=event_id)}
        async with self._single.connect() as connection:
            await connection.execute(statement("end_erasure"), values)

    async def receipt(self, project_id: ProjectId, event_id: UUID) -> ErasureReceipt:
        """Return the receipt of an erasure. Errors: NotFound."""
        query = (
            select(erasures, events.c.status, events.c.completed_at)
            .join(events)
            .where(erasures.c.project_id == project_id, erasures.c.event_id == event_id)
        )
        async with self._single.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise NotFound(NO_SUCH_ERASURE)
        return ErasureReceipt(
            row.event_id, row.kind, Status(row.status), row.counts, row.created_at, row.completed_at
        )


async def _event_id(connection: AsyncConnection, project_id: ProjectId, owner: OwnerKey) -> UUID:
    """Id of the event: that of a private run is known since its beginning."""
    run = and_(private_runs.c.project_id == project_id, private_runs.c.run_id == owner.id)
    query = select(private_runs.c.erasure_id).where(run, literal(owner.kind == "run"))
    return await connection.scalar(query.with_for_update()) or uuid4()


async def _lock(connection: AsyncConnection, own: Scope, owner: OwnerKey) -> list[UUID]:
    """Lock the idempotency keys of the owner's events, then its lanes, in the order adds use.

    An add may commit a new key between the two locks. Both are then released and taken again:
    deleting a key without its lock could deadlock with an add that has locked it and waits for a
    lane.
    """
    keys = (
        select(idempotency_keys.c.key)
        .join(events, events.c.id == idempotency_keys.c.event_id)
        .join(lanes, lanes.c.id == events.c.lane_id)
        .where(
            idempotency_keys.c.project_id == own.project_id,
            lanes.c[KINDS[owner.kind]] == owner.id,
        )
        .order_by(idempotency_keys.c.key)
    )
    while True:
        locks = await connection.begin_nested()
        first = (await connection.scalars(keys.with_for_update(of=idempotency_keys))).all()
        lane_ids = await _lock_lanes(connection, own, owner)
        if (await connection.scalars(keys)).all() == first:
            return lane_ids
        await locks.rollback()


async def _lock_lanes(connection: AsyncConnection, own: Scope, owner: OwnerKey) -> list[UUID]:
    """Lock the owner's lanes and the project's own lane. Returns the ids of the owner's lanes."""
    row = {"id": own.lane_id, "project_id": own.project_id, "state": "IDLE"}
    await connection.execute(postgresql.insert(lanes).values(row).on_conflict_do_nothing())
    owner_id = lanes.c[KINDS[owner.kind]]
    of_owner = owner_id == owner.id
    apart = select(shadows.c.id).where(shadows.c.project_id == own.project_id)
    mine = and_(lanes.c.project_id == own.project_id, of_owner)
    with_questions = select(events.c.lane_id).where(
        events.c.project_id == own.project_id,
        events.c.event_type != EventType.ADD.value,
        events.c.completed_at.is_(None),
    )
    which = or_(
        lanes.c.id == own.lane_id,
        mine,
        and_(lanes.c.project_id.in_(apart), of_owner),
        # Lanes with an unfinished export or summary over several scopes.
        and_(lanes.c.id.in_(with_questions), owner_id.is_(None)),
    )
    rows = await lock_lanes(connection, which, mine.label("mine"))
    return [row.id for row in rows if row.mine]


async def _drop_shadows(
    connection: AsyncConnection, project_id: ProjectId, owner: OwnerKey
) -> Sequence[UUID]:
    """Delete replays of the owner's scopes, which are copies. Returns the ids of their memories."""
    of_owner = and_(shadows.c.project_id == project_id, shadows.c[KINDS[owner.kind]] == owner.id)
    shadow_ids = (await connection.scalars(select(shadows.c.id).where(of_owner))).all()
    copies = select(memories.c.id).where(among(memories.c.project_id, shadow_ids))
    memory_ids = (await connection.scalars(copies)).all()
    for shadow_id in shadow_ids:
        await sweep_out(connection, await read(connection, project_id, shadow_id))
    await connection.execute(delete(shadows).where(of_owner))
    return memory_ids


def _all_of(
    project_id: ProjectId, owner: OwnerKey, lane_ids: Sequence[UUID], memory_ids: Sequence[UUID]
) -> Iterator[tuple[str, Delete]]:
    """Yield a DELETE per store for rows with a text or an id of the owner.

    Referring rows come first.
    """
    event_ids = select(events.c.id).where(
        events.c.project_id == project_id, among(events.c.lane_id, lane_ids)
    )
    in_history = select(memory_history.c.event_id).where(
        among(memory_history.c.memory_id, memory_ids)
    )
    elsewhere = and_(receipts.c.event_id.in_(in_history), among(receipts.c.memory_id, memory_ids))
    yield "receipts", delete(receipts).where(or_(receipts.c.event_id.in_(event_ids), elsewhere))
    yield "graph_receipts", delete(graph_receipts).where(graph_receipts.c.event_id.in_(event_ids))
    yield "relations", delete(relations).where(among(relations.c.lane_id, lane_ids))
    yield "entities", delete(entities).where(among(entities.c.lane_id, lane_ids))
    past = among(past_states.c.memory_id, memory_ids)
    yield "past_states", delete(past_states).where(past)
    yield "history", delete(memory_history).where(among(memory_history.c.memory_id, memory_ids))
    yield "conflicts", delete(conflicts).where(among(conflicts.c.lane_id, lane_ids))
    # Before the suggestions, as the curator locks them.
    yield "curator_runs", delete(curator_runs).where(among(curator_runs.c.lane_id, lane_ids))
    yield "suggestions", delete(suggestions).where(among(suggestions.c.lane_id, lane_ids))
    yield "summaries", delete(summaries).where(among(summaries.c.lane_id, lane_ids))
    states = among(summary_states.c.lane_id, lane_ids)
    yield "summary_states", delete(summary_states).where(states)
    yield "kept_answers", delete(kept_answers).where(among(kept_answers.c.lane_id, lane_ids))
    yield "feedback", delete(feedback).where(among(feedback.c.memory_id, memory_ids))
    accesses = among(memory_accesses.c.memory_id, memory_ids)
    yield "memory_accesses", delete(memory_accesses).where(accesses)
    built = or_(
        among(rebuilt.c.memory_id, memory_ids), rebuilt.c.memory_id.in_(_turns_of(lane_ids))
    )
    yield "rebuilt_vectors", delete(rebuilt).where(built)
    yield "turn_vectors", delete(turn_vectors).where(turn_vectors.c.event_id.in_(event_ids))
    yield "memories", delete(memories).where(among(memories.c.id, memory_ids))
    yield "messages", delete(messages).where(among(messages.c.lane_id, lane_ids))
    bodies = among(webhook_deliveries.c.lane_id, lane_ids)
    yield "webhook_deliveries", delete(webhook_deliveries).where(bodies)
    yield (
        "idempotency_keys",
        delete(idempotency_keys).where(
            idempotency_keys.c.project_id == project_id, idempotency_keys.c.event_id.in_(event_ids)
        ),
    )
    if owner.kind == "user":
        paid = and_(usage_daily.c.project_id == project_id, usage_daily.c.user_id == owner.id)
        yield "usage", delete(usage_daily).where(paid)
    yield "private_runs", delete(private_runs).where(_runs_of(project_id, owner, lane_ids))
    yield (
        "entity_rows",
        delete(owners).where(
            owners.c.project_id == project_id,
            owners.c.kind == owner.kind,
            owners.c.id == owner.id,
        ),
    )


def _runs_of(
    project_id: ProjectId, owner: OwnerKey, lane_ids: Sequence[UUID]
) -> ColumnElement[bool]:
    """Match the private run that is erased, and those whose scopes all are erased."""
    others = lanes.alias("others")
    left = exists().where(
        others.c.project_id == project_id,
        others.c.run_id == private_runs.c.run_id,
        ~among(others.c.id, lane_ids),
    )
    run_ids = select(lanes.c.run_id).where(among(lanes.c.id, lane_ids))
    of_owner = and_(private_runs.c.run_id.in_(run_ids), ~left)
    this = and_(private_runs.c.run_id == owner.id, literal(owner.kind == "run"))
    return and_(private_runs.c.project_id == project_id, or_(this, of_owner))


def _turns_of(lane_ids: Sequence[UUID]) -> Select[tuple[UUID]]:
    """Select the index ids of the turns in these lanes."""
    event_ids = select(events.c.id).where(among(events.c.lane_id, lane_ids))
    return select(turn_vectors.c.id).where(turn_vectors.c.event_id.in_(event_ids))


async def _empty(
    connection: AsyncConnection, own: Scope, lane_ids: Sequence[UUID], event_id: UUID
) -> dict[str, int]:
    """Reduce the owner's events to numbers and clear its lanes. Returns the counts, by store."""
    values = {
        "project_id": own.project_id,
        "lane_ids": lane_ids,
        "own_lane_id": own.lane_id,
        "event_id": event_id,
        "note": ERASED,
    }
    row = (await connection.execute(statement("erase_lanes"), values)).one()
    return {"events": row.events, "stage_outputs": row.stage_outputs}


async def _withdrawn(connection: AsyncConnection, project_id: ProjectId) -> Sequence[UUID]:
    """Return the questions that this transaction has withdrawn."""
    query = select(events.c.id).where(
        events.c.project_id == project_id,
        events.c.event_type != EventType.ADD.value,
        events.c.erased_at == func.now(),
    )
    return (await connection.scalars(query)).all()


async def _withdraw(connection: AsyncConnection, project_id: ProjectId, owner: OwnerKey) -> None:
    """Withdraw exports and summaries over several scopes that may contain the owner's data."""
    values = {
        "project_id": project_id,
        "kind": owner.kind,
        "owner_id": owner.id,
        "note": ERASED,
    }
    await connection.execute(statement("withdraw_answers"), values)
