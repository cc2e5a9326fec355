"""The signed head of a project: one root over the heads of all its lanes.

Lanes are in 256 buckets, by the first byte of their id. The root of a bucket is a keyed multiset
hash of its lanes' heads: the XOR of an HMAC of each, and of an HMAC of the bucket's counter. A
batch of the sweeper changes the roots of its lanes' buckets without reading other lanes. The head
of the project signs a hash of all buckets, its state and a counter. So a scope that is deleted with
its seals and head, or set back to an earlier state, is seen.

Source: Clarke, Devadas, van Dijk, Gassend, Suh: Incremental Multiset Hash Functions and Their
Application to Memory Integrity Checking (ASIACRYPT 2003), MSet-XOR-Hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.row_values import value_of
from pipeline.seals.chain import LaneHead
from pipeline.seals.keys import Part, SealKeys, message

SIZE = 32


class SealState(StrEnum):
    """State of a project's tamper evidence.

    adopting: heads of an earlier release are verified and signed. starting: waits for the end of
    transactions that began before it was switched on. filling: rows that are older than the switch
    are sealed. complete: every row up to `sealed_until` is sealed.
    """

    ADOPTING = "adopting"
    STARTING = "starting"
    FILLING = "filling"
    COMPLETE = "complete"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket: the number of its lanes with a head, and the root over these heads."""

    bucket: int
    lanes: int = 0
    counter: int = 0
    key_id: str = ""
    root: bytes = bytes(SIZE)


@dataclass(frozen=True, slots=True)
class ProjectHead:
    """The head of a project. Every column is signed, except `rotated_to`.

    `sealed_until`: every row of this date or an earlier one is sealed; None before that is so.
    `digest`: hash of all buckets. `checkpoints`: number of recorded heads.
    """

    project_id: ProjectId
    state: SealState
    since: datetime | None
    counter: int
    lanes: int
    sealed_until: datetime | None
    digest: bytes
    checkpoints: int
    checkpoint_at: datetime | None
    sealed_at: datetime | None
    key_id: str
    signature: bytes
    rotated_to: str

    @classmethod
    def of(cls, row: Any) -> ProjectHead:
        """The head of a row with its columns."""
        return value_of(cls, row, state=SealState(row.state))

    def parts(self) -> list[Part]:
        """The signed message."""
        times = (self.since, self.sealed_until, self.checkpoint_at, self.sealed_at)
        numbers = (self.counter, self.lanes, self.checkpoints)
        return ["project", self.project_id, self.state.value, *numbers, *times, self.digest]

    def is_signed(self, keys: SealKeys) -> bool:
        """Tell if this server signed the head."""
        return keys.verifies(self.key_id, self.signature, *self.parts())

    def sign(self, keys: SealKeys) -> ProjectHead:
        """The head with the next counter and its signature."""
        unsigned = replace(self, counter=self.counter + 1, key_id=keys.current)
        return replace(unsigned, signature=keys.sign(*unsigned.parts()))


def bucket_of(lane_id: UUID) -> int:
    """The bucket of a lane."""
    return lane_id.bytes[0]


def member(keys: SealKeys, project_id: ProjectId, head: LaneHead) -> bytes:
    """The part of a lane's head in the root of its bucket. Zero in the format of earlier releases,
    whose heads are in no bucket. It is stored nowhere: known parts could be combined.
    """
    if not head.key_id:
        return bytes(SIZE)
    if not keys.knows(head.key_id):
        return b"\xff" * SIZE
    return keys.mac(head.key_id, "member", project_id, head.lane_id, head.number, head.link)


def mask(keys: SealKeys, project_id: ProjectId, bucket: Bucket) -> bytes:
    """The part of a bucket's counter in its root; zero for a bucket that was never written."""
    if not bucket.key_id:
        return bytes(SIZE)
    return keys.mac(bucket.key_id, "bucket", project_id, bucket.bucket, bucket.counter)


def xor(*roots: bytes) -> bytes:
    """The XOR of these roots."""
    number = 0
    for root in roots:
        number ^= int.from_bytes(root)
    return number.to_bytes(SIZE)


def changed(
    keys: SealKeys, project_id: ProjectId, bucket: Bucket, *, parts: Iterable[bytes], more: int
) -> Bucket:
    """The bucket after its root changed by these parts and its number of lanes by `more`."""
    unmasked = xor(bucket.root, mask(keys, project_id, bucket), *parts)
    following = replace(
        bucket, lanes=bucket.lanes + more, counter=bucket.counter + 1, key_id=keys.current
    )
    return replace(following, root=xor(unmasked, mask(keys, project_id, following)))


def fits(keys: SealKeys, project_id: ProjectId, bucket: Bucket, heads: Iterable[LaneHead]) -> bool:
    """Tell if these are the heads of the bucket's lanes."""
    members = [member(keys, project_id, head) for head in heads if head.key_id]
    if bucket.key_id and not keys.knows(bucket.key_id):
        return False
    root = xor(*members, mask(keys, project_id, bucket))
    return (len(members), root) == (bucket.lanes, bucket.root)


def digest(buckets: Mapping[int, Bucket]) -> bytes:
    """The hash of all buckets."""
    rows = (buckets[number] for number in sorted(buckets))
    lines = (message(row.bucket, row.lanes, row.counter, row.key_id, row.root) for row in rows)
    return hashlib.sha256(b"\n".join(lines)).digest()
