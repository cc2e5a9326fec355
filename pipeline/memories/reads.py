"""A sample of the searches that returned a memory: the best hint that a memory is of no use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import bindparam, select

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.fetching import execute, fetch
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import memory_reads
from pipeline.memories.sql import statement

# Reads that a memory has at most; the older ones are deleted.
MOST_OF_A_MEMORY = 10
# Characters of a question that are stored.
LONGEST_QUESTION = 300

_ADD = statement("add_reads").bindparams(
    *map(bindparam, ("ids", "questions", "places", "scores", "most"))
)


@dataclass(frozen=True, slots=True)
class SampledRead:
    """A search that returned a memory. `place`: among its results, from 1."""

    memory_id: UUID
    question: str
    place: int
    score: float


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """A read as stored."""

    at: datetime
    question: str
    place: int
    score: float


class MemoryReads(LedgerStore):
    """Store of the sample."""

    async def add(self, reads: Sequence[SampledRead]) -> None:
        """Store reads, and delete the oldest ones of these memories above MOST_OF_A_MEMORY.

        Memories that are deleted by now are left out.
        """
        values = {
            "ids": [read.memory_id for read in reads],
            "questions": [read.question[:LONGEST_QUESTION] for read in reads],
            "places": [read.place for read in reads],
            "scores": [read.score for read in reads],
            "most": MOST_OF_A_MEMORY,
        }
        await execute(self._engine, _ADD, values)

    async def of(self, project_id: ProjectId, memory_id: UUID) -> list[MemoryRead]:
        """The sampled reads of a memory, newest first."""
        names = ("at", "question", "place", "score")
        query = (
            select(*(memory_reads.c[name] for name in names))
            .where(memory_reads.c.project_id == project_id, memory_reads.c.memory_id == memory_id)
            .order_by(memory_reads.c.id.desc())
            .limit(MOST_OF_A_MEMORY)
        )
        rows = await fetch(self._engine, query)
        return [MemoryRead(**row._asdict()) for row in rows]
