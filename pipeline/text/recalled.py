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
# A block whose end is missing ends with its dated lines.
_BLOCK = re.compile(
    r"[ \t]*<recalled>(?:.*?</recalled>|(?:\s*\n\[\d+\] \d{4}-\d\d-\d\d [^\n]*)*)", re.DOTALL
)
_MARK = re.compile(r"<(/?recalled>)")


def fenced(text: str) -> str:
    """The text between the marks of recalled memories; an empty text stays empty."""
    return f"{START}{text}{END}" if text else ""


def inside_fence(line: str) -> str:
    """The line with marks of its own made harmless: a stored text cannot end the block it is in."""
    return _MARK.sub(r"‹\1", line)


def without_recalled(text: str) -> str:
    """The text without blocks of recalled memories. A text without one is returned unchanged."""
    return _BLOCK.sub("", text).strip() if "<recalled>" in text else text
