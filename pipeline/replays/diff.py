"""What a replay would change: two sets of memories and relations compared, as pure functions.

A memory that says the same in both is the same memory. One that was said in the same message and
reads otherwise has changed; the rest is only in one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from pipeline.text.equality import text_hash


@dataclass(frozen=True, slots=True)
class Remembered:
    """A current memory. `event_id` and `message` say where it was said last, `event_id` as the
    scope itself knows it; None where a person wrote it.
    """

    id: UUID
    text: str
    metadata: dict[str, Any]
    expiration_date: date | None
    event_id: UUID | None
    message: int | None


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    source: str
    relation: str
    destination: str


@dataclass(frozen=True, slots=True)
class Edited:
    """A memory of the scope that a person changed, deleted or restored last."""

    memory: Remembered
    deleted: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """`changed` pairs what is now with what would be; `lost` are people's edits a switch undoes."""

    same: int
    only_live: Sequence[Remembered]
    only_shadow: Sequence[Remembered]
    changed: Sequence[tuple[Remembered, Remembered]]
    relations_added: Sequence[Edge]
    relations_removed: Sequence[Edge]
    lost: Sequence[Edited]


@dataclass(frozen=True, slots=True)
class Store:
    """What a scope holds at one moment."""

    memories: Sequence[Remembered]
    edges: frozenset[Edge]


def difference(live: Store, shadow: Store, edits: Sequence[Edited]) -> Difference:
    ours, theirs = _by_text(live.memories), _by_text(shadow.memories)
    gone = [one for digest, one in ours.items() if digest not in theirs]
    new = [one for digest, one in theirs.items() if digest not in ours]
    changed = _pairs(gone, new)
    paired = {one.id for pair in changed for one in pair}
    return Difference(
        same=len(ours) - len(gone),
        only_live=[one for one in gone if one.id not in paired],
        only_shadow=[one for one in new if one.id not in paired],
        changed=changed,
        relations_added=sorted(shadow.edges - live.edges),
        relations_removed=sorted(live.edges - shadow.edges),
        lost=[one for one in edits if _is_lost(one, ours, theirs)],
    )


def _by_text(memories: Iterable[Remembered]) -> dict[bytes, Remembered]:
    return {text_hash(one.text): one for one in memories}


def _pairs(
    gone: Iterable[Remembered], new: Iterable[Remembered]
) -> list[tuple[Remembered, Remembered]]:
    """What one message came to then and now, in the order it was stored."""
    waiting: dict[tuple[UUID, int | None], list[Remembered]] = defaultdict(list)
    for one in gone:
        if one.event_id is not None:
            waiting[one.event_id, one.message].append(one)
    pairs = []
    for one in new:
        before = waiting[one.event_id, one.message] if one.event_id is not None else []
        if before:
            pairs.append((before.pop(0), one))
    return pairs


def _is_lost(edit: Edited, live: dict[bytes, Remembered], shadow: dict[bytes, Remembered]) -> bool:
    """A deleted text would be back, or an edited memory would not read as it was edited.

    A text that was deleted and said again since is in both.
    """
    digest = text_hash(edit.memory.text)
    there = shadow.get(digest)
    if edit.deleted:
        return there is not None and digest not in live
    mine = edit.memory
    return there is None or (there.metadata, there.expiration_date) != (
        mine.metadata,
        mine.expiration_date,
    )
