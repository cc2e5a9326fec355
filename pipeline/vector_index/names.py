"""Names of vector indexes and their collections."""

from __future__ import annotations

import re

# What every collection of any index is named by, first of all: see Source.kind.
MEMORIES, TURNS = "memories", "turns"
KINDS = (MEMORIES, TURNS)


def family(kind: str, embedder: str, buckets: int) -> str:
    """What the names of an index's collections begin with: vectors of different models never share
    a collection, nor do memories and turns, nor different ways to spread them.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", embedder.lower()).strip("-")
    return f"{kind}-{slug}-of{buckets}"


def index_name(store: str, embedder: str, buckets: int) -> str:
    """Change any of the three, and it is another index, for memories and turns alike."""
    return f"{store}/{family(MEMORIES, embedder, buckets)}"
