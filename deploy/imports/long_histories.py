"""Memories with more versions than one request of an import can have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson

# Of one line: below the limits that a request has by default.
LARGEST_BYTES, MOST_VALUES = 900_000, 18_000
VERSIONS = ("history", "past_states")
# At most as many values as signs that begin one.
STARTS = (b",", b"[", b"{")


def shortened(line: bytes) -> tuple[bytes, int]:
    """The line, of a memory without the oldest versions that do not fit; and their number.

    A line of another type stays as it is.
    """
    if len(line) <= LARGEST_BYTES and _values(line) <= MOST_VALUES:
        return line, 0
    record = orjson.loads(line)
    if record.get("type") != "memory":
        return line, 0
    first = _first_that_fits(record)
    versions = {part["version"] for part in record.get("history", ())}
    for name in VERSIONS:
        record[name] = [part for part in record.get(name, ()) if part["version"] >= first]
    return orjson.dumps(record), sum(version < first for version in versions)


def _first_that_fits(record: Mapping[str, Any]) -> int:
    """The oldest version that fits with all later ones; at least the newest."""
    sizes, values = Counter[int](), Counter[int]()
    for name in VERSIONS:
        for part in record.get(name, ()):
            text = orjson.dumps(part)
            sizes[part["version"]] += len(text) + 1
            values[part["version"]] += _values(text) + 1
    rest = orjson.dumps({name: value for name, value in record.items() if name not in VERSIONS})
    size, number = len(rest), _values(rest)
    newest_first = sorted(sizes, reverse=True)
    first = newest_first[0] if newest_first else 1
    for version in newest_first:
        size, number = size + sizes[version], number + values[version]
        if version != first and (size > LARGEST_BYTES or number > MOST_VALUES):
            break
        first = version
    return first


def _values(text: bytes) -> int:
    """The most values that a JSON text can have."""
    return sum(map(text.count, STARTS))
