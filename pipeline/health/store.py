"""Figures of the ledger's health. They read whole tables: for an operator, not for a tick."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Index, text

from pipeline.accounting.recount import Recount
from pipeline.health.sql import statement
from pipeline.ledger.fetching import fetch
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import metadata

# A lane that is due is queued within seconds; a hint in a long queue is repeated after a minute.
OVERDUE = timedelta(minutes=5)
# Suffixes of the temporary indexes that an interrupted REINDEX CONCURRENTLY leaves.
LEFT_OVER = ("_ccnew", "_ccold")


@dataclass(frozen=True, slots=True)
class ConnectionFigures:
    """Connections that ordinary roles may open, and those that are open."""

    allowed: int
    open: int


@dataclass(frozen=True, slots=True)
class IndexFaults:
    """Indexes that statements cannot use, that are absent, and that an interrupted build left."""

    invalid: tuple[str, ...]
    missing: tuple[str, ...]
    left_over: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.invalid, *self.missing, *self.left_over)


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """Lanes that wait for a sweeper, and lanes that no sweeper would take up.

    `overdue`: due for longer than OVERDUE. `oldest_s`: seconds since the earliest due time.
    `stranded`: idle, with open events.
    """

    overdue: int
    oldest_s: float
    stranded: int


@dataclass(frozen=True, slots=True)
class SealFigures:
    """Rows without a seal, and the age of the oldest one in seconds."""

    waiting: int
    oldest_s: float


class LedgerHealth(LedgerStore):
    """Reads of a ledger's health."""

    async def clock_ahead_s(self) -> float:
        """Seconds that the database's clock is ahead of this machine's; negative if behind.

        The statement's duration is the uncertainty.
        """
        async with self._single.connect() as connection:
            before = time.time()  # compared with another machine's clock
            theirs = await connection.scalar(
                text("SELECT extract(epoch FROM clock_timestamp())::float8")
            )
            after = time.time()
        return float(theirs or 0) - (before + after) / 2

    async def connections(self) -> ConnectionFigures:
        """Connections that are allowed, and that are open."""
        [row] = await fetch(self._single, statement("connections"))
        return ConnectionFigures(row.allowed, row.open)

    async def indexes(self) -> IndexFaults:
        """Indexes of the newest schema that are invalid or absent."""
        valid = {row.name: row.valid for row in await fetch(self._single, statement("indexes"))}
        left_over = tuple(name for name in valid if name.rstrip("0123456789").endswith(LEFT_OVER))
        return IndexFaults(
            invalid=tuple(
                name for name, usable in valid.items() if not usable and name not in left_over
            ),
            missing=tuple(sorted(set(declared()) - valid.keys())),
            left_over=left_over,
        )

    async def lanes(self) -> LaneFigures:
        """Lanes whose work does not go on."""
        async with self._engine.begin() as connection:
            await connection.execute(text("SET LOCAL enable_seqscan = on"))
            row = (await connection.execute(statement("lanes"), {"overdue": OVERDUE})).one()
        return LaneFigures(row.overdue, row.oldest_s, row.stranded)

    async def wrong_counts(self) -> int:
        """Number of counts in the books that differ from their rows."""
        return await Recount(self._engine).wrong()

    async def seals(self) -> SealFigures:
        """Rows that wait for their seals."""
        [row] = await fetch(self._single, statement("unsealed"))
        return SealFigures(row.waiting, row.oldest_s)


def declared() -> dict[str, Index]:
    """Indexes of the tables in the code, by name; those of constraints are part of the tables."""
    indexes = (index for table in metadata.sorted_tables for index in table.indexes)
    return {str(index.name): index for index in indexes}
