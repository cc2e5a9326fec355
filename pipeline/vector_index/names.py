"""Names of vector indexes and their collections."""

from __future__ import annotations

import re

# The first part of every collection's name: see Source.kind.
MEMORIES, TURNS = "memories", "turns"
KINDS = (MEMORIES, TURNS)


def family(kind: str, embedder: str, buckets: int) -> str:
    """Return the name prefix of an index's collections.

    Vectors of different models, memories and turns, and different numbers of buckets never share a
    collection.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", embedder.lower()).strip("-")
    return f"{kind}-{slug}-of{buckets}"


def index_name(store: str, embedder: str, buckets: int) -> str:
    """Return the name of an index of memories and turns; any other argument names another index."""
    return f"{store}/{family(MEMORIES, embedder, buckets)}"
