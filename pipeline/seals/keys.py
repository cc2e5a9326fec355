"""Keys that sign seals, and the bytes of a signed message."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import orjson

from pipeline.domain.errors import InvalidInput

Part = str | int | bytes | UUID | datetime | None


class SealKeys:
    """The keys of the server by id; the first one signs, the others only verify. May be empty."""

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        self._by_id = {key_id(key): key for key in keys}

    def __bool__(self) -> bool:
        return bool(self._by_id)

    @property
    def current(self) -> str:
        """Id of the key that signs. Errors: InvalidInput if there is none."""
        if not self._by_id:
            raise InvalidInput("Tamper evidence needs a key: set MEMLANE_SEAL_KEY on the server.")
        return next(iter(self._by_id))

    def knows(self, key_id: str) -> bool:
        """Tell if there is a key with this id."""
        return key_id in self._by_id

    def sign(self, *parts: Part) -> bytes:
        """HMAC-SHA256 of a message with the current key."""
        return hmac.digest(self._by_id[self.current], message(*parts), "sha256")

    def mac(self, key_id: str, *parts: Part) -> bytes:
        """HMAC-SHA256 of a message with a known key."""
        return hmac.digest(self._by_id[key_id], message(*parts), "sha256")

    def verifies(self, key_id: str, signature: bytes, *parts: Part) -> bool:
        """Tell if the signature is that of this message with this key. False for unknown keys."""
        return key_id in self._by_id and hmac.compare_digest(signature, self.mac(key_id, *parts))

    def verifies_format_1(self, signature: bytes, written: bytes) -> bool:
        """Tell if any key signed these bytes. Release 0.1.0 did not name the key."""
        return any(
            hmac.compare_digest(signature, hmac.digest(key, written, "sha256"))
            for key in self._by_id.values()
        )


def key_id(key: bytes) -> str:
    """Short hash that names a key; it does not disclose the key."""
    return hashlib.sha256(b"memlane seal key:" + key).hexdigest()[:8]


def message(*parts: Part) -> bytes:
    """Unambiguous bytes of a message: a JSON array. Times are microseconds since 1970."""
    return orjson.dumps([_plain(part) for part in parts])


def _plain(part: Part) -> str | int | None:
    match part:
        case bytes():
            return part.hex()
        case UUID():
            return str(part)
        case datetime():
            return round(part.timestamp() * 1_000_000)
        case _:
            return part
