"""Texts of clients that write strings as UTF-16, as JavaScript does."""

from __future__ import annotations


def paired(text: str) -> str:
    """The text with joined pairs of surrogates; a half without the other one becomes U+FFFD.

    JSON can hold a half, which UTF-8 and so every request cannot.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
