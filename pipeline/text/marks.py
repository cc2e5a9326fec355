"""Limit runs of combining marks, so that normalization takes linear time.

Normalization orders the marks behind a letter by insertion sort, in C and without releasing the
interpreter lock: 160,000 marks take 25 s, in which no thread of the process runs.

Source: UAX #15, Stream-Safe Text Format: no real text has more than 30 marks behind a letter.
"""

from __future__ import annotations

import re
import unicodedata

MOST_MARKS = 30

# Code points beyond have no marks except variation selectors, which are not reordered.
_SCRIPTS = range(0x300, 0x1F000)
_SURROGATES = range(0xD800, 0xE000)


def _reordered(character: str) -> bool:
    """Tell if normalization may move the character: it is a mark, or decomposes into marks."""
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0


_MARKS = "".join(chr(at) for at in _SCRIPTS if at not in _SURROGATES and _reordered(chr(at)))
_LETTER_MARKS = "".join(mark for mark in _MARKS if mark.isalnum())
_LONG = re.compile(rf"([{_MARKS}]{{{MOST_MARKS}}})[{_MARKS}]+")
# A pre-check, twenty times as fast as the exact pattern; ordinary texts have no such run.
_SUSPECT = re.compile(rf"(?:[^\w\x00-\u02ff]|[{_LETTER_MARKS}]){{{MOST_MARKS + 1}}}")


def bounded(text: str) -> str:
    """Return the text with at most MOST_MARKS marks in a row, safe to normalize in linear time."""
    return _LONG.sub(r"\1", text) if _SUSPECT.search(text) else text
