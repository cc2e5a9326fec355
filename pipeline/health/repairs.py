"""Repairs of the ledger: each can be run at any time, while Memlane goes on, and again."""

from __future__ import annotations

from sqlalchemy import MetaData, text
from sqlalchemy.schema import CreateIndex

from pipeline.accounting.recount import Recount
from pipeline.health.sql import statement
from pipeline.health.store import OVERDUE, declared
from pipeline.ledger.fetching import execute
from pipeline.ledger.store import LedgerStore


class LedgerRepairs(LedgerStore):
    """Actions of `memlane repair`. Indexes are built beside writers, outside of transactions."""

    async def rebuild_index(self, name: str) -> None:
        """Build an invalid index again."""
        await execute(self._single, text(f"REINDEX INDEX CONCURRENTLY {_quoted(name)}"))

    async def drop_index(self, name: str) -> None:
        """Drop an index that an interrupted build left."""
        await execute(self._single, text(f"DROP INDEX CONCURRENTLY IF EXISTS {_quoted(name)}"))

    async def create_index(self, name: str) -> None:
        """Create an absent index of the newest schema."""
        # A copy, because the option would stay in the metadata of the process.
        table = declared()[name].table
        assert table is not None
        copy = table.to_metadata(MetaData())
        [index] = [index for index in copy.indexes if index.name == name]
        index.dialect_options["postgresql"]["concurrently"] = True
        await execute(self._single, CreateIndex(index, if_not_exists=True))

    async def queue_stranded_lanes(self) -> int:
        """Queue idle lanes with open events. Returns their number."""
        return await execute(self._engine, statement("queue_stranded"))

    async def queue_overdue_lanes(self) -> int:
        """Let the next sweep take all overdue lanes. Returns the number of lanes changed."""
        values = {"overdue": OVERDUE}
        return await execute(self._engine, statement("queue_overdue"), values)

    async def correct_books(self) -> int:
        """Correct the counts that differ from their rows. Returns the number of corrections."""
        return await Recount(self._engine).correct()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
