"""The sweeper is killed while it fills the own collection of a large scope: before a page that is
already in the store is recorded, and before the complete collection is served.

A trigger stops the filler at this write, so that the kill always comes at the same place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import pytest

from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.vector_index.buckets import is_own
from tests.support.chaos_ledger import LedgerWindow, database_url, holds, port_of
from tests.support.stack import Client, Stack

# Two pages of the filler and part of a third.
ROWS, AN_ADD = 450, 50
LOCK = 28_000
# Longer than any wait on a busy machine.
WITHIN_S = 150
PLACES = {
    "a page that is not recorded": "NEW.state = 'FILLING' AND OLD.filled_id IS NOT NULL",
    "a collection that is not served": "NEW.state = 'SERVED' AND OLD.state = 'FILLING'",
}
STOPPER = f"""
CREATE OR REPLACE FUNCTION stop_filler() RETURNS trigger LANGUAGE plpgsql
AS 'BEGIN PERFORM pg_advisory_xact_lock({LOCK}); RETURN NEW; END'
"""
STOP = """
CREATE OR REPLACE TRIGGER stop_filler BEFORE UPDATE ON own_collections
FOR EACH ROW WHEN ({place}) EXECUTE FUNCTION stop_filler()
"""
STOPPED = (
    "SELECT pid FROM pg_locks "
    f"WHERE locktype = 'advisory' AND NOT granted AND classid = 0 AND objid = {LOCK}"
)
STATES = "SELECT name, state, records FROM own_collections WHERE user_id = $1"
ACTIVE = "SELECT id FROM memories WHERE user_id = $1 AND state = 'ACTIVE'"


@dataclass(frozen=True)
class Scope:
    """A large scope, seen by a client and in both stores."""

    client: Client
    ledger: LedgerWindow
    vectors: ChromaVectors
    user_id: str

    async def fill(self) -> None:
        """Store its memories, without a model."""
        for start in range(0, ROWS, AN_ADD):
            messages = [
                {"role": "user", "content": f"Dish {n} of {self.user_id} is soup."}
                for n in range(start, start + AN_ADD)
            ]
            body = {"messages": messages, "user_id": self.user_id, "infer": False}
            answer = await self.client.http.post("/v3/memories/add/", json=body)
            assert answer.json()["status"] == "SUCCEEDED", answer.text

    async def searched(self) -> list[UUID]:
        """Ids that a search for all of it returns."""
        answer = await self.client.search(self.user_id, "soup", top_k=1_000, threshold=0.0)
        return sorted(UUID(row["id"]) for row in answer["results"])

    async def active(self) -> list[UUID]:
        return sorted(UUID(str(row["id"])) for row in await self.ledger.rows(ACTIVE, self.user_id))

    async def states(self) -> list[tuple[str, int]]:
        rows = await self.ledger.rows(STATES, self.user_id)
        return [(row["state"], row["records"]) for row in rows]

    async def stored(self) -> list[UUID]:
        """Ids in its own collection."""
        [row] = await self.ledger.rows(STATES, self.user_id)
        assert is_own(row["name"])
        records = await self.vectors.list(row["name"], where={}, limit=2 * ROWS)
        return sorted(record.id for record in records)


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("filler") / "stack"
    async with Stack(folder, {"MEMLANE_OWN_COLLECTION_ROWS": "100"}) as running:
        yield running


@asynccontextmanager
async def scope_of(stack: Stack, user_id: str) -> AsyncIterator[Scope]:
    ledger = LedgerWindow(database_url(stack))
    vectors = ChromaVectors(f"http://127.0.0.1:{port_of(stack, 'chroma')}")
    async with stack.client() as client:
        yield Scope(client, ledger, vectors, user_id)
    await vectors.close()
    await ledger.close()


@asynccontextmanager
async def stopped_at(gate: LedgerWindow, place: str) -> AsyncIterator[None]:
    """Stop each filler at a place while the block runs."""
    await gate.rows(STOPPER)
    await gate.rows(STOP.format(place=place))
    await gate.rows(f"SELECT pg_advisory_lock({LOCK})")
    try:
        yield
    finally:
        await gate.rows(f"SELECT pg_advisory_unlock({LOCK})")
        await gate.rows("DROP TRIGGER stop_filler ON own_collections")
        await gate.close()


@pytest.mark.parametrize("place", PLACES)
async def test_a_killed_filler_is_continued_and_doubles_nothing(stack: Stack, place: str) -> None:
    async with scope_of(stack, f"maya-{list(PLACES).index(place)}") as scope:
        await scope.fill()
        active = await scope.active()
        assert len(active) == ROWS

        async def stopped() -> bool:
            await scope.searched()  # requests the collection
            return bool(await scope.ledger.rows(STOPPED))

        async with stopped_at(LedgerWindow(database_url(stack)), PLACES[place]):
            assert await holds(stopped, within_s=WITHIN_S)
            assert [state for state, _ in await scope.states()] == ["FILLING"]
            killed = stack.kill("sweeper")
            for row in await scope.ledger.rows(STOPPED):  # so its last write is lost, too
                await scope.ledger.rows("SELECT pg_terminate_backend($1)", row["pid"])
            assert await scope.searched() == active

        async def served() -> bool:
            return await scope.states() == [("SERVED", ROWS)]

        assert await holds(served, within_s=WITHIN_S), await scope.states()
        assert stack.pid("sweeper") != killed
        assert await scope.stored() == active
        assert await scope.searched() == active
