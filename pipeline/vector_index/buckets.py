"""Buckets: the fixed number of collections that owners are spread over by hash.

A filtered search costs time linear in its collection, and a collection per user costs megabytes
each (measured with Chroma at 100,000 memories: 26 ms in 64 buckets, 122-157 ms in one collection;
2.7 GB for 1,000 collections).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from uuid import UUID

from pipeline.vector_index.names import family

NUMBERED = re.compile(r"-of(\d+)-(\d+)$")


def owner_hash(project_id: UUID, owner: str) -> int:
    """A number of 32 bits from which the bucket of an owner follows, for any number of buckets."""
    return zlib.crc32(f"{project_id}/{owner}".encode())


def bucket(project_id: UUID, owner: str, buckets: int) -> int:
    """The bucket, from 0, of all vectors of one owner."""
    return owner_hash(project_id, owner) % buckets


def may_hold(collection: str, owner_hashes: Iterable[int]) -> bool:
    """Tell if a collection is the bucket of one of these owners, for any model and kind."""
    numbers = NUMBERED.search(collection)
    if numbers is None:
        return True
    buckets, number = int(numbers[1]), int(numbers[2])
    return any(hashed % buckets == number for hashed in owner_hashes)


def collection_name(kind: str, embedder: str, buckets: int, *, project_id: UUID, owner: str) -> str:
    """The collection of an owner's memories or turns (`kind`), in vectors of this embedder."""
    return f"{family(kind, embedder, buckets)}-{bucket(project_id, owner, buckets):04d}"
