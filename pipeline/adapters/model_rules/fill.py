"""Categories of a fact by the words in it, and JSON objects filled from memories that match."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pipeline.adapters.model_rules.words import CATEGORIES
from pipeline.domain.events import Instructions
from pipeline.models.categories import BUILT_IN, MISC, offered
from pipeline.text.word_lists import STOP_WORDS

MOST_CATEGORIES = 3
# Properties with these names get all memories.
WHOLE = frozenset({"summary", "memories", "facts", "all", "everything"})


def topics(text: str, instructions: Instructions) -> tuple[str, ...]:
    """Up to MOST_CATEGORIES of the offered categories that match, or an offered `misc`."""
    tokens, meanings = frozenset(re.findall(r"[\w-]+", text.casefold())), offered(instructions)
    matching = [name for name, meaning in meanings.items() if tokens & _vocabulary(name, meaning)]
    named = tuple(name for name in matching if name != MISC)
    return named[:MOST_CATEGORIES] or (MISC,) * (MISC in meanings)


@lru_cache(maxsize=1_000)
def _vocabulary(name: str, meaning: str) -> frozenset[str]:
    """Words that match the category, singular and plural."""
    text = f"{name} {meaning}".replace("_", " ").casefold()
    plain = set(re.findall(r"\w{3,}", text)) - STOP_WORDS - {"user", "other", "about", "something"}
    if BUILT_IN.get(name) == meaning:
        plain |= CATEGORIES.get(name, frozenset())
    singular = {word.removesuffix("s") for word in plain if len(word) > 3}
    return frozenset(plain | singular | {word + "s" for word in plain})


def fill(shape: Mapping[str, Any], memories: Sequence[str]) -> dict[str, Any]:
    """Every property of a shape from the memories that match it; null or [] without one."""
    parts = shape["properties"].items()
    return {name: _value(part, _fitting(name, part, memories)) for name, part in parts}


def fill_fields(shape: Mapping[str, Any], memories: Sequence[str]) -> dict[str, Any]:
    """Every property of a profile: its value, and the numbers of its memories, from 1.

    A text is that of the newest memory that matches; a list has all of them.
    """
    numbers = {text: number for number, text in enumerate(memories, start=1)}
    fields = {}
    for name, part in shape["properties"].items():
        texts = _fitting(name, part, memories)
        texts = texts if part["type"] in ("array", "object") else texts[-1:]
        value = _value(part, texts)
        used = [numbers[text] for text in texts] if value is not None else []
        fields[name] = {"value": value, "memories": used}
    return fields


def _fitting(name: str, part: Mapping[str, Any], memories: Sequence[str]) -> list[str]:
    """The memories that match a property by its words, or by those of a built-in category."""
    if name.casefold() in WHOLE or part["type"] == "object":
        return list(memories)
    own = Instructions(categories={name: str(part.get("description", BUILT_IN.get(name, "")))})
    return [text for text in memories if topics(text, own)]


def _value(part: Mapping[str, Any], texts: Sequence[str]) -> Any:
    """The value of one property: the texts, their first number, True, or a word of the enum."""
    joined = " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in texts)
    match part["type"]:
        case "object":
            return fill(part, texts)
        case "array":
            return [_value(part["items"], [text]) for text in texts]
        case "boolean":
            return True if texts else None
        case "integer" | "number":
            number = re.search(r"\d+", joined)
            return int(number[0]) if number else None
    if "enum" in part:
        return next((word for word in part["enum"] if word.casefold() in joined.casefold()), None)
    return joined or None
