"""Equality of texts: a hash for stored memories, and a broader key for the facts of a batch."""

from __future__ import annotations

import hashlib
import unicodedata

from pipeline.text.marks import bounded


def text_hash(text: str) -> bytes:
    """Return a hash that ignores case, spacing and final full stops.

    The hashes are stored, and no two active memories of a lane have the same one: a change of this
    function needs a migration.
    """
    normal = " ".join(text.casefold().split()).rstrip(" .")
    return hashlib.blake2b(normal.encode(), digest_size=16).digest()


def same_text(text: str) -> str:
    """Return a key that ignores case, spacing, the form of letters, and final full stops."""
    folded = unicodedata.normalize("NFKC", bounded(text)).casefold()
    return " ".join(folded.split()).rstrip(".!。 ")
