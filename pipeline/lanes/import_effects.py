"""Effects of an import: the rows of its lines, with their vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import TextClause

from pipeline.domain.vectors import Vector, pack
from pipeline.lanes.sql import statement
from pipeline.ledger.row_values import json_rows

# Parameters of finish_import: a JSON array of rows for each.
TABLES = (
    *("events", "messages", "receipts", "graph_receipts", "memories", "past_states", "history"),
    *("feedback", "entities", "relations", "summaries", "conflicts", "conflict_members"),
)
WITH_VECTOR = ("memories", "past_states")


@dataclass(frozen=True, slots=True)
class ImportEffects:
    """Rows to insert by table, and the receipt of the import.

    `vector` of a memory or past state is the place of its vector in `vectors`.
    """

    query: ClassVar[TextClause] = statement("finish_import")
    # The words of the texts are cut already.
    characters: ClassVar[int] = 0

    event_ids: Sequence[UUID]
    rows: Mapping[str, Sequence[dict[str, Any]]]
    receipt: Sequence[dict[str, Any]]
    vectors: Sequence[Vector]
    embedder: str

    @property
    def touched(self) -> Sequence[UUID]:
        """Ids of the new memories."""
        return [row["id"] for row in self.rows.get("memories", ())]

    def values(self) -> dict[str, Any]:
        """Parameters of finish_import."""
        rows = {name: self.rows.get(name, ()) for name in TABLES}
        with_vectors = {name: self._with_vectors(rows[name]) for name in WITH_VECTOR}
        own = [
            line | {"event_id": event_id, "ordinal": ordinal, "message_ordinal": 0}
            for event_id in self.event_ids
            for ordinal, line in enumerate(self.receipt)
        ]
        all_rows = {**rows, **with_vectors, "receipts": [*rows["receipts"], *own]}
        return {
            "embedder": self.embedder,
            **{name: json_rows(values) for name, values in all_rows.items()},
        }

    def _with_vectors(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        packed = [pack(vector) for vector in self.vectors]
        return [row | {"embedding": packed[row["vector"]]} for row in rows]
