"""Limits of single values, in requests and in the lines of an import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from unicodedata import category

import orjson
from pydantic import AfterValidator, Field

# Limit of messages and memories alike, so that `infer=false` can store every message verbatim.
LONGEST_TEXT = 32_000
LONGEST_NAME = 512
LONGEST_REASON = 2_000
MOST_MESSAGES = 500
MOST_PARTS = 200
MOST_CATEGORIES = 100
LARGEST_METADATA_BYTES = 32_000
DEEPEST_METADATA = 16
# Source: https://trojansource.codes, the characters that reorder the text around them.
DIRECTION_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def short(limit: int, advice: str) -> tuple[Any, Any]:
    """Annotations for a text of at most `limit` characters."""

    def check(text: str) -> str:
        return checked(text, limit, advice)

    return AfterValidator(check), Field(json_schema_extra={"maxLength": limit})


def checked(text: str, limit: int, advice: str) -> str:
    """The text. Errors: ValueError with `advice` if it is too long."""
    if len(text) > limit:
        raise ValueError(
            f"this text has {len(text):,} characters, the limit is {limit:,}; {advice}"
        )
    return text


def one_line(text: str) -> str:
    """The name. Errors: ValueError for characters that change how a line is shown.

    Control characters, line breaks, and overrides of the writing direction. Marks such as U+200F
    stay, because names in Arabic and Hebrew use them.
    """
    for at, character in enumerate(text):
        if category(character) in ("Cc", "Zl", "Zp") or character in DIRECTION_OVERRIDES:
            raise ValueError(
                f"a name is one line without control characters; remove U+{ord(character):04X} at"
                f" character {at + 1}"
            )
    return text


def depth(value: object) -> int:
    """Number of levels of nested objects and lists; stops counting after DEEPEST_METADATA."""
    levels, parts = 0, [value]
    while nested := [part for part in parts if isinstance(part, dict | list)]:
        levels += 1
        if levels > DEEPEST_METADATA:
            break
        parts = [inner for part in nested if isinstance(part, list) for inner in part]
        parts += [inner for part in nested if isinstance(part, dict) for inner in part.values()]
    return levels


def small(limit_bytes: int, advice: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A validator that limits an object's depth and bytes."""

    def check(value: dict[str, Any]) -> dict[str, Any]:
        if depth(value) > DEEPEST_METADATA:
            raise ValueError(f"this object nests deeper than {DEEPEST_METADATA} levels; flatten it")
        try:
            size_bytes = len(orjson.dumps(value))
        except orjson.JSONEncodeError:
            raise ValueError("this object holds a number of more than 64 bits") from None
        if size_bytes > limit_bytes:
            raise ValueError(
                f"this object has {size_bytes:,} bytes as JSON, the limit is {limit_bytes:,}; "
                f"{advice}"
            )
        return value

    return check


MemoryText = Annotated[str, *short(LONGEST_TEXT, "split it over several memories")]
PersonName = Annotated[str, *short(LONGEST_NAME, "shorten the name"), AfterValidator(one_line)]
Metadata = Annotated[
    dict[str, Any],
    AfterValidator(small(LARGEST_METADATA_BYTES, "keep large values elsewhere")),
]
