"""A cache that is bounded by the size of its values, not by their number."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from typing import Any

# A value larger than this share of the cache is not kept: it would displace many smaller ones.
LARGEST_SHARE = 0.02


class ByteCache(MutableMapping[Hashable, Any]):
    """A mapping that drops its least recently used values beyond `most_bytes`.

    `size_of`: bytes of a value with its key, as an estimate. `largest_share`: that of a single
    value.
    """

    def __init__(
        self,
        most_bytes: int,
        size_of: Callable[[Any], int],
        *,
        largest_share: float = LARGEST_SHARE,
    ) -> None:
        self._most_bytes = most_bytes
        self._largest_bytes = largest_share * most_bytes
        self._size_of = size_of
        self._values: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self.used_bytes = 0

    def __getitem__(self, key: Hashable) -> Any:
        """The value, which is now the most recently used one. Errors: KeyError."""
        _, value = self._values[key]
        self._values.move_to_end(key)
        return value

    def __setitem__(self, key: Hashable, value: Any) -> None:
        """Keep a value, unless it is too large."""
        self.pop(key, None)
        size_bytes = self._size_of(value)
        if size_bytes > self._largest_bytes:
            return
        self._values[key] = size_bytes, value
        self.used_bytes += size_bytes
        while self.used_bytes > self._most_bytes:
            del self[next(iter(self._values))]

    def __delitem__(self, key: Hashable) -> None:
        """Drop a value. Errors: KeyError."""
        size_bytes, _ = self._values.pop(key)
        self.used_bytes -= size_bytes

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
