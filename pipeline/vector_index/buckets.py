"""Buckets: the fixed number of collections that owners are spread over by hash.

A filtered search costs time linear in its collection, and a collection per user costs megabytes
each (measured with Chroma at 100,000 memories: 26 ms in 64 buckets, 122-157 ms in one collection;
2.7 GB for 1,000 collections).
"""

from __future__ import annotations

import zlib
from uuid import UUID

from pipeline.vector_index.names import family


def bucket(project_id: UUID, owner: str, buckets: int) -> int:
    """The bucket, from 0, of all vectors of one owner."""
    return zlib.crc32(f"{project_id}/{owner}".encode()) % buckets


def collection_name(kind: str, embedder: str, buckets: int, *, project_id: UUID, owner: str) -> str:
    """The collection of an owner's memories or turns (`kind`), in vectors of this embedder."""
    return f"{family(kind, embedder, buckets)}-{bucket(project_id, owner, buckets):04d}"
