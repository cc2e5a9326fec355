"""All operations on a few scopes at once: no deadlock, exact books, whole history, valid seals.

Each operation runs a number of times in a task of its own, in one process with a real ledger. The
checks are of invariants, because the order of the operations differs from run to run.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import Conflict, NotFound, Overloaded
from pipeline.domain.events import EventType
from pipeline.domain.filters import EventFilter, parse
from pipeline.domain.summaries import SummaryAfter, SummaryUpdate
from pipeline.domain.usage import Answer, Usage
from pipeline.erasure.store import OwnerKey
from pipeline.events import service as events_service
from pipeline.ledger.engine import LONG, connect
from pipeline.memories.delete_by_filter import DeleteRequest
from pipeline.memories.editing import MemoryEdit
from pipeline.seals.keys import SealKeys
from pipeline.stores import Ledger, Pools
from pipeline.suggestions.service import Action, decide
from pipeline.summaries.service import Summarizer
from tests.support.engine import Engine, lanes_on
from tests.support.recount import drift

SENTENCES = (
    "I live in {}.", "I moved to {}.", "I like {} bread.", "I work in {}.",
    "I no longer live in {}.",
    "My aunt lives in {}.", "I sold my {} lamp.",
)  # fmt: skip
PLACES = ("Ghent", "Turku", "Evora", "Quito", "Dakar", "Hobart")
USERS = ("ada", "bo", "cem")
# Errors that a caller may get while others work on the same rows.
EXPECTED = (Conflict, NotFound, Overloaded)
BROKEN = {
    "lanes that do not rest": "SELECT id FROM lanes WHERE state <> 'IDLE'",
    "open events": """
        SELECT id FROM events WHERE completed_at IS NULL AND event_type <> 'DELETE_USER'""",
    "versions without history": """
        SELECT id FROM memories m WHERE NOT EXISTS (
            SELECT FROM memory_history h WHERE h.memory_id = m.id AND h.version = m.version)""",
    "current relations of no memory": """
        SELECT id FROM relations r WHERE expired_at IS NULL AND memory_id IS NOT NULL
          AND NOT EXISTS (SELECT FROM memories m WHERE m.id = r.memory_id)""",
    "events beyond their lane": """
        SELECT id FROM lanes l
        WHERE (SELECT coalesce(max(seq), 0) FROM events e WHERE e.lane_id = l.id) > accepted_seq""",
    "equal active memories": """
        SELECT lane_id FROM memories WHERE state = 'ACTIVE'
        GROUP BY lane_id, lower(text) HAVING count(*) > 1""",
}


class Model(RulesModel):
    """The rules, which also make summaries."""

    async def summarize(self, request: SummaryUpdate) -> Answer[str]:
        return Answer("A summary.", Usage("m", 1, 1, 1, 0.0, "p"))


@pytest.fixture
async def sealing(database_url: str) -> AsyncIterator[Ledger]:
    """A ledger with a key for seals, and connections for many operations at once."""
    engine = connect(database_url, pool_size=12)
    long = connect(database_url, pool_size=6, limits=LONG)
    pools = Pools(engine, long, engine, verifying=long)
    built = Ledger(
        pools, lanes_on(engine), seal_keys=SealKeys([b"a key of this test, of 32 bytes.."])
    )
    yield built
    await built.close()


@dataclass
class Everything:
    """The operations. `errors`: those that no caller may get, by operation."""

    engine: Engine
    chance: random.Random
    errors: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.ledger, self.project_id = self.engine.ledger, self.engine.project.id

    async def repeat(self, operation: Callable[[], Awaitable[Any]], times: int) -> None:
        for _ in range(times):
            try:
                await operation()
            except EXPECTED:
                pass
            except Exception as error:  # noqa: BLE001  all are counted, and fail the test
                self.errors[f"{operation.__name__}: {type(error).__name__}: {error}"] += 1
            await asyncio.sleep(0)

    async def rows(self, query: str, **values: Any) -> list[UUID]:
        async with self.ledger.engine.connect() as connection:
            rows = await connection.execute(text(query), {"project": self.project_id, **values})
            return [row[0] for row in rows]

    async def memory_ids(self) -> list[UUID]:
        return await self.rows(
            "SELECT id FROM memories WHERE project_id = :project AND state = 'ACTIVE' LIMIT 30"
        )

    async def any_event(self, condition: str) -> list[UUID]:
        return await self.rows(
            f"SELECT id FROM events WHERE project_id = :project AND {condition}"
            " ORDER BY random() LIMIT 1"
        )

    async def add(self) -> None:
        sentence = self.chance.choice(SENTENCES).format(self.chance.choice(PLACES))
        await self.engine.add(sentence, user_id=self.chance.choice(USERS))

    async def work(self) -> None:
        if self.engine.hints.waiting:
            hint = self.engine.hints.waiting.popleft()
            await self.engine.run(hint, one_stage=self.chance.random() < 0.3)

    async def sweep(self) -> None:
        await self.engine.pass_time(31)
        await self.engine.sweep()

    async def edit(self) -> None:
        if ids := await self.memory_ids():
            embedder = self.engine.services.embedder
            [vector] = await embedder.embed(["x"])
            values = {"text": f"User likes {self.chance.random()}"}
            edits = [MemoryEdit(self.chance.choice(ids), values, vector)]
            await self.ledger.editing.edit(self.project_id, edits, embedder=embedder.name)

    async def retire(self) -> None:
        ids = await self.memory_ids()
        await self.ledger.editing.retire(self.project_id, self.chance.sample(ids, min(2, len(ids))))

    async def undo(self) -> None:
        for event_id in await self.any_event("status = 'SUCCEEDED' AND undone_at IS NULL"):
            await events_service.undo(
                self.project_id, event_id, force=self.chance.random() < 0.7, store=self.ledger.undo,
                embedder=self.engine.services.embedder, index=self.engine.services.index,
            )  # fmt: skip

    async def clear(self) -> None:
        tree = parse({"user_id": self.chance.choice(USERS)})
        request = DeleteRequest(EventType.DELETE_ALL, tree, {})
        await self.ledger.clearing.clear(self.project_id, request)

    async def erase(self) -> None:
        owner = OwnerKey("user", self.chance.choice(USERS))
        await self.ledger.erasures.erase(self.project_id, owner)

    async def cancel(self) -> None:
        for event_id in await self.any_event("status IN ('PENDING', 'RUNNING')"):
            await events_service.cancel(
                self.project_id,
                event_id,
                cancellation=self.ledger.cancellation,
                dispatcher=self.engine.hints,
            )

    async def replay(self) -> None:
        wanted = EventFilter(statuses=["CANCELLED"])
        await events_service.replay_all(
            self.project_id,
            wanted,
            dead_letters=self.ledger.dead_letters,
            dispatcher=self.engine.hints,
        )

    async def decide(self) -> None:
        query = "SELECT id FROM suggestions WHERE project_id = :project AND state = 'OPEN' LIMIT 1"
        for suggestion_id in await self.rows(query):
            await decide(
                self.project_id, suggestion_id, self.chance.choice(list(Action)), by=uuid4(),
                ledger=self.ledger, embedder=self.engine.services.embedder,
                index=self.engine.services.index,
            )  # fmt: skip

    async def summarize(self) -> None:
        for due in await self.ledger.summaries.claim_due(limit=5, lease_s=1):
            ledger, model = self.ledger, self.engine.services.model
            await Summarizer(ledger.summaries, ledger.costs, model).summarize(due.lane_id)

    async def seal(self) -> None:
        await self.ledger.seals.seal()

    async def verify(self) -> None:
        """Verify the seals while others write."""
        checked = await self.ledger.seals.check(self.project_id)
        assert not checked.faults, checked.faults

    async def write_vectors(self) -> None:
        await self.engine.services.index.catch_up()

    async def fold(self) -> None:
        await self.ledger.balance.fold()

    async def edit_graph(self) -> None:
        query = "SELECT id FROM entities WHERE project_id = :project ORDER BY random() LIMIT 2"
        match await self.rows(query):
            case [first, second]:
                editing = self.ledger.graph_editing
                if self.chance.random() < 0.5:
                    await editing.merge(self.project_id, first, second)
                else:
                    await editing.erase(self.project_id, first)


async def deadlocks(ledger: Ledger) -> int:
    query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    async with ledger.engine.connect() as connection:
        await connection.execute(text("SELECT pg_stat_force_next_flush()"))
        return int((await connection.scalar(text(query))) or 0)


async def test_everything_at_once_leaves_a_sound_ledger(
    sealing: Ledger, pytestconfig: pytest.Config
) -> None:
    engine = await Engine.create(sealing, Model())
    engine.services = replace(engine.services, summary_after=SummaryAfter(messages=3, tokens=200))
    await sealing.seals.switch(engine.project.id, on=True)
    gather = {"messages": 3, "tokens": 500, "seconds": 0.5}
    await sealing.projects.change(engine.project.id, {"gather": gather}, {})
    run = Everything(engine, random.Random(pytestconfig.getoption("--chaos-seed")))
    often = [*[run.add] * 4, *[run.work] * 6]
    seldom = [
        run.sweep, run.edit, run.retire, run.undo, run.cancel, run.replay, run.decide,
        run.summarize, run.seal, run.verify, run.write_vectors, run.fold, run.edit_graph,
    ]  # fmt: skip
    await asyncio.gather(
        *(run.repeat(operation, 100) for operation in often),
        *(run.repeat(operation, 25) for operation in seldom),
        run.repeat(run.clear, 8),
        run.repeat(run.erase, 8),
    )
    await sealing.projects.change(engine.project.id, {"gather": None}, {})
    for _ in range(30):
        await engine.pass_time(4_000)
        await engine.sweep()
        await engine.drain()
    await sealing.seals.seal()
    assert not run.errors
    assert await deadlocks(sealing) == 0
    assert {name: rows for name, query in BROKEN.items() if (rows := await run.rows(query))} == {}
    assert await drift(sealing.engine) == []
    checked = await sealing.seals.check(engine.project.id)
    assert (checked.faults, checked.waiting) == ([], 0)
    assert checked.sealed > 100
