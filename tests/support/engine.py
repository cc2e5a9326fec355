"""The pipeline without Celery: tests run the hints, in any order and any number of times."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import select, text, update
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.adapters.model_rules import RulesModel
from pipeline.curator.store import RunLimits
from pipeline.domain.events import AddOptions, StageName
from pipeline.domain.lanes import Activation, Batch, Hint
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.events.event_view import EventView
from pipeline.events.retention import Retention
from pipeline.events.service import undo
from pipeline.events.undo import Undone
from pipeline.graph.views import RelationView
from pipeline.ingest.add import add_messages
from pipeline.ingest.runner import run_stage
from pipeline.ingest.services import Services
from pipeline.lanes.effects import MemoryEffects
from pipeline.lanes.leases import session_name
from pipeline.lanes.store import Lanes
from pipeline.ledger.engine import ADDS, connect
from pipeline.ledger.tables import cooldowns, events, lanes, memories, memory_history
from pipeline.ports import MemoryModel
from pipeline.replays.store import ReplayLimits
from pipeline.stores import Ledger, Pools
from pipeline.tenants.projects import Project
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.projector import Projector
from tests.support.embedder_hash import DIMENSIONS, HashEmbedder
from tests.support.stack import wait_until
from tests.support.vectors_memory import InMemoryVectors

# Long, because a test on a busy machine must not lose a lease by the passing of real time.
LEASE_S, GRACE_S = 20.0, 30.0
# A worker that is alive for the ledger: it has open sessions.
WORKER = uuid4()
RUN_LIMITS = RunLimits(suggestions=50, tokens=200_000)
LIMITS = ReplayLimits(log=1_000, open=10, waiting=1_000)
NO_CHANGES = MemoryEffects((), {}, "fake/hash")


def build_ledger(url: str, *, batch_events: int = 8, lease_s: float = LEASE_S) -> Ledger:
    engine = connect(url, pool_size=5, name=session_name(WORKER, "test"))
    adds = connect(url, pool_size=4, name=session_name(WORKER, "test"), limits=ADDS)
    machine = lanes_on(engine, batch_events=batch_events, lease_s=lease_s)
    return Ledger(Pools(engine, engine, adds, engine), machine)


def with_stores(ledger: Ledger, **stores: Any) -> Ledger:
    """The same ledger with other stores, by name."""
    changed = copy(ledger)
    for name, store in stores.items():
        assert hasattr(changed, name)
        setattr(changed, name, store)
    return changed


def lanes_on(engine: AsyncEngine, *, batch_events: int = 8, lease_s: float = LEASE_S) -> Lanes:
    return Lanes(
        engine,
        lease_s=lease_s,
        queued_grace_s=GRACE_S,
        batch_events=batch_events,
        batch_tokens=6000,
        context_messages=10,
    )


@dataclass(slots=True)
class Hints:
    """Dispatcher that keeps the hints for the test to run."""

    waiting: deque[Hint] = field(default_factory=deque)

    def kick(self, hint: Hint, project_id: UUID) -> None:
        self.waiting.append(hint)


class NoLeases:
    @contextmanager
    def keep_renewed(self, activation: Activation) -> Iterator[None]:
        yield

    def blocked(self) -> bool:
        return False

    @asynccontextmanager
    async def alone(self, crashes: int) -> AsyncIterator[None]:
        yield


@asynccontextmanager
async def locked(engine: Engine, user_id: str) -> AsyncIterator[None]:
    """Lock the row of this scope's lane, as a long transaction would."""
    lane = select(lanes.c.id).where(lanes.c.id == engine.scope(user_id).lane_id)
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(lane.with_for_update())
        yield


@dataclass(slots=True)
class Engine:
    ledger: Ledger
    project: Project
    services: Services
    vectors: InMemoryVectors
    hints: Hints = field(default_factory=Hints)
    worker: UUID = WORKER

    @classmethod
    async def create(
        cls, ledger: Ledger, model: MemoryModel | None = None, *, dimensions: int = DIMENSIONS
    ) -> Engine:
        project, _ = await ledger.projects.create("test")
        vectors, embedder = InMemoryVectors(), HashEmbedder(dimensions)
        index = VectorIndex(vectors, ledger.memory_vectors, embedder, buckets=4)
        services = Services(
            ledger=ledger,
            model=model or RulesModel(),
            embedder=embedder,
            index=index,
            projector=Projector(index),  # never runs: searches read stale rows from the ledger
            turn_projector=None,  # turns have no vectors until a test asks for them
            graph=True,
            neighbours=5,
            retire_share=0.2,
            max_attempts=5,
            outage_budget_s=86_400,
        )
        return cls(ledger, project, services, vectors)

    @property
    def turns(self) -> VectorIndex:
        return self.services.index.of(self.ledger.turn_vectors)

    @property
    def retention(self) -> Retention:
        return Retention(
            self.ledger.engine,
            keys_for=timedelta(days=1),
            outputs_for=None,
            audit_for=timedelta(days=365),
            profiles_for=timedelta(days=365),
            states_for=timedelta(days=365),
            erased_for=timedelta(days=730),
        )

    def scope(self, user_id: str = "maya") -> Scope:
        return Scope(self.project.id, user_id=user_id)

    def with_model(self, model: MemoryModel) -> None:
        self.services = replace(self.services, model=model)

    async def add(
        self, *texts: str, user_id: str = "maya", options: AddOptions | None = None
    ) -> UUID:
        """Accept one event with these user messages."""
        messages = [Message(Role.USER, text) for text in texts]
        return await self.send(self.scope(user_id), messages, options)

    async def send(
        self,
        scope: Scope,
        messages: Sequence[Message],
        options: AddOptions | None = None,
        *,
        said_at: datetime | None = None,
        **more: Any,
    ) -> UUID:
        """Accept one event of any scope; `more`: see add_messages."""
        return await add_messages(
            scope,
            messages,
            options or AddOptions(),
            said_at=said_at,
            ledger=self.ledger,
            dispatcher=self.hints,
            **more,
        )

    async def undo(self, event_id: UUID, *, force: bool = False) -> Undone:
        """Reverse an event."""
        return await undo(
            self.project.id,
            event_id,
            force=force,
            store=self.ledger.undo,
            embedder=self.services.embedder,
            index=self.services.index,
        )

    async def step(self) -> Hint | None:
        """Run the oldest hint; its successor goes to the end of the queue."""
        return await self.run(self.hints.waiting.popleft())

    async def run(self, hint: Hint, *, one_stage: bool = True) -> Hint | None:
        following = await run_stage(
            hint,
            owner=self.worker,
            services=self.services,
            leases=NoLeases(),
            one_stage=one_stage,
        )
        if following:
            self.hints.waiting.append(following)
        return following

    async def claim(self, hint: Hint) -> tuple[Activation, Batch | None]:
        """Claim the lane for a worker that then hangs."""
        claimed = await self.ledger.lanes.claim(hint, self.worker)
        assert claimed is not None
        return claimed

    async def run_until(self, stage: StageName) -> Hint:
        """Step until the next hint is for this stage; return the hint, which stays in the queue."""
        while self.hints.waiting[0].stage is not stage:
            await self.step()
        return self.hints.waiting[0]

    async def drain(self) -> None:
        """Run all hints as a worker does: quick stages follow in the same activation."""
        while self.hints.waiting:
            await self.run(self.hints.waiting.popleft(), one_stage=False)

    async def sweep(self) -> int:
        """Sweep as the sweeper does: queue the lanes that are due, and collect their hints."""
        swept = await self.ledger.due_lanes.sweep(limit=1000)
        for lane in swept:
            self.hints.kick(lane.hint, lane.project_id)
        return len(swept)

    async def pass_time(self, seconds: float) -> None:
        """Move the due times of all lanes and probes closer by this many seconds."""
        due = select(lanes.c.id).where(lanes.c.due_at.is_not(None))
        async with self.ledger.engine.begin() as connection:
            # In the order in which all transactions lock lanes.
            locked = await connection.scalars(due.order_by(lanes.c.id).with_for_update())
            await connection.execute(
                update(lanes)
                .where(lanes.c.id.in_(locked.all()), lanes.c.due_at.is_not(None))
                .values(due_at=lanes.c.due_at - text(f"interval '{seconds} seconds'"))
            )
            await connection.execute(
                update(cooldowns).values(
                    probe_at=cooldowns.c.probe_at - text(f"interval '{seconds} seconds'")
                )
            )

    async def age(self, seconds: float) -> None:
        """Make every event this many seconds older, and the curator's next look earlier."""
        by = text(f"interval '{seconds} seconds'")
        older = {
            "created_at": events.c.created_at - by,
            "started_at": events.c.started_at - by,
        }
        async with self.ledger.engine.begin() as connection:
            await connection.execute(update(events).values(older))
            looked = lanes.c.next_curation_at - by
            await connection.execute(update(lanes).values(next_curation_at=looked))

    async def stays_in_a_minute(self, seconds: float = 15) -> None:
        """Wait until the ledger's minute, and so its hour and its day, lasts this long at least."""

        async def lasts() -> bool:
            return (await self.ledger.now()).second < 60 - seconds

        await wait_until(lasts, within_s=60, what="the next minute", every_s=0.1)

    async def event(self, event_id: UUID) -> EventView:
        return await self.ledger.events.get(self.project.id, event_id)

    async def outcomes(self, event_id: UUID) -> list[tuple[str, str]]:
        return [(line.outcome, line.text) for line in (await self.event(event_id)).receipt]

    async def texts(self, user_id: str = "maya") -> list[str]:
        """Active memories of a scope, oldest first."""
        query = (
            select(memories.c.text)
            .where(memories.c.lane_id == self.scope(user_id).lane_id, memories.c.state == "ACTIVE")
            .order_by(memories.c.created_at, memories.c.text)
        )
        async with self.ledger.engine.connect() as connection:
            return list((await connection.scalars(query)).all())

    async def relations(self, query: str, user_id: str = "maya") -> list[RelationView]:
        """Current relations that a search of these words returns."""
        user = {"user_id": user_id}
        walk = await self.ledger.graph.walk(self.project.id, user, query)
        paths = await self.ledger.graph.near(self.project.id, walk, limit=10)
        return [path.relation for path in paths]

    async def lane_state(self, user_id: str = "maya") -> str:
        query = select(lanes.c.state).where(lanes.c.id == self.scope(user_id).lane_id)
        async with self.ledger.engine.connect() as connection:
            return str(await connection.scalar(query))

    async def history_rows(self) -> Sequence[tuple[str, str | None, str | None]]:
        query = select(
            memory_history.c.event, memory_history.c.old_text, memory_history.c.new_text
        ).order_by(memory_history.c.created_at, memory_history.c.version)
        async with self.ledger.engine.connect() as connection:
            return [tuple(row) for row in await connection.execute(query)]
