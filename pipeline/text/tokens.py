"""Tokens: an estimate of the length of a text for any model, rather too high than too low."""

from __future__ import annotations

import math
import re

# Four characters per token, but one for each Chinese character.
CHARACTERS_PER_TOKEN = 4
_WIDE = re.compile("[\u2e80-\U0010ffff]+")


def tokens(text: str) -> int:
    """Return the estimated number of tokens."""
    wide = 0 if text.isascii() else sum(map(len, _WIDE.findall(text)))
    return wide + math.ceil((len(text) - wide) / CHARACTERS_PER_TOKEN)
