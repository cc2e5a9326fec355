"""The precision set: questions over stores of memories, each with the memories that answer it.

One file per language: `memories` by name, `questions` with the names of their answers; an empty
list means that no memory answers. The questions were written before the cut was tuned. Every second
question of a file is held out: it is measured, but nothing is tuned on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = ("en", "de", "es", "zh")


@dataclass(frozen=True, slots=True)
class Question:
    """`answers`: names of the memories that answer it."""

    text: str
    answers: frozenset[str]
    held_out: bool


@dataclass(frozen=True, slots=True)
class PrecisionSet:
    """The memories of one person, by name, and questions about them."""

    language: str
    memories: Mapping[str, str]
    questions: Sequence[Question]


def load(language: str) -> PrecisionSet:
    """Read the set of a language."""
    data = json.loads(Path(__file__).with_name(f"{language}.json").read_text(encoding="utf-8"))
    questions = [
        Question(row["question"], frozenset(row["answers"]), held_out=bool(number % 2))
        for number, row in enumerate(data["questions"])
    ]
    return PrecisionSet(language, data["memories"], questions)
