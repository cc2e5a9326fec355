"""Tokens: an estimate of a text's length for any model, on the safe side."""

from __future__ import annotations

import math
import re

# Four letters a token, but a Chinese character each.
CHARACTERS_PER_TOKEN = 4
_WIDE = re.compile("[\u2e80-\U0010ffff]+")


def tokens(text: str) -> int:
    """The estimated number of tokens."""
    wide = 0 if text.isascii() else sum(map(len, _WIDE.findall(text)))
    return wide + math.ceil((len(text) - wide) / CHARACTERS_PER_TOKEN)
