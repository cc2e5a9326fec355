"""Fills a JSON object from the memories that share words with its properties."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.adapters.model_rules.topics import topics
from pipeline.domain.events import Instructions, Question

# A property with one of these names gets all memories.
WHOLE = frozenset({"summary", "memories", "facts", "all", "everything"})


def fill(question: Question, memories: Sequence[str]) -> dict[str, Any]:
    """Every property from the memories that match its name or description.

    A property without a matching memory is null, or an empty list.
    """
    return _object(question.shape, list(memories))


def _object(shape: Mapping[str, Any], memories: Sequence[str]) -> dict[str, Any]:
    return {
        name: _value(part, _fitting(name, part, memories))
        for name, part in shape["properties"].items()
    }


def _fitting(name: str, part: Mapping[str, Any], memories: Sequence[str]) -> list[str]:
    """The memories that match a property: by its words, then by the built-in category's words."""
    if name.casefold() in WHOLE or part["type"] == "object":
        return list(memories)
    meaning = str(part.get("description", ""))
    built_in = [text for text in memories if name in topics(text, Instructions())]
    own = Instructions(categories={name: meaning})
    worded = [text for text in memories if topics(text, own)]
    return list(dict.fromkeys([*worded, *built_in]))


def _value(part: Mapping[str, Any], texts: Sequence[str]) -> Any:
    match part["type"]:
        case "object":
            return _object(part, texts)
        case "array":
            return [_scalar(part["items"], [text]) for text in texts]
        case _:
            return _scalar(part, texts)


def _scalar(part: Mapping[str, Any], texts: Sequence[str]) -> Any:
    """The value of one property: the texts, their first number, True, or a word of the enum."""
    joined = " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in texts)
    match part["type"]:
        case "boolean":
            return True if texts else None
        case "integer" | "number":
            number = re.search(r"\d+", joined)
            return int(number[0]) if number else None
        case "object":
            return _object(part, texts)
        case _:
            words = [word for word in part.get("enum", ()) if word.casefold() in joined.casefold()]
            return next(iter(words), None) if "enum" in part else joined or None


def fill_fields(question: Question, memories: Sequence[str]) -> dict[str, Any]:
    """Every property of a profile: its value, and the numbers of its memories, from 1.

    A text is that of the newest memory that matches; a list has all of them.
    """
    numbers = {text: number for number, text in enumerate(memories, start=1)}
    fields = {}
    for name, part in question.shape["properties"].items():
        fitting = sorted(_fitting(name, part, memories), key=numbers.__getitem__)
        several = part["type"] in ("array", "object")
        texts = fitting if several else fitting[-1:]
        value = _value(part, texts)
        stated = value is not None
        fields[name] = {
            "value": value,
            "memories": [numbers[text] for text in texts] if stated else [],
        }
    return fields
