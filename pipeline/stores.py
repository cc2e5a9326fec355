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
from pipeline.events.cancel import Cancellation
from pipeline.events.dead_letters import DeadLetters
from pipeline.events.store import Events
from pipeline.events.undo import Undo
from pipeline.graph.editing import GraphEditing
from pipeline.graph.export import GraphExport
from pipeline.graph.outbox import GraphOutbox
from pipeline.graph.store import Graph
from pipeline.lanes.accept import Adds
from pipeline.lanes.due import DueLanes
from pipeline.lanes.group_commit import GroupCommit
from pipeline.lanes.leases import LaneLeases
from pipeline.lanes.queue_view import QueueView
from pipeline.lanes.store import Lanes
from pipeline.ledger.disk_space import DiskSpace
from pipeline.ledger.failures import read_only
from pipeline.ledger.fetching import fetch_value
from pipeline.ledger.statistics import Statistics
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
from pipeline.search.words.term_rebuild import TermRebuild
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
from pipeline.versions.as_of import MemoriesAsOf
from pipeline.versions.changes import Changes
from pipeline.versions.restore import Restore
from pipeline.webhooks.store import Webhooks


@dataclass(frozen=True, slots=True)
class Pools:
    """The connection pools of a process.

    `engine`: for short statements. `long`: for operations whose statements take longer the more
    rows they change. `adds`: for adds only, so that no read delays an add. `verifying`: for
    verifications.
    """

    engine: AsyncEngine
    long: AsyncEngine
    adds: AsyncEngine
    verifying: AsyncEngine


class QueueStores:
    """Stores of the queue: lanes, events, the answers of models, webhooks."""

    def __init__(self, pools: Pools, lanes: Lanes, keys: SealKeys, answers_for: timedelta) -> None:
        """`answers_for`: lifetime of the answers of dry runs."""
        engine, long = pools.engine, pools.long
        self.lanes = lanes
        self.leases = LaneLeases(engine, lease=lanes.lease)
        self.due_lanes = DueLanes(engine, lease=lanes.lease, grace=lanes.grace)
        self.queue = QueueView(engine)
        self.group_commit = GroupCommit(Adds(pools.adds, grace=lanes.grace))
        self.events = Events(engine)
        self.cancellation = Cancellation(long, grace=lanes.grace)
        self.dead_letters = DeadLetters(long, keys, grace=lanes.grace)
        self.undo = Undo(long)
        self.answers = Answers(engine)
        self.kept_answers = KeptAnswers(engine, kept_for=answers_for)
        self.recordings = Recordings(long)
        self.circuits = Circuits(engine)
        self.webhooks = Webhooks(engine)


class KnowledgeStores:
    """Stores of memories, turns and the graph, and of what is computed from them."""

    def __init__(self, pools: Pools, grace: timedelta) -> None:
        """`grace`: as that of the lanes."""
        engine, long = pools.engine, pools.long
        self.memories = Memories(engine)
        self.memory_vectors = MemoryVectors(engine)
        self.reads = MemoryReads(engine)
        self.histories = MemoryHistory(engine)
        self.editing = MemoryEditing(engine)
        self.clearing = DeleteByFilter(long, grace=grace)
        self.feedback = Feedback(engine)
        self.accesses = AccessCounts(engine)
        self.versions = MemoriesAsOf(engine)
        self.restores = Restore(engine)
        self.changes = Changes(engine)
        self.user_messages = UserMessages(engine)
        self.turn_vectors = TurnVectors(engine)
        self.graph = Graph(engine)
        self.graph_editing = GraphEditing(engine)
        self.graph_export = GraphExport(engine)
        self.graph_outbox = GraphOutbox(engine, long)
        self.passages = Passages(engine)
        self.term_rebuild = TermRebuild(long)
        self.suggestions = Suggestions(engine)
        self.decisions = Decisions(engine)
        self.conflicts = Conflicts(engine)
        self.curator = CuratorRuns(engine)
        self.summaries = Summaries(engine)
        self.profiles = Profiles(engine)


class AdministrationStores:
    """Stores of the administration: tenants, replays, transfer, erasure, seals, accounting."""

    def __init__(
        self, pools: Pools, grace: timedelta, keys: SealKeys, checkpoint_every: timedelta
    ) -> None:
        """`checkpoint_every`: time between two recorded heads of a project."""
        engine, long = pools.engine, pools.long
        self.owners = Owners(engine)
        self.projects = Projects(engine)
        self.members = Members(engine)
        self.project_deletion = ProjectDeletion(long)
        self.private_runs = PrivateRuns(engine)
        self.keys = ApiKeys(engine)
        self.user_tokens = UserTokens(engine)
        self.console_sessions = ConsoleSessions(engine)
        self.saved_views = SavedViews(engine)
        self.audit = AuditLog(engine)
        self.shadows = Shadows(long, grace=grace)
        self.switch = Switch(long, self.shadows)
        self.indexes = Indexes(long)
        self.export = Export(long)
        self.transfers = Transfers(engine)
        self.erasures = Erasures(long, keys)
        self.seals = Seals(long, keys, reading=pools.verifying, checkpoint_every=checkpoint_every)
        self.costs = Costs(engine)
        self.balance = Balance(engine)
        self.samples = QueueSamples(engine)
        self.statistics = Statistics(long)


class Ledger(QueueStores, KnowledgeStores, AdministrationStores):
    """All stores, and the connection pools that they use."""

    def __init__(
        self,
        pools: Pools,
        lanes: Lanes,
        *,
        answers_for: timedelta = timedelta(hours=1),
        seal_keys: SealKeys | None = None,
        checkpoint_every: timedelta = timedelta(minutes=5),
    ) -> None:
        """Build all stores over these pools.

        `answers_for`: lifetime of the answers of dry runs. `seal_keys`: sign seals.
        `checkpoint_every`: time between two recorded heads of a project.
        """
        keys = seal_keys or SealKeys()
        self.pools, self.engine = pools, pools.engine
        QueueStores.__init__(self, pools, lanes, keys, answers_for)
        KnowledgeStores.__init__(self, pools, lanes.grace)
        AdministrationStores.__init__(self, pools, lanes.grace, keys, checkpoint_every)
        self.disk_space = DiskSpace((pools.engine, pools.long, pools.adds, pools.verifying))

    async def ping(self) -> None:
        """Check that the database answers, and is no standby. Errors: LedgerUnavailable."""
        query = text("SELECT current_setting('transaction_read_only')::boolean")
        if await fetch_value(self.engine, query):
            raise read_only()

    async def now(self) -> datetime:
        """Current time of the database's clock."""
        now: datetime = await fetch_value(self.engine, select(func.now()))
        return now

    async def close(self) -> None:
        """Close all pools."""
        pools = self.pools
        for engine in {pools.engine, pools.long, pools.adds, pools.verifying}:
            await engine.dispose()
