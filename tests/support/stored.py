"""Memories written directly to the ledger and the index, at a given similarity to a question."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np
from sqlalchemy import insert
from sqlalchemy.dialects import postgresql

from pipeline.domain.scope import Scope
from pipeline.domain.vectors import Vector, to_bytes
from pipeline.ledger.tables import lanes, memories
from pipeline.text.equality import text_hash
from tests.support.engine import Engine

# No memory contains this word, so only vectors find the memories.
QUESTION = "suitcase"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def store(
    engine: Engine, count: int, cosine: float, ids: Mapping[str, str], **values: Any
) -> None:
    """Store and index memories without words, at this cosine to QUESTION."""
    scope = Scope(engine.project.id, **ids)
    [query] = await engine.services.embedder.embed([QUESTION])
    rows = [
        {
            "id": uuid4(),
            "project_id": engine.project.id,
            "lane_id": scope.lane_id,
            **{name: ids.get(name) for name in ("user_id", "agent_id", "app_id", "run_id")},
            "text": (text := f"{uuid4()}"),
            "text_hash": text_hash(text),
            "embedding": to_bytes(turned(query, cosine, by=n)),
            "embedder": engine.services.embedder.name,
            "said_at": LONG_AGO,
            "valid_from": LONG_AGO,
            "attributed_to": "user",
            "metadata": {},
            "expiration_date": None,
            **values,
        }
        for n in range(count)
    ]
    lane: dict[str, object] = {
        name: ids.get(name) for name in ("user_id", "agent_id", "app_id", "run_id")
    }
    lane |= {"id": scope.lane_id, "project_id": engine.project.id, "state": "IDLE"}
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(postgresql.insert(lanes).on_conflict_do_nothing(), lane)
        await connection.execute(insert(memories), rows)
    assert await engine.services.index.catch_up(limit=count) == count


def turned(vector: Vector, cosine: float, *, by: int) -> Vector:
    """Unit vector with this cosine to `vector`, whose coordinates are all 0 but one."""
    at = int(np.abs(vector).argmax())
    rotated = vector * np.float32(cosine)
    rotated[(at + 1 + by % (len(vector) - 1)) % len(vector)] += np.float32((1 - cosine**2) ** 0.5)
    turned: Vector = rotated
    return turned
