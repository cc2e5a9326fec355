"""The ledger: all its stores, each with its connection pool."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.accounting.balance import Balance
from pipeline.accounting.costs import Costs
from pipeline.accounting.samples import QueueSamples
from pipeline.conflicts.store import Conflicts
from pipeline.curator.store import CuratorRuns
from pipeline.erasure.store import Erasures
from pipeline.events.answers import Answers
from pipeline.events.cancel_and_replay import CancelAndReplay
from pipeline.events.store import Events
from pipeline.events.undo import Undo
from pipeline.graph.editing import GraphEditing
from pipeline.graph.export import GraphExport
from pipeline.graph.outbox import GraphOutbox
from pipeline.graph.store import Graph
from pipeline.lanes.adds import Adds
from pipeline.lanes.due import DueLanes
from pipeline.lanes.group_commit import GroupCommit
from pipeline.lanes.leases import LaneLeases
from pipeline.lanes.queue_view import QueueView
from pipeline.lanes.store import Lanes
from pipeline.memories.accesses import AccessCounts
from pipeline.memories.delete_by_filter import DeleteByFilter
from pipeline.memories.editing import MemoryEditing
from pipeline.memories.feedback import Feedback
from pipeline.memories.history import MemoryHistory
from pipeline.memories.reads import MemoryReads
from pipeline.memories.store import Memories
from pipeline.memories.vectors import MemoryVectors
from pipeline.models.circuits import Circuits
from pipeline.models.kept_answers import KeptAnswers
from pipeline.models.recordings import Recordings
from pipeline.profiles.store import Profiles
from pipeline.reindex.store import Indexes
from pipeline.replays.store import Shadows
from pipeline.replays.switch import Switch
from pipeline.seals.keys import SealKeys
from pipeline.seals.store import Seals
from pipeline.search.store import Passages
from pipeline.search.term_rebuild import TermRebuild
from pipeline.suggestions.decisions import Decisions
from pipeline.suggestions.store import Suggestions
from pipeline.summaries.store import Summaries
from pipeline.tenants.api_keys import ApiKeys
from pipeline.tenants.audit import AuditLog
from pipeline.tenants.console_sessions import ConsoleSessions
from pipeline.tenants.delete_project import ProjectDeletion
from pipeline.tenants.members import Members
from pipeline.tenants.owners import Owners
from pipeline.tenants.private_runs import PrivateRuns
from pipeline.tenants.projects import Projects
from pipeline.tenants.saved_views import SavedViews
from pipeline.tenants.user_tokens import UserTokens
from pipeline.transfer.export import Export
from pipeline.transfer.store import Transfers
from pipeline.turns.user_messages import UserMessages
from pipeline.turns.vectors import TurnVectors
from pipeline.versions.changes import Changes
from pipeline.versions.restore import Restore
from pipeline.versions.store import Versions
from pipeline.webhooks.store import Webhooks


@dataclass(frozen=True, slots=True)
class Ledger:
    """All stores, and the connection pools that they use.

    `engine`: for short statements. `long`: for operations on many rows. `adds_engine`: for adds.
    `verifying`: for verifications.
    """

    engine: AsyncEngine
    long: AsyncEngine
    adds_engine: AsyncEngine
    verifying: AsyncEngine
    lanes: Lanes
    leases: LaneLeases
    due_lanes: DueLanes
    queue: QueueView
    group_commit: GroupCommit
    events: Events
    memories: Memories
    memory_vectors: MemoryVectors
    turn_vectors: TurnVectors
    user_messages: UserMessages
    export: Export
    transfers: Transfers
    histories: MemoryHistory
    versions: Versions
    restores: Restore
    changes: Changes
    editing: MemoryEditing
    clearing: DeleteByFilter
    feedback: Feedback
    accesses: AccessCounts
    reads: MemoryReads
    answers: Answers
    owners: Owners
    private_runs: PrivateRuns
    passages: Passages
    term_rebuild: TermRebuild
    indexes: Indexes
    graph: Graph
    graph_editing: GraphEditing
    graph_export: GraphExport
    graph_outbox: GraphOutbox
    projects: Projects
    keys: ApiKeys
    console_sessions: ConsoleSessions
    user_tokens: UserTokens
    audit: AuditLog
    saved_views: SavedViews
    members: Members
    project_deletion: ProjectDeletion
    cancel_and_replay: CancelAndReplay
    undo: Undo
    suggestions: Suggestions
    decisions: Decisions
    curator: CuratorRuns
    summaries: Summaries
    profiles: Profiles
    conflicts: Conflicts
    shadows: Shadows
    switch: Switch
    recordings: Recordings
    kept_answers: KeptAnswers
    seals: Seals
    erasures: Erasures
    webhooks: Webhooks
    circuits: Circuits
    costs: Costs
    balance: Balance
    samples: QueueSamples

    @classmethod
    def of(
        cls,
        engine: AsyncEngine,
        lanes: Lanes,
        *,
        adds: AsyncEngine | None = None,
        long: AsyncEngine | None = None,
        answers_for: timedelta = timedelta(hours=1),
        seal_keys: SealKeys | None = None,
        verifying: AsyncEngine | None = None,
        checkpoint_every: timedelta = timedelta(minutes=5),
    ) -> Ledger:
        """Build all stores over these pools.

        `adds`: pool for adds only, so that no read delays an add. `long`: pool for operations
        whose statements take longer the more rows they change. Default for both: `engine`.
        `answers_for`: lifetime of the answers of dry runs. `seal_keys`: sign
        seals. `verifying`: pool of verifications. `checkpoint_every`: time between two recorded
        heads of a project.
        """
        adds, long, keys = adds or engine, long or engine, seal_keys or SealKeys()
        shadows = Shadows(long, grace=lanes.grace)
        return cls(
            engine=engine,
            long=long,
            adds_engine=adds,
            verifying=verifying or engine,
            lanes=lanes,
            leases=LaneLeases(engine, lease=lanes.lease),
            due_lanes=DueLanes(engine, lease=lanes.lease, grace=lanes.grace),
            queue=QueueView(engine),
            group_commit=GroupCommit(Adds(adds, grace=lanes.grace)),
            events=Events(engine),
            memories=Memories(engine),
            memory_vectors=MemoryVectors(engine),
            turn_vectors=TurnVectors(engine),
            user_messages=UserMessages(engine),
            export=Export(long),
            transfers=Transfers(engine),
            histories=MemoryHistory(engine),
            versions=Versions(engine),
            restores=Restore(engine),
            changes=Changes(engine),
            editing=MemoryEditing(engine),
            clearing=DeleteByFilter(long, grace=lanes.grace),
            feedback=Feedback(engine),
            accesses=AccessCounts(engine),
            reads=MemoryReads(engine),
            answers=Answers(engine),
            owners=Owners(engine),
            private_runs=PrivateRuns(engine),
            passages=Passages(engine),
            term_rebuild=TermRebuild(long),
            indexes=Indexes(long),
            graph=Graph(engine),
            graph_editing=GraphEditing(engine),
            graph_export=GraphExport(engine),
            graph_outbox=GraphOutbox(engine, long),
            projects=Projects(engine),
            keys=ApiKeys(engine),
            console_sessions=ConsoleSessions(engine),
            user_tokens=UserTokens(engine),
            audit=AuditLog(engine),
            saved_views=SavedViews(engine),
            members=Members(engine),
            project_deletion=ProjectDeletion(long),
            cancel_and_replay=CancelAndReplay(long, keys, grace=lanes.grace),
            suggestions=Suggestions(engine),
            decisions=Decisions(engine),
            curator=CuratorRuns(engine),
            summaries=Summaries(engine),
            profiles=Profiles(engine),
            conflicts=Conflicts(engine),
            undo=Undo(long),
            shadows=shadows,
            switch=Switch(long, shadows),
            recordings=Recordings(long),
            seals=Seals(long, keys, reading=verifying or engine, checkpoint_every=checkpoint_every),
            kept_answers=KeptAnswers(engine, kept_for=answers_for),
            erasures=Erasures(long, keys),
            webhooks=Webhooks(engine),
            circuits=Circuits(engine),
            costs=Costs(engine),
            balance=Balance(engine),
            samples=QueueSamples(engine),
        )

    async def ping(self) -> None:
        """Check that the database answers."""
        async with self.engine.connect() as connection:
            await connection.execute(text("SELECT 1"))

    async def now(self) -> datetime:
        """Current time of the database's clock."""
        async with self.engine.connect() as connection:
            now: datetime = (await connection.execute(select(func.now()))).scalar_one()
            return now

    async def close(self) -> None:
        """Close all pools."""
        for engine in {self.engine, self.long, self.adds_engine, self.verifying}:
            await engine.dispose()
