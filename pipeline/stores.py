"""Every store of the ledger, over the connections it uses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.accounting.balance import Books
from pipeline.accounting.costs import Costs
from pipeline.erasure.store import Erasures
from pipeline.events.answers import Answers
from pipeline.events.cancel_and_replay import Recourse
from pipeline.events.store import Events
from pipeline.events.undo import Undo
from pipeline.graph.store import Graph
from pipeline.lanes.group_commit import GroupCommit
from pipeline.lanes.store import Lanes
from pipeline.memories.delete_by_filter import Clearing
from pipeline.memories.editing import Editing
from pipeline.memories.feedback import Feedback
from pipeline.memories.history import Histories
from pipeline.memories.store import Memories
from pipeline.models.cooldowns import Cooldowns
from pipeline.models.recordings import Recordings
from pipeline.reindex.store import Indexes
from pipeline.replays.store import Shadows
from pipeline.replays.switch import Switch
from pipeline.search.store import Passages
from pipeline.tenants.api_keys import ApiKeys
from pipeline.tenants.delete_project import Removal
from pipeline.tenants.members import Members
from pipeline.tenants.owners import Owners
from pipeline.tenants.projects import Projects
from pipeline.turns.vectors import TurnVectors
from pipeline.webhooks.store import Webhooks


@dataclass(frozen=True, slots=True)
class Ledger:
    engine: AsyncEngine
    long: AsyncEngine
    inbox_engine: AsyncEngine
    lanes: Lanes
    inbox: GroupCommit
    events: Events
    memories: Memories
    turn_vectors: TurnVectors
    histories: Histories
    editing: Editing
    clearing: Clearing
    feedback: Feedback
    answers: Answers
    owners: Owners
    passages: Passages
    indexes: Indexes
    graph: Graph
    projects: Projects
    keys: ApiKeys
    members: Members
    removal: Removal
    recourse: Recourse
    undo: Undo
    shadows: Shadows
    switch: Switch
    recordings: Recordings
    erasures: Erasures
    webhooks: Webhooks
    cooldowns: Cooldowns
    costs: Costs
    books: Books

    @classmethod
    def of(
        cls,
        engine: AsyncEngine,
        lanes: Lanes,
        *,
        inbox: AsyncEngine | None = None,
        long: AsyncEngine | None = None,
    ) -> Ledger:
        """`inbox`: connections for adds alone, so that no read keeps one waiting. `long`: those of
        operations whose statements take longer the more they change.
        """
        inbox, long = inbox or engine, long or engine
        shadows = Shadows(long, grace=lanes.grace)
        return cls(
            engine,
            long,
            inbox,
            lanes,
            GroupCommit(lanes.on(inbox)),
            Events(engine),
            Memories(engine),
            TurnVectors(engine),
            Histories(engine),
            Editing(engine),
            Clearing(long, grace=lanes.grace),
            Feedback(engine),
            Answers(engine),
            Owners(engine),
            Passages(engine),
            Indexes(long),
            Graph(engine),
            Projects(engine),
            ApiKeys(engine),
            Members(engine),
            Removal(long),
            Recourse(long, grace=lanes.grace),
            Undo(long),
            shadows,
            Switch(long, shadows),
            Recordings(long),
            Erasures(long),
            Webhooks(engine),
            Cooldowns(engine),
            Costs(engine),
            Books(engine),
        )

    async def ping(self) -> None:
        async with self.engine.connect() as connection:
            await connection.execute(text("SELECT 1"))

    async def now(self) -> datetime:
        async with self.engine.connect() as connection:
            now: datetime = (await connection.execute(select(func.now()))).scalar_one()
            return now

    async def close(self) -> None:
        for engine in {self.engine, self.long, self.inbox_engine}:
            await engine.dispose()
