"""Texts of clients and models that JSON can hold and Memlane cannot store."""

from __future__ import annotations

# Characters that a message of an add may have.
LONGEST_TEXT = 32_000


def storable(text: str) -> str:
    """The text with joined pairs of surrogates; a half without the other one becomes U+FFFD.

    JSON can hold a half, as strings in JavaScript do, which UTF-8 and so every request cannot. A
    NUL character becomes U+FFFD too: PostgreSQL cannot store it, so the server refuses it.
    """
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return paired.replace("\0", "\ufffd")
