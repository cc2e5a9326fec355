"""Difference between a scope and its replay: two sets of memories and relations, compared.

Memories with the same text are the same memory. Two memories from the same message with different
texts are a changed memory. Every other memory is in only one of the sets. Pure functions.
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
    """A current memory.

    `event_id` and `message` name the event and the message of its text. `event_id` is always the id
    of the scope's own event, also in a shadow; it is None if a person wrote the text.
    """

    id: UUID
    text: str
    metadata: dict[str, Any]
    expiration_date: date | None
    event_id: UUID | None
    message: int | None


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A relation between two entities, identified by their name keys."""

    source: str
    relation: str
    destination: str


@dataclass(frozen=True, slots=True)
class Edited:
    """A memory of the scope whose last change was a person's edit, delete or undo."""

    memory: Remembered
    deleted: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """The result of a comparison.

    `changed` holds pairs (memory in the scope, memory in the shadow); `lost` holds people's edits
    that a switch would undo.
    """

    same: int
    only_live: Sequence[Remembered]
    only_shadow: Sequence[Remembered]
    changed: Sequence[tuple[Remembered, Remembered]]
    relations_added: Sequence[Edge]
    relations_removed: Sequence[Edge]
    lost: Sequence[Edited]


@dataclass(frozen=True, slots=True)
class Store:
    """Memories and relations of a scope at one moment."""

    memories: Sequence[Remembered]
    edges: frozenset[Edge]


def difference(live: Store, shadow: Store, edits: Sequence[Edited]) -> Difference:
    """Compare a scope with its shadow; `edits` are checked for those that a switch would undo."""
    ours, theirs = _by_text(live.memories), _by_text(shadow.memories)
    gone = [memory for digest, memory in ours.items() if digest not in theirs]
    new = [memory for digest, memory in theirs.items() if digest not in ours]
    changed = _pairs(gone, new)
    paired = {memory.id for pair in changed for memory in pair}
    return Difference(
        same=len(ours) - len(gone),
        only_live=[memory for memory in gone if memory.id not in paired],
        only_shadow=[memory for memory in new if memory.id not in paired],
        changed=changed,
        relations_added=sorted(shadow.edges - live.edges),
        relations_removed=sorted(live.edges - shadow.edges),
        lost=[edit for edit in edits if _is_lost(edit, ours, theirs)],
    )


def _by_text(memories: Iterable[Remembered]) -> dict[bytes, Remembered]:
    return {text_hash(memory.text): memory for memory in memories}


def _pairs(
    gone: Iterable[Remembered], new: Iterable[Remembered]
) -> list[tuple[Remembered, Remembered]]:
    """Pair memories from the same message, in the order in which they are listed."""
    waiting: dict[tuple[UUID, int | None], list[Remembered]] = defaultdict(list)
    for memory in gone:
        if memory.event_id is not None:
            waiting[memory.event_id, memory.message].append(memory)
    pairs = []
    for memory in new:
        before = waiting[memory.event_id, memory.message] if memory.event_id is not None else []
        if before:
            pairs.append((before.pop(0), memory))
    return pairs


def _is_lost(edit: Edited, live: dict[bytes, Remembered], shadow: dict[bytes, Remembered]) -> bool:
    """Tell if a switch would bring back a deleted text, or undo the edit of a memory.

    A deleted text that was added again later is in both sets, so nothing is lost.
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
