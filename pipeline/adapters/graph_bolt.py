"""The GraphMirror port over Bolt, with the official driver `neo4j`, for servers that speak Cypher.

The statements keep to what Neo4j 5 and Memgraph have in common; constraints and indexes differ.
Each entity is a node `MemlaneEntity`, and each relation an edge `RELATES_TO` between the
entities that its fact names. Merged entities have the same `root`. Times are ISO 8601 texts in UTC
of one length, so they compare as texts on every server. Each statement compares the project.

The node `MemlaneWriter` has the token of the last claim. Every writing transaction first changes
this node, so it waits for or collides with a claim at the same time, and then compares the token.

Tested against a real server: ArcadeDB 26.10, whose Bolt and Cypher are compatible with Neo4j's. Not
tried on Neo4j or Memgraph.
Source: the manuals of Neo4j 5 and Memgraph, and Memgraph's grammar of Cypher.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import Any, LiteralString, TypeVar
from uuid import UUID, uuid4

from neo4j import AsyncDriver, AsyncGraphDatabase, AsyncManagedTransaction, Query, unit_of_work
from neo4j.exceptions import ClientError, DriverError, Neo4jError

from pipeline.domain.errors import StoreUnavailable
from pipeline.graph.ports import MirrorChanges, MirrorEdge, MirrorNode, WalkRequest
from pipeline.graph.views import GraphTimes

T = TypeVar("T")
Statement = LiteralString

# A write that the server rolled back is tried once more, after about a second; no read is, because
# a search waits for it.
RETRY_S = 1.0
CONNECTIONS = 20
WIPED_AT_ONCE = 5_000
# Later than every time: takes the place of a time that is not given.
NEVER = "9999-12-31T23:59:59.999999+00:00"

NEO4J_SCHEMA: Sequence[Statement] = (
    "CREATE CONSTRAINT memlane_entity_id IF NOT EXISTS"
    " FOR (n:MemlaneEntity) REQUIRE n.id IS UNIQUE",
    "CREATE INDEX memlane_entity_root IF NOT EXISTS FOR (n:MemlaneEntity) ON (n.root)",
    "CREATE INDEX memlane_entity_key IF NOT EXISTS FOR (n:MemlaneEntity) ON (n.key)",
)
# Memgraph has no IF NOT EXISTS; what exists already is a notification, not an error. Its constraint
# makes no index.
MEMGRAPH_SCHEMA: Sequence[Statement] = (
    "CREATE CONSTRAINT ON (n:MemlaneEntity) ASSERT n.id IS UNIQUE",
    "CREATE INDEX ON :MemlaneEntity(id)",
    "CREATE INDEX ON :MemlaneEntity(root)",
    "CREATE INDEX ON :MemlaneEntity(key)",
)
DELETE_EDGES: Statement = """
UNWIND $rows AS row
MATCH (:MemlaneEntity {id: row.source})-[r:RELATES_TO {id: row.id}]->()
WHERE r.project = row.project
DELETE r
"""
DELETE_NODES: Statement = """
UNWIND $rows AS row
MATCH (n:MemlaneEntity {id: row.id})
WHERE n.project = row.project
DETACH DELETE n
"""
# Ids are unique over all projects.
WRITE_NODES: Statement = """
UNWIND $rows AS row
MERGE (n:MemlaneEntity {id: row.id})
SET n = row
"""
WRITE_EDGES: Statement = """
UNWIND $rows AS row
MATCH (s:MemlaneEntity {id: row.source})
MATCH (d:MemlaneEntity {id: row.destination})
WHERE s.project = row.project AND d.project = row.project
MERGE (s)-[r:RELATES_TO {id: row.id}]->(d)
SET r = row
"""
# A server without a constraint may have two of these nodes after two first claims at once; the next
# claim changes both.
CLAIM: Statement = """
MERGE (w:MemlaneWriter {id: 'graph'})
SET w.token = $token, w.writes = 0
"""
LOCK_WRITER: Statement = """
MATCH (w:MemlaneWriter {id: 'graph'})
SET w.writes = w.writes + 1
"""
READ_WRITER: Statement = "MATCH (w:MemlaneWriter {id: 'graph'}) RETURN w.token AS token"
WIPE: Statement = """
MATCH (n:MemlaneEntity) WITH n LIMIT $limit
DETACH DELETE n
RETURN count(*) AS count
"""
COUNT_NODES: Statement = "MATCH (n:MemlaneEntity) RETURN count(n) AS count"
COUNT_EDGES: Statement = "MATCH (:MemlaneEntity)-[r:RELATES_TO]->() RETURN count(r) AS count"
ROOTS_BY_NAME: Statement = """
UNWIND $keys AS key
MATCH (n:MemlaneEntity {key: key})
WHERE n.project = $project
RETURN DISTINCT n.root AS root
"""
ROOTS_BY_ID: Statement = """
UNWIND $ids AS id
MATCH (n:MemlaneEntity {id: id})
WHERE n.project = $project AND n.lane IN $lanes
RETURN DISTINCT n.root AS root
"""
# One hop from each root: its newest relations, and the roots at their other ends. As at_times.sql:
# without a time the current ones, else those that Memlane knew and that held then. `past`: the
# number of the end that was known at `as_of`, if it was withdrawn or changed later.
STEPS: Statement = """
UNWIND $roots AS root
MATCH (n:MemlaneEntity {root: root})-[r:RELATES_TO]-(far:MemlaneEntity)
WHERE n.project = $project AND n.lane IN $lanes AND r.project = $project
  AND (CASE WHEN $current THEN r.expired_at IS NULL
       ELSE r.created_at <= $known AND r.valid_from <= $valid END)
WITH root, r, far, CASE WHEN r.past_replaced IS NULL THEN null
     ELSE head([i IN range(0, size(r.past_replaced) - 1) WHERE r.past_replaced[i] > $as_of]) END
     AS past
WITH root, r, far,
     CASE WHEN past IS NULL THEN r.expired_at ELSE r.past_expired[past] END AS expired_at,
     CASE WHEN past IS NULL THEN r.valid_to ELSE r.past_valid_to[past] END AS valid_to
WHERE $current OR expired_at IS NULL OR expired_at > $as_of OR valid_to > $valid
WITH root, r, far ORDER BY r.valid_from DESC, r.id
WITH root, collect([r.id, far.root]) AS steps
RETURN root, steps[0..$most] AS steps
"""


class BoltGraph:
    """The GraphMirror port on a graph server."""

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        timeout_s: float = 5.0,
    ) -> None:
        """`database`: None for the default one. `timeout_s`: of a connection or transaction."""
        self._url = url
        self._auth = (user, password or "") if user else None
        self._database = database
        self._timeout_s = timeout_s
        self._token: str | None = None

    @property
    def name(self) -> str:
        """Address of the server and database, without credentials."""
        return f"{self._url}/{self._database or ''}"

    @cached_property
    def _driver(self) -> AsyncDriver:
        """The driver, created at the first request: it belongs to the running event loop."""
        return AsyncGraphDatabase.driver(
            self._url,
            auth=self._auth,
            connection_timeout=self._timeout_s,
            connection_acquisition_timeout=self._timeout_s,
            max_connection_pool_size=CONNECTIONS,
            notifications_min_severity="OFF",
        )

    async def close(self) -> None:
        """Close all connections."""
        if "_driver" in vars(self):
            await self._driver.close()

    async def ping(self) -> None:
        """Check that the server answers. Errors: StoreUnavailable."""
        await self._guarded(self._autocommit("RETURN 1 AS one"))

    async def prepare(self) -> None:
        """Create the constraints and indexes, in the words of the server."""
        agent = await self._guarded(self._autocommit("RETURN 1 AS one"))
        schemas = [NEO4J_SCHEMA, MEMGRAPH_SCHEMA]
        # Newer versions of Memgraph accept Neo4j's words too, but index no constraint.
        first, second = schemas[::-1] if "Memgraph" in agent else schemas
        try:
            await self._create(first)
        except ClientError as error:
            try:
                await self._create(second)
            except ClientError:
                raise _unavailable(error) from error

    async def _create(self, schema: Sequence[Statement]) -> None:
        """Run the commands. Errors: ClientError if the server refuses one; StoreUnavailable."""
        try:
            for command in schema:
                await self._autocommit(command)
        except ClientError:
            raise
        except (DriverError, Neo4jError, OSError) as error:
            raise _unavailable(error) from error

    async def claim(self) -> None:
        """Make this object the only writer, by a new token."""
        token = str(uuid4())

        async def work(transaction: AsyncManagedTransaction) -> None:
            await (await transaction.run(CLAIM, token=token)).consume()

        await self._transact(work, write=True)
        self._token = token

    async def write(self, changes: MirrorChanges) -> None:
        """Store the changes in one transaction: deletions first, then entities, then relations."""
        steps: Sequence[tuple[Statement, list[dict[str, Any]]]] = (
            (DELETE_EDGES, [_ids(r.id, r.project_id, r.source_id) for r in changes.gone_edges]),
            (DELETE_NODES, [_ids(row.id, row.project_id) for row in changes.gone_nodes]),
            (WRITE_NODES, [_node(node) for node in changes.nodes]),
            (WRITE_EDGES, [_edge(edge) for edge in changes.edges]),
        )

        async def work(transaction: AsyncManagedTransaction) -> None:
            await self._check_claim(transaction)
            for command, rows in steps:
                if rows:
                    result = await transaction.run(command, rows=rows)
                    await result.consume()

        await self._transact(work, write=True)

    async def wipe(self) -> None:
        """Delete all entities and relations of Memlane, in many transactions."""

        async def work(transaction: AsyncManagedTransaction) -> int:
            await self._check_claim(transaction)
            rows = await _read(transaction, WIPE, limit=WIPED_AT_ONCE)
            return int(rows[0]["count"])

        while await self._transact(work, write=True):
            pass

    async def _check_claim(self, transaction: AsyncManagedTransaction) -> None:
        """Check that the last claim is this object's. Errors: StoreUnavailable."""
        # Two statements, because a lock is taken only by the change.
        await (await transaction.run(LOCK_WRITER)).consume()
        tokens = [row["token"] for row in await _read(transaction, READ_WRITER)]
        if not tokens or any(token != self._token for token in tokens):
            raise StoreUnavailable("Another process writes to the graph server.")

    async def counts(self) -> tuple[int, int]:
        """Numbers of entities and relations."""

        async def work(transaction: AsyncManagedTransaction) -> tuple[int, int]:
            nodes = await _read(transaction, COUNT_NODES)
            edges = await _read(transaction, COUNT_EDGES)
            return nodes[0]["count"], edges[0]["count"]

        return await self._transact(work)

    async def walk(self, request: WalkRequest) -> list[Sequence[UUID]]:
        """Paths of relations, as their ids, hop by hop in one transaction."""
        return await self._transact(lambda transaction: _walk(transaction, request))

    async def _transact(
        self, work: Callable[[AsyncManagedTransaction], Awaitable[T]], *, write: bool = False
    ) -> T:
        """Run a transaction. Errors: StoreUnavailable."""
        limited = unit_of_work(timeout=self._timeout_s)(work)
        retry_s = RETRY_S if write else 0.0

        async def run() -> T:
            async with self._driver.session(
                database=self._database, max_transaction_retry_time=retry_s
            ) as session:
                return await (session.execute_write if write else session.execute_read)(limited)

        return await self._guarded(run())

    async def _autocommit(self, command: Statement) -> str:
        """Run a command in a transaction of its own, which changes of the schema need.

        Returns the name of the server's product.
        """
        async with self._driver.session(database=self._database) as session:
            result = await session.run(Query(command, timeout=self._timeout_s))
            return (await result.consume()).server.agent

    async def _guarded(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except (DriverError, Neo4jError, OSError) as error:
            raise _unavailable(error) from error


@dataclass(frozen=True, slots=True)
class _Path:
    """Ids of the relations of a path, and of the roots that it meets."""

    relations: tuple[str, ...]
    roots: tuple[str, ...]


async def _walk(transaction: AsyncManagedTransaction, request: WalkRequest) -> list[Sequence[UUID]]:
    """Paths in the order of their length. Each hop is one statement for all paths."""
    paths = [_Path((), (root,)) for root in await _roots(transaction, request)]
    complete: list[_Path] = []
    for _ in range(request.hops):
        if not paths or len(complete) >= request.most:
            break
        steps = await _steps(transaction, request, {path.roots[-1] for path in paths})
        longer = (
            _Path((*path.relations, relation), (*path.roots, far))
            for path in paths
            for relation, far in _unmet(path, steps.get(path.roots[-1], ()), request.fan)
        )
        paths = list(islice(longer, request.most - len(complete)))
        complete += paths
    return [[UUID(relation) for relation in path.relations] for path in complete]


async def _roots(transaction: AsyncManagedTransaction, request: WalkRequest) -> list[str]:
    """Roots of the entities at which paths start."""
    lanes, project = [str(lane_id) for lane_id in request.lanes], str(request.project_id)
    rows: list[dict[str, Any]] = []
    if request.names:
        keys = [f"{lane}/{name}" for lane in lanes for name in request.names]
        rows += await _read(transaction, ROOTS_BY_NAME, keys=keys, project=project)
    if request.ids:
        ids = [str(node_id) for node_id in request.ids]
        rows += await _read(transaction, ROOTS_BY_ID, ids=ids, lanes=lanes, project=project)
    return list(dict.fromkeys(row["root"] for row in rows))


async def _steps(
    transaction: AsyncManagedTransaction, request: WalkRequest, roots: set[str]
) -> Mapping[str, Sequence[tuple[str, str]]]:
    """The newest relations of each root, with the roots at their other ends."""
    rows = await _read(
        transaction,
        STEPS,
        roots=sorted(roots),
        project=str(request.project_id),
        lanes=[str(lane_id) for lane_id in request.lanes],
        most=2 * request.fan,
        **_times(request.times),
    )
    return {row["root"]: row["steps"] for row in rows}


def _unmet(path: _Path, steps: Sequence[tuple[str, str]], fan: int) -> Sequence[tuple[str, str]]:
    """The first steps to roots that the path has not met."""
    return [(relation, far) for relation, far in steps if far not in path.roots][:fan]


async def _read(
    transaction: AsyncManagedTransaction, command: Statement, **values: Any
) -> list[dict[str, Any]]:
    result = await transaction.run(command, **values)
    return await result.data()


def _times(times: GraphTimes) -> dict[str, Any]:
    return {
        "current": times.as_of is None and times.valid_at is None,
        "known": _text(times.as_of) or NEVER,
        "as_of": _text(times.as_of) or NEVER,
        "valid": _text(times.valid_at) or NEVER,
    }


def _node(node: MirrorNode) -> dict[str, Any]:
    """Properties of an entity."""
    return _given(
        id=str(node.id),
        project=str(node.project_id),
        lane=str(node.lane_id),
        root=str(node.root),
        merged_into=str(node.merged_into) if node.merged_into else None,
        # The lane and the name under which a walk finds it: no index spans several tenants.
        key=f"{node.lane_id}/{node.plain}",
        name=node.name,
        kind=node.kind,
        qualifier=node.qualifier,
    )


def _edge(edge: MirrorEdge) -> dict[str, Any]:
    """Properties of a relation. A server stores no list of maps, and no null in a list."""
    ends = edge.past_ends or ()
    return _given(
        id=str(edge.id),
        project=str(edge.project_id),
        source=str(edge.source_id),
        destination=str(edge.destination_id),
        relation=edge.relation,
        valid_from=_text(edge.valid_from),
        valid_to=_text(edge.valid_to),
        created_at=_text(edge.created_at),
        expired_at=_text(edge.expired_at),
        past_expired=[_utc(end["expired_at"]) for end in ends] or None,
        # Empty for an end without a time in the world: the relation held at no time.
        past_valid_to=[_utc(end["valid_to"]) or "" for end in ends] or None,
        past_replaced=[_utc(end["replaced_at"]) for end in ends] or None,
        event=str(edge.event_id),
        memory=str(edge.memory_id) if edge.memory_id else None,
    )


def _ids(id: UUID, project_id: UUID, source_id: UUID | None = None) -> dict[str, Any]:
    return {"id": str(id), "project": str(project_id), "source": str(source_id)}


def _given(**values: Any) -> dict[str, Any]:
    """The values that are given: a server stores no property without one."""
    return {name: value for name, value in values.items() if value is not None}


def _text(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat(timespec="microseconds") if moment else None


def _utc(moment: str | None) -> str | None:
    return _text(datetime.fromisoformat(moment)) if moment else None


def _unavailable(error: Exception) -> StoreUnavailable:
    """The error without its message, which may quote names of entities."""
    code = getattr(error, "code", None) or type(error).__name__
    return StoreUnavailable(f"The graph server does not answer: {code}.")
