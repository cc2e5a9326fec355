"""Buckets: the fixed number of collections that owners are spread over by hash.

A large scope has a collection of its own beside its bucket: see pipeline/vector_index/large_scopes.

A filtered search costs time linear in its collection, and a collection per user costs megabytes
each (measured with Chroma at 100,000 memories: 26 ms in 64 buckets, 122-157 ms in one collection;
2.7 GB for 1,000 collections).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from uuid import UUID

from pipeline.vector_index.names import family

NUMBERED = re.compile(r"-of(\d+)-(\d+)$")
# A collection of one scope, with the hash of its user, or without a user.
OWN = re.compile(r"-of\d+-own-(?:([0-9a-f]{8})|any)-[0-9a-f]{32}$")


def owner_hash(project_id: UUID, owner: str) -> int:
    """A number of 32 bits from which the bucket of an owner follows, for any number of buckets."""
    return zlib.crc32(f"{project_id}/{owner}".encode())


def may_hold(collection: str, owner_hashes: Iterable[int]) -> bool:
    """Tell if a collection can have vectors of one of these owners, for any model and kind."""
    if own := OWN.search(collection):
        return own[1] is None or int(own[1], 16) in owner_hashes
    numbers = NUMBERED.search(collection)
    if numbers is None:
        return True
    buckets, number = int(numbers[1]), int(numbers[2])
    return any(hashed % buckets == number for hashed in owner_hashes)


def is_bucket(collection: str) -> bool:
    """Tell if a collection is a bucket."""
    return NUMBERED.search(collection) is not None


def is_own(collection: str) -> bool:
    """Tell if a collection is that of one scope."""
    return OWN.search(collection) is not None


def collection_name(kind: str, embedder: str, buckets: int, *, project_id: UUID, owner: str) -> str:
    """The collection of an owner's memories or turns (`kind`), in vectors of this embedder."""
    number = owner_hash(project_id, owner) % buckets
    return f"{family(kind, embedder, buckets)}-{number:04d}"


def own_name(
    kind: str, embedder: str, buckets: int, *, project_id: UUID, pins: Mapping[str, str]
) -> str:
    """The collection of the scope with these entity ids alone. The name has none of them."""
    # Length-prefixed, so two different scopes never give the same key.
    parts = [f"{name}:{len(value)}:{value}" for name, value in sorted(pins.items())]
    digest = blake2b("/".join([str(project_id), *parts]).encode(), digest_size=16).hexdigest()
    user = pins.get("user_id")
    hashed = "any" if user is None else f"{owner_hash(project_id, user):08x}"
    return f"{family(kind, embedder, buckets)}-own-{hashed}-{digest}"
