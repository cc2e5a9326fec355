"""Times that a summary must keep: the dates and clock times that its sources state.

    "We met yesterday."  ->  "We met yesterday (2026-11-21)."  ->  2026-11-21

Relative times are resolved here, before a model reads the text. Questions state nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.text.statements.values import Value, ValueKind, stated

_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?。！？]+|\n|$)")
_CLOCK = re.compile(r"\d{1,2}:\d\d(?::\d\d)?")


def sentences(text: str) -> list[str]:
    """The sentences of the text, in their order."""
    return [part for part in _SENTENCE.findall(text) if part.strip()]


def times(text: str) -> list[Value]:
    """The dates and clock times of the text, without those of its questions."""
    statements = "".join(
        part for part in _SENTENCE.findall(text) if not part.rstrip().endswith(("?", "？"))
    )
    return [value for value in stated(statements).values if _is_time(value)]


def times_to_keep(texts: Iterable[str], *, most: int) -> list[Value]:
    """The first `most` different times of the texts."""
    different = {value.key: value for text in texts for value in times(text)}
    return list(different.values())[:most]


def missing_times(wanted: Iterable[Value], text: str) -> list[str]:
    """The wanted times that a text lacks, as they were written. A more exact date is kept, too."""
    after = stated(text)
    return [value.text for value in wanted if not after.keeps(value)]


def _is_time(value: Value) -> bool:
    if value.kind is ValueKind.NUMBER:
        return bool(_CLOCK.fullmatch(value.key))
    return value.kind is ValueKind.DATE
