"""The equality of texts."""

from __future__ import annotations

import hashlib


def text_hash(text: str) -> bytes:
    """Equal for texts that differ only in case, spacing and a final full stop."""
    normal = " ".join(text.casefold().split()).rstrip(" .")
    return hashlib.blake2b(normal.encode(), digest_size=16).digest()
