"""Equality of texts, by a hash."""

from __future__ import annotations

import hashlib


def text_hash(text: str) -> bytes:
    """Return a hash that ignores case, spacing and final full stops."""
    normal = " ".join(text.casefold().split()).rstrip(" .")
    return hashlib.blake2b(normal.encode(), digest_size=16).digest()
