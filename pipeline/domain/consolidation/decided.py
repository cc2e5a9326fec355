"""Changes of memories that a person has decided. Pure functions.

retire   the memories are retired
merge    the first memory gets the text, keeps its id and created_at, and is said at the time of
         the newest statement; the others are retired and point to it (`superseded_by`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from uuid import UUID

from pipeline.domain.facts import Outcome
from pipeline.domain.memories import SLOT, Memory, structure
from pipeline.text.equality import text_hash


@dataclass(frozen=True, slots=True)
class DecidedChange:
    """A memory before and after a decision. NOOP: it stays as it is.

    `stays_true`: its former statement still holds, so its relations in the graph do not end.
    """

    before: Memory
    after: Memory
    outcome: Outcome
    reason: str
    stays_true: bool = False

    @property
    def text(self) -> str:
        """Text for the receipt: the new one, or that of a retired memory."""
        return self.after.text


def retire(
    memories: Sequence[Memory], reason: str, *, into: UUID | None = None, stays_true: bool = False
) -> list[DecidedChange]:
    """Retire memories. `into`: the memory that has their content from now on."""
    merged = f" Merged into memory {into}." if into else ""
    return [
        DecidedChange(
            memory,
            replace(memory, state="RETIRED", superseded_by=into),
            Outcome.DELETE,
            reason + merged,
            stays_true,
        )
        for memory in memories
    ]


def merge(
    memories: Sequence[Memory], text: str, reason: str, *, stay_true: bool
) -> list[DecidedChange]:
    """Give the first memory the text and retire the others, which point to it.

    `stay_true`: the statements are repeats of each other. Otherwise the newest one replaces the
    others, and gives the memory its source and its time in the world.
    """
    anchor, *merged = memories
    by_time = sorted(memories, key=lambda memory: memory.said_at)
    newest = by_time[-1]
    source = anchor if stay_true else newest
    after = replace(
        anchor,
        text=text,
        metadata={key: value for memory in by_time for key, value in memory.metadata.items()},
        categories=tuple(dict.fromkeys(name for m in memories for name in m.categories)),
        expiration_date=_last(memories),
        said_at=newest.said_at,
        valid_from=min(m.valid_from for m in memories) if stay_true else newest.valid_from,
        event_id=source.event_id,
        message_ordinal=source.message_ordinal,
        attributed_to=source.attributed_to,
        **_structure(memories, newest, text),
    )
    outcome = Outcome.NOOP if after == anchor else Outcome.UPDATE
    change = DecidedChange(anchor, after, outcome, reason, stay_true)
    return [change, *retire(merged, reason, into=anchor.id, stays_true=stay_true)]


def _last(memories: Sequence[Memory]) -> date | None:
    """The last expiration date; None if one of the memories has none."""
    days = [memory.expiration_date for memory in memories if memory.expiration_date]
    return max(days) if len(days) == len(memories) else None


def _structure(memories: Sequence[Memory], newest: Memory, text: str) -> dict[str, Any]:
    """Structure of the new text: that of a memory with the text, or the newest one's.

    The attribute is left out if the memories are about different ones.
    """
    digest = text_hash(text)
    same = next((memory for memory in memories if text_hash(memory.text) == digest), None)
    values = structure(same or newest)
    about_one = len({memory.slot for memory in memories}) == 1
    return values if same or about_one else values | dict.fromkeys(SLOT)
