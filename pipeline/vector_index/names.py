"""Names of vector indexes and their collections."""

from __future__ import annotations

import re

# The first part of every collection's name: see Source.kind.
MEMORIES, TURNS = "memories", "turns"
KINDS = (MEMORIES, TURNS)


def family(kind: str, embedder: str, buckets: int) -> str:
    """The prefix of an index's collections: vectors of different models never share a collection,
    nor do memories and turns, nor different numbers of buckets.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", embedder.lower()).strip("-")
    return f"{kind}-{slug}-of{buckets}"


def index_name(store: str, embedder: str, buckets: int) -> str:
    """The name of an index of memories and turns; a change of any argument makes another index."""
    return f"{store}/{family(MEMORIES, embedder, buckets)}"
