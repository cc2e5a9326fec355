"""The hash chain of a lane.

    link(n)   = SHA-256(link(n-1), n, kind, row, digest(n))
    signature = HMAC(key, project, lane, n, link(n))

A seal of a row has as digest the salted SHA-256 of the row. An entry that covers an erasure or a
replay has as digest the SHA-256 of the erasure with the numbers of the seals that it covers, or of
the event with its number of replays: rows that are gone, or that differ, are accepted only if such
an entry covers them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pipeline.domain.tenants import ProjectId
from pipeline.seals.keys import Part, SealKeys

ERASURE, REPLAY = "erasure", "replay"
ENTRIES = (ERASURE, REPLAY)


@dataclass(frozen=True, slots=True)
class Fault:
    """A difference between the rows and their seals.

    `problem`: edited, removed, inserted; chain for a seal that does not fit its chain; head for a
    signed head that does not fit. `kind` and `row_id` name the row: an event, a line of its
    receipt, a version of a memory; seal for the head of a lane; project for that of the project.
    """

    lane_id: UUID | None
    problem: str
    kind: str
    row_id: UUID | None = None
    row_no: int | None = None


@dataclass(frozen=True, slots=True)
class NewSeal:
    """A seal to append. `covers`: None for a seal of a row."""

    lane_id: UUID
    kind: str
    row_id: UUID
    row_no: int
    digest: bytes
    salt: bytes | None = None
    covers: str | None = None


@dataclass(frozen=True, slots=True)
class LaneHead:
    """The head of a lane."""

    lane_id: UUID
    number: int = 0
    link: bytes = b""
    signature: bytes = b""
    key_id: str = ""


def next_link(link: bytes, number: int, seal: NewSeal) -> bytes:
    """The link of the seal with this number."""
    place = f"{number}:{seal.kind}:{seal.row_id}:{seal.row_no}:".encode()
    return hashlib.sha256(link + place + seal.digest).digest()


# First byte of a head's signature, which the signatures of release 0.1.0 do not have. A CHECK
# constraint asks for it, so that a sweeper of that release cannot overwrite a head.
FORMAT = b"\x02"


def sign_head(
    keys: SealKeys, project_id: ProjectId, lane_id: UUID, number: int, link: bytes
) -> bytes:
    """The signature of a lane's head, with the current key."""
    return FORMAT + keys.sign(*signed_parts(project_id, lane_id, number, link))


def signed_parts(project_id: ProjectId, lane_id: UUID, number: int, link: bytes) -> list[Part]:
    """The message whose signature a lane's head has."""
    return ["lane", project_id, lane_id, number, link]


def is_signed(keys: SealKeys, project_id: ProjectId, head: LaneHead) -> bool:
    """Tell if a lane's head was signed by this server, also in the format of earlier releases."""
    if not head.key_id:
        written = f"{head.lane_id}:{head.number}:".encode() + head.link
        return keys.verifies_format_1(head.signature, written)
    parts = signed_parts(project_id, head.lane_id, head.number, head.link)
    mac = head.signature.removeprefix(FORMAT)
    return keys.verifies(head.key_id, mac, *parts) and head.signature != mac


def broken_at(link: bytes, number: int, seals: Sequence[Any]) -> Any | None:
    """The first of these seals that does not follow the link with this number; None if all do."""
    for seal in seals:
        number += 1
        link = next_link(link, number, seal)
        if (seal.number, seal.link) != (number, link):
            return seal
    return None


def entry_digest(kind: str, row_id: UUID, row_no: int, covers: str) -> bytes:
    """The digest of an entry."""
    return hashlib.sha256(f"{kind}:{row_id}:{row_no}:{covers}".encode()).digest()


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in a short text: 1-3,7."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


@dataclass(frozen=True, slots=True)
class Covered:
    """The numbers of a text of ranges."""

    runs: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, text: str) -> Covered:
        """Parse the text of `ranges`."""
        parts = (part.partition("-") for part in text.split(",") if part)
        return cls([(int(low), int(high or low)) for low, _, high in parts])

    def __contains__(self, number: int) -> bool:
        return any(low <= number <= high for low, high in self.runs)
