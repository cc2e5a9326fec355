"""Ids of incognito events, which have no row: everything that is known of them is in the id.

    48 bits   time in milliseconds
     4 bits   version 8 of RFC 9562: an id with a content of its own
    12 bits   random
     2 bits   variant
    14 bits   random
    48 bits   check: BLAKE2b of the bits before, with the project's id as key

The check tells such an id from any other one, and from those of other projects. It is no proof: a
caller who knows the project's id can compute one, and learns nothing by it.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime
from uuid import UUID

from pipeline.domain.tenants import ProjectId

VERSION, VARIANT = 8, 0b10
NOT_STORED = "Incognito: nothing was stored."


def incognito_id(project_id: ProjectId, at: datetime) -> UUID:
    """A new id for an incognito event of this time."""
    ms = int(at.timestamp() * 1000)
    head = ms << 32 | VERSION << 28 | secrets.randbits(12) << 16 | VARIANT << 14
    head |= secrets.randbits(14)
    return UUID(int=head << 48 | _check(project_id, head))


def incognito_time(project_id: ProjectId, event_id: UUID) -> datetime | None:
    """The time of an incognito event of this project; None for any other id."""
    head, check = event_id.int >> 48, event_id.int & (1 << 48) - 1
    if event_id.version != VERSION or check != _check(project_id, head):
        return None
    return datetime.fromtimestamp((head >> 32) / 1000, UTC)


def _check(project_id: ProjectId, head: int) -> int:
    digest = hashlib.blake2b(head.to_bytes(10), digest_size=6, key=project_id.bytes)
    return int.from_bytes(digest.digest())
