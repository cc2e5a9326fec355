"""The ledger: PostgreSQL, the only truth. All SQL of the project lives in this package."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.ledger.answers import Answers
from pipeline.ledger.books import Books
from pipeline.ledger.clearing import Clearing
from pipeline.ledger.connections import INBOX as INBOX
from pipeline.ledger.connections import LONG as LONG
from pipeline.ledger.connections import connect as connect
from pipeline.ledger.cooldowns import Cooldowns
from pipeline.ledger.costs import Costs
from pipeline.ledger.editing import Editing
from pipeline.ledger.erasure import Erasures
from pipeline.ledger.events import Events
from pipeline.ledger.feedback import Feedback
from pipeline.ledger.graph import Graph
from pipeline.ledger.group_commit import GroupCommit
from pipeline.ledger.histories import Histories
from pipeline.ledger.indexes import Indexes
from pipeline.ledger.keys import ApiKeys
from pipeline.ledger.lanes import Lanes
from pipeline.ledger.members import Members
from pipeline.ledger.memories import Memories
from pipeline.ledger.owners import Owners
from pipeline.ledger.passages import Passages
from pipeline.ledger.projects import Projects
from pipeline.ledger.recordings import Recordings
from pipeline.ledger.recourse import Recourse
from pipeline.ledger.removal import Removal
from pipeline.ledger.shadows import Shadows
from pipeline.ledger.switch import Switch
from pipeline.ledger.turn_vectors import TurnVectors
from pipeline.ledger.undo import Undo
from pipeline.ledger.webhooks import Webhooks


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
