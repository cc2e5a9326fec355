"""Contract of GraphIndex: PostgreSQL, and a real graph server with Bolt that mirrors it.

`--bolt` runs the part of the graph server against another one, such as Neo4j or Memgraph.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from neo4j import AsyncManagedTransaction
from sqlalchemy import delete, insert, text, update
from sqlalchemy.dialects import postgresql

from deploy.stack import ports
from pipeline.adapters.graph_bolt import BoltGraph
from pipeline.domain.errors import StoreUnavailable
from pipeline.domain.tenants import ProjectId
from pipeline.graph.mirror import Mirroring
from pipeline.graph.path_search import LedgerPathSearch, MirroredPathSearch
from pipeline.graph.ports import GraphIndex, MirrorChanges, MirrorEdge, MirrorNode, WalkRequest
from pipeline.graph.views import GraphTimes
from pipeline.ledger.tables import entities, graph_mirrors, graph_outbox, lanes, relations
from pipeline.stores import Ledger
from tests.support.bolt_server import BoltAddress

JANUARY, MARCH, MAY, JULY = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 3, 5, 7))


@dataclass
class Graphs:
    """A ledger with graphs of several scopes, and the index over it."""

    ledger: Ledger
    index: GraphIndex
    mirroring: Mirroring | None
    project_id: ProjectId = field(default_factory=lambda: ProjectId(uuid4()))
    lane_id: UUID = field(default_factory=uuid4)
    ids: dict[str, UUID] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)

    def of(self, *, project_id: ProjectId | None = None) -> Graphs:
        """Another scope of the same project, or of another one."""
        return replace(
            self,
            project_id=project_id or self.project_id,
            lane_id=uuid4(),
            ids={},
            names=self.names,
        )

    async def draw(self, *edges: str, **values: Any) -> None:
        """Store relations such as "Ines works_at Bosch", and entities that are missing.

        Later relations are newer.
        """
        for number, edge in enumerate(edges):
            source, relation, destination = edge.split()
            row: dict[str, Any] = {
                "id": uuid4(),
                "project_id": self.project_id,
                "lane_id": self.lane_id,
                "source_id": await self.entity(source),
                "relation": relation,
                "destination_id": await self.entity(destination),
                "event_id": uuid4(),
                "valid_from": JANUARY + timedelta(minutes=number),
                "created_at": JANUARY,
            }
            row |= values
            self.ids[edge], self.names[row["id"]] = row["id"], edge
            await self.run(insert(relations).values(row))

    async def entity(self, name: str) -> UUID:
        """The id of an entity, which is stored if it is missing."""
        if name not in self.ids:
            self.ids[name] = uuid4()
            ids = {"project_id": self.project_id, "lane_id": self.lane_id}
            lane = {"id": self.lane_id, "project_id": self.project_id, "state": "IDLE"}
            await self.run(postgresql.insert(lanes).values(lane).on_conflict_do_nothing())
            row = ids | {"id": self.ids[name], "name": name, "kind": "thing"}
            plain = {"name_key": name.casefold(), "plain_name": name.casefold()}
            await self.run(insert(entities).values(row | plain))
        return self.ids[name]

    async def run(self, *statements: Any) -> None:
        async with self.ledger.engine.begin() as connection:
            for statement in statements:
                await connection.execute(statement)

    async def merge(self, name: str, into: str | None) -> None:
        """Merge an entity into another one; None takes the merge back."""
        root = self.ids[into] if into else None
        mine = entities.c.id == self.ids[name]
        await self.run(update(entities).where(mine).values(root_id=root, merged_into=root))

    async def walk(self, *names: str, hops: int = 1, **request: Any) -> list[str]:
        """Paths as texts, after every change has reached the index."""
        if self.mirroring:
            await self.mirroring.catch_up()
        return await self.read(*names, hops=hops, **request)

    async def read(self, *names: str, hops: int = 1, **request: Any) -> list[str]:
        usual = WalkRequest(self.project_id, [self.lane_id], hops, fan=30, most=100, names=names)
        paths = await self.index.walk(replace(usual, **request))
        return [" > ".join(self.names[relation_id] for relation_id in path) for path in paths]


@pytest.fixture(params=["postgresql", "bolt"])
async def graphs(ledger: Ledger, request: pytest.FixtureRequest) -> AsyncIterator[Graphs]:
    if request.param == "postgresql":
        yield Graphs(ledger, LedgerPathSearch(ledger.engine), None)
        return
    server: BoltGraph = request.getfixturevalue("bolt").connect()
    yield Graphs(ledger, server, Mirroring(server, ledger.graph_outbox))
    await server.claim()
    await server.wipe()
    await server.close()


@pytest.fixture
async def mirrored(ledger: Ledger, bolt: BoltAddress) -> AsyncIterator[Graphs]:
    """The index as searches use it with a graph server: the server, or the ledger."""
    server = bolt.connect()
    walks = MirroredPathSearch(server, ledger.graph_outbox, LedgerPathSearch(ledger.engine))
    yield Graphs(ledger, walks, Mirroring(server, ledger.graph_outbox))
    await server.claim()
    await server.wipe()
    await server.close()


FAMILY = ("User has_sister Ines", "Ines works_at Bosch", "Bosch located_in Stuttgart")


async def test_paths_lead_from_a_name_over_up_to_three_relations(graphs: Graphs) -> None:
    await graphs.draw(*FAMILY, "Stuttgart located_in Germany")
    assert await graphs.walk("user") == ["User has_sister Ines"]
    three = await graphs.walk("user", hops=3)
    assert three == [FAMILY[0], " > ".join(FAMILY[:2]), " > ".join(FAMILY)]
    assert await graphs.walk("unknown", hops=3) == []
    assert await graphs.walk(hops=3) == []


async def test_relations_are_followed_in_both_directions(graphs: Graphs) -> None:
    await graphs.draw(*FAMILY)
    assert await graphs.walk("stuttgart", hops=2) == [FAMILY[2], f"{FAMILY[2]} > {FAMILY[1]}"]


async def test_a_walk_starts_at_ids_too(graphs: Graphs) -> None:
    await graphs.draw(*FAMILY)
    assert await graphs.walk(ids=[graphs.ids["Bosch"]]) == [FAMILY[2], FAMILY[1]]
    assert await graphs.walk(ids=[uuid4()]) == []


async def test_no_path_meets_an_entity_twice(graphs: Graphs) -> None:
    await graphs.draw("A likes B", "B likes A", "B likes C", "C likes A", "A likes A")
    ends = await graphs.walk("a", hops=3)
    assert all(path.count("likes") <= 2 for path in ends)
    assert sorted(await graphs.walk("c", hops=1)) == ["B likes C", "C likes A"]


async def test_the_newest_relations_of_an_entity_are_followed(graphs: Graphs) -> None:
    await graphs.draw(*(f"A likes T{number}" for number in range(9)))
    assert await graphs.walk("a", fan=3) == ["A likes T8", "A likes T7", "A likes T6"]
    assert len(await graphs.walk("a", most=5)) == 5


async def test_the_paths_are_limited_and_the_nearest_come_first(graphs: Graphs) -> None:
    await graphs.draw(*(f"A likes T{n}" for n in range(3)), *(f"T0 likes U{n}" for n in range(3)))
    paths = await graphs.walk("a", hops=2, most=4)
    assert ([path.count(">") for path in paths], len(set(paths))) == ([0, 0, 0, 1], 4)


async def test_scopes_and_projects_are_apart(graphs: Graphs) -> None:
    await graphs.draw("User likes Jazz")
    other = graphs.of()
    await other.draw("User likes Blues")
    foreign = graphs.of(project_id=ProjectId(uuid4()))
    await foreign.draw("User likes Techno")
    assert await graphs.walk("user", hops=3) == ["User likes Jazz"]
    both = [graphs.lane_id, other.lane_id]
    assert sorted(await graphs.walk("user", lanes=both)) == ["User likes Blues", "User likes Jazz"]
    ids = [foreign.ids["User"], other.ids["User"]]
    assert await graphs.walk(ids=ids) == []


@pytest.mark.parametrize("graphs", ["bolt"], indirect=True)
async def test_the_project_is_compared_even_with_a_lane_of_another_one(graphs: Graphs) -> None:
    foreign = graphs.of(project_id=ProjectId(uuid4()))
    await foreign.draw("User likes Techno")
    lanes_of_both = [graphs.lane_id, foreign.lane_id]
    assert await graphs.walk("user", lanes=lanes_of_both) == []
    assert await graphs.walk(lanes=lanes_of_both, ids=[foreign.ids["User"]]) == []
    assert await foreign.walk("user") == ["User likes Techno"]


@pytest.mark.parametrize(
    ("as_of", "valid_at", "expected"),
    [
        (None, None, {"A works_at New"}),
        (None, MARCH, {"A works_at Old"}),
        (None, JULY, {"A works_at New"}),
        (None, JANUARY - timedelta(days=1), set()),
        # The change of May became known in July only.
        (JANUARY + timedelta(days=1), None, {"A works_at Old"}),
        (MAY + timedelta(days=1), None, {"A works_at Old"}),
        (MAY + timedelta(days=1), MAY + timedelta(days=1), {"A works_at Old"}),
        (JULY + timedelta(days=1), None, {"A works_at New"}),
        (JULY + timedelta(days=1), MARCH, {"A works_at Old"}),
        (JULY + timedelta(days=1), MAY + timedelta(days=1), {"A works_at New"}),
        (JANUARY - timedelta(days=1), None, set()),
    ],
)
async def test_both_clocks_are_read(
    graphs: Graphs, as_of: datetime | None, valid_at: datetime | None, expected: set[str]
) -> None:
    ended = {"valid_from": JANUARY, "valid_to": MAY, "expired_at": JULY}
    await graphs.draw("A works_at Old", created_at=JANUARY, **ended)
    await graphs.draw("A works_at New", created_at=JULY, valid_from=MAY)
    times = GraphTimes(as_of, valid_at)
    assert set(await graphs.walk("a", times=times)) == expected


async def test_merged_entities_are_one_until_the_merge_is_taken_back(graphs: Graphs) -> None:
    await graphs.draw("User knows Bob", "Robert likes Jazz", "Bobby likes Tea")
    apart = await graphs.walk("bob", hops=2)
    await graphs.merge("Robert", "Bob")
    await graphs.merge("Bobby", "Bob")
    together = {"User knows Bob", "Robert likes Jazz", "Bobby likes Tea"}
    assert set(await graphs.walk("bob")) == set(await graphs.walk("robert")) == together
    assert set(await graphs.walk(ids=[graphs.ids["Bobby"]])) == together
    assert "User knows Bob > Robert likes Jazz" in await graphs.walk("user", hops=2)
    await graphs.merge("Robert", None)
    await graphs.merge("Bobby", None)
    assert await graphs.walk("bob", hops=2) == apart


async def test_a_renamed_entity_is_found_by_its_new_name_only(graphs: Graphs) -> None:
    await graphs.draw(*FAMILY)
    await graphs.walk("ines")
    renamed = {"name": "Nes", "plain_name": "nes"}
    await graphs.run(update(entities).where(entities.c.id == graphs.ids["Ines"]).values(renamed))
    assert await graphs.walk("ines") == []
    assert len(await graphs.walk("nes")) == 2


async def test_a_relation_that_ends_stays_for_earlier_times(graphs: Graphs) -> None:
    await graphs.draw("A works_at Old")
    assert await graphs.walk("a") == ["A works_at Old"]
    ended = {"expired_at": JULY, "valid_to": MAY}
    await graphs.run(update(relations).values(ended))
    assert await graphs.walk("a") == []
    assert await graphs.walk("a", times=GraphTimes(valid_at=MARCH)) == ["A works_at Old"]
    await graphs.run(update(relations).values(expired_at=None, valid_to=None))
    assert await graphs.walk("a") == ["A works_at Old"]


async def test_an_end_that_is_withdrawn_stays_for_the_time_between(graphs: Graphs) -> None:
    await graphs.draw("A works_at Old", created_at=JANUARY)
    await graphs.run(update(relations).values(expired_at=MARCH, valid_to=MARCH))
    await graphs.run(update(relations).values(expired_at=None, valid_to=None))
    between = MARCH + timedelta(days=1)
    assert await graphs.walk("a", times=GraphTimes(as_of=between)) == []
    for times in (
        GraphTimes(),
        GraphTimes(as_of=JANUARY + timedelta(days=1)),
        GraphTimes(valid_at=MAY),
        GraphTimes(as_of=between, valid_at=JANUARY + timedelta(days=1)),
    ):
        assert await graphs.walk("a", times=times) == ["A works_at Old"]
    assert await graphs.walk("a", times=GraphTimes(as_of=between, valid_at=MAY)) == []


async def test_deleted_rows_are_found_no_more(graphs: Graphs) -> None:
    await graphs.draw(*FAMILY)
    await graphs.walk("user")
    sister = graphs.ids[FAMILY[0]]
    await graphs.run(delete(relations).where(relations.c.id == sister))
    assert await graphs.walk("user", hops=3) == []
    assert await graphs.walk("ines", hops=2) == [FAMILY[1], f"{FAMILY[1]} > {FAMILY[2]}"]
    await graphs.run(delete(relations), delete(entities))
    assert await graphs.walk("ines", hops=2) == []


async def test_a_relation_that_moves_leaves_its_former_entities(graphs: Graphs) -> None:
    """A switched replay moves relations to the entities of the scope."""
    await graphs.draw("A likes B", "C likes D", "E likes F")
    await graphs.walk("a")
    for edge, source, destination in (("A likes B", "C", "D"), ("E likes F", "E", "D")):
        moved = {"source_id": graphs.ids[source], "destination_id": graphs.ids[destination]}
        mine = relations.c.id == graphs.ids[edge]
        await graphs.run(update(relations).where(mine).values(moved | {"relation": "sees"}))
    assert await graphs.walk("a") == await graphs.walk("b") == await graphs.walk("f") == []
    assert set(await graphs.walk("c")) == {"A likes B", "C likes D"}
    assert set(await graphs.walk("d")) == {"A likes B", "C likes D", "E likes F"}


# ── the mirror ───────────────────────────────────────────────────────────────────────────────────


async def count(ledger: Ledger) -> int:
    async with ledger.engine.connect() as connection:
        rows = await connection.execute(text("SELECT count(*) FROM graph_outbox"))
        return int(rows.scalar_one())


async def test_without_a_graph_server_nothing_is_queued(ledger: Ledger) -> None:
    graphs = Graphs(ledger, LedgerPathSearch(ledger.engine), None)
    await graphs.draw(*FAMILY)
    await graphs.run(delete(relations), delete(entities))
    assert await count(ledger) == 0


async def test_a_new_server_gets_what_the_ledger_had_before(mirrored: Graphs) -> None:
    await mirrored.draw(*FAMILY)
    mirroring = mirrored.mirroring
    assert mirroring is not None
    assert await mirroring.catch_up() == 7
    assert await mirroring.mirror.counts() == (4, 3)
    assert await mirroring.catch_up() == 0
    assert await mirroring.rebuild() == 7
    assert await mirroring.mirror.counts() == (4, 3)


async def test_a_change_is_found_before_and_after_the_server_has_it(mirrored: Graphs) -> None:
    await mirrored.walk()
    await mirrored.draw(*FAMILY)
    outbox = mirrored.ledger.graph_outbox
    assert await mirrored.read("user") == [FAMILY[0]]
    assert await outbox.lag_s() > 0
    assert await mirrored.walk("user", hops=2) == [FAMILY[0], " > ".join(FAMILY[:2])]
    assert (await outbox.lag_s(), await count(mirrored.ledger)) == (0.0, 0)


async def test_changes_wait_for_a_server_that_is_down(mirrored: Graphs) -> None:
    await mirrored.draw("User likes Jazz")
    assert await mirrored.walk("user") == ["User likes Jazz"]
    mirroring = mirrored.mirroring
    assert mirroring is not None
    up, quiet = mirroring.mirror, mirrored.of()
    down = BoltGraph(f"bolt://127.0.0.1:{ports.choose()}", timeout_s=1.0)
    outbox, ledger_walks = mirrored.ledger.graph_outbox, LedgerPathSearch(mirrored.ledger.engine)
    await mirrored.run(update(graph_mirrors).values(name=down.name))
    mirrored.index = quiet.index = MirroredPathSearch(down, outbox, ledger_walks)
    mirrored.mirroring = Mirroring(down, outbox)
    with pytest.raises(StoreUnavailable):
        await mirrored.read("user")
    await mirrored.draw("User likes Tea")
    with pytest.raises(StoreUnavailable):
        await mirrored.mirroring.catch_up()
    with pytest.raises(StoreUnavailable):
        await mirrored.mirroring.settle()
    with pytest.raises(StoreUnavailable):
        await down.ping()
    with pytest.raises(StoreUnavailable):
        await down.prepare()
    # The ledger answers for the lane with a change that waits.
    assert set(await mirrored.read("user")) == {"User likes Jazz", "User likes Tea"}
    with pytest.raises(StoreUnavailable):
        await quiet.read("user")
    await mirrored.run(update(graph_mirrors).values(name=up.name))
    await mirroring.settle()
    assert await up.counts() == (3, 2)
    await down.close()


class Named(BoltGraph):
    """A server that takes the place of another one."""

    def __init__(self, server: BoltGraph, name: str) -> None:
        vars(self).update(vars(server))
        self._name = name

    @property
    def name(self) -> str:
        return self._name


async def test_a_server_that_lost_its_data_is_filled_again(mirrored: Graphs) -> None:
    await mirrored.draw(*FAMILY)
    mirroring = mirrored.mirroring
    assert mirroring is not None
    await mirroring.catch_up()
    await mirroring.heal()
    assert await mirroring.catch_up() == 0
    await mirroring.mirror.wipe()
    await mirroring.heal()
    assert await mirrored.read("user") == [FAMILY[0]]  # from the ledger
    assert await mirroring.catch_up() == 7
    assert await mirroring.mirror.counts() == (4, 3)


async def test_one_process_at_a_time_writes_to_the_server(mirrored: Graphs) -> None:
    await mirrored.draw(*FAMILY)
    mirroring = mirrored.mirroring
    assert mirroring is not None
    async with mirrored.ledger.graph_outbox.alone(wait=True) as locked:
        assert locked
        assert await mirroring.catch_up() == 0
    assert await mirroring.catch_up() == 7


async def test_a_process_with_another_server_takes_the_outbox_over(mirrored: Graphs) -> None:
    await mirrored.draw(*FAMILY)
    mirroring = mirrored.mirroring
    assert mirroring is not None
    assert isinstance(mirroring.mirror, BoltGraph)
    await mirroring.catch_up()
    later = Mirroring(Named(mirroring.mirror, "bolt://another/"), mirrored.ledger.graph_outbox)
    assert await later.catch_up() == 7
    await mirrored.draw("User likes Tea")
    assert await mirroring.catch_up() == 0
    with pytest.raises(StoreUnavailable):
        await mirroring.settle()
    assert "User likes Tea" in await mirrored.read("user")
    assert await later.catch_up() == 2
    await mirrored.ledger.graph_outbox.close()
    await mirrored.draw("User likes Milk")
    async with mirrored.ledger.engine.connect() as connection:
        assert (await connection.execute(graph_mirrors.select())).all() == []
        assert (await connection.execute(graph_outbox.select())).all() == []


async def test_a_write_may_be_repeated_and_a_node_may_be_missing(bolt: BoltAddress) -> None:
    server, project_id, lane_id = bolt.connect(), uuid4(), uuid4()
    nodes = [
        MirrorNode(UUID(int=n), project_id, lane_id, f"N{n}", f"n{n}", "thing", None, UUID(int=n),
                   None)
        for n in (1, 2)
    ]  # fmt: skip
    edges = [
        MirrorEdge(UUID(int=n), project_id, UUID(int=1), "likes", UUID(int=n), JANUARY, None,
                   JANUARY, None, uuid4(), None)
        for n in (2, 3)
    ]  # fmt: skip
    await server.claim()
    for _ in range(3):
        await server.write(MirrorChanges(nodes=nodes, edges=edges))
        assert await server.counts() == (2, 1)
    await server.write(MirrorChanges())
    await server.wipe()
    assert await server.counts() == (0, 0)
    await server.close()


def node(number: int) -> MirrorChanges:
    """A change: one entity."""
    node_id = UUID(int=number)
    return MirrorChanges(
        nodes=[MirrorNode(node_id, node_id, node_id, "N", "n", "thing", None, node_id, None)]
    )


async def test_a_writer_that_another_one_has_followed_is_refused(bolt: BoltAddress) -> None:
    first, second = bolt.connect(), bolt.connect()
    with pytest.raises(StoreUnavailable):
        await first.write(node(1))
    await first.claim()
    await first.write(node(1))
    await second.claim()
    for refused in (first.write(node(2)), first.write(MirrorChanges()), first.wipe()):
        with pytest.raises(StoreUnavailable):
            await refused
    assert await second.counts() == (1, 0)
    await first.claim()
    await first.write(node(2))
    assert await first.counts() == (2, 0)
    with pytest.raises(StoreUnavailable):
        await second.wipe()
    await first.wipe()
    await first.close()
    await second.close()


class Slow(BoltGraph):
    """A server to which a process writes slowly: after the check of its claim it waits."""

    def __init__(self, server: BoltGraph) -> None:
        vars(self).update(vars(server))
        self.checked, self.proceed = asyncio.Event(), asyncio.Event()

    async def _check_claim(self, transaction: AsyncManagedTransaction) -> None:
        await super()._check_claim(transaction)
        self.checked.set()
        await self.proceed.wait()


async def test_no_write_is_stored_after_a_claim_that_began_during_it(bolt: BoltAddress) -> None:
    slow, second = Slow(bolt.connect()), bolt.connect()
    await slow.claim()
    writing = asyncio.create_task(slow.write(node(1)))
    await slow.checked.wait()
    claiming = asyncio.create_task(second.claim())
    # A server with locks has the claim wait; one without refuses the second of the two.
    claimed, _ = await asyncio.wait({claiming}, timeout=2)
    slow.proceed.set()
    write, claim = await asyncio.gather(writing, claiming, return_exceptions=True)
    assert isinstance(write, StoreUnavailable) == (bool(claimed) and claim is None)
    assert await second.counts() == (int(write is None), 0)
    await second.claim()
    await second.wipe()
    await slow.close()
    await second.close()
