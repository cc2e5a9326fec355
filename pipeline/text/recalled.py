"""Recalled memories inside a message: a fence marks them, so that they are not extracted again.

    <recalled>
    [1] 2024-05-07 Maya: I bought a tent.
    </recalled>

A chat backend that puts a search's context into its prompt often sends that prompt back as a
message. Without the fence every recalled memory would become a new statement of the user.
"""

from __future__ import annotations

import re

START, END = "<recalled>\n", "\n</recalled>"
_FIRST, _LAST = "<recalled>", "</recalled>"
# A block whose end is missing ends with its dated lines.
_DATED_LINES = re.compile(r"(?:\s*\n\[\d+\] \d{4}-\d\d-\d\d [^\n]*)*")
_MARK = re.compile(r"<(/?recalled>)")


def fenced(text: str) -> str:
    """The text between the marks of recalled memories; an empty text stays empty."""
    return f"{START}{text}{END}" if text else ""


def inside_fence(line: str) -> str:
    """The line with marks of its own made harmless: a stored text cannot end the block it is in."""
    return _MARK.sub(r"‹\1", line)


def _end_of_dated_lines(text: str, at: int) -> int:
    match = _DATED_LINES.match(text, at)
    return match.end() if match else at


def without_recalled(text: str) -> str:
    """The text without blocks of recalled memories. A text without one is returned unchanged."""
    start = text.find(_FIRST)
    if start < 0:
        return text
    parts, at, end = [], 0, 0
    while start >= 0:
        parts.append(text[at:start].rstrip(" \t"))
        at = start + len(_FIRST)
        # Search for an end only once after the last one: a search for each mark is quadratic.
        if 0 <= end < at:
            end = text.find(_LAST, at)
        at = _end_of_dated_lines(text, at) if end < 0 else end + len(_LAST)
        start = text.find(_FIRST, at)
    return "".join((*parts, text[at:])).strip()
