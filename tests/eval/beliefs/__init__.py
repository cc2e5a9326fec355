"""Belief sets: questions about the memories of one user, each with the exact set that answers it.

One file for each user: `beliefs` by name, and questions with the names of their answers. The
questions of `before` were written before the default cut compared evidence, those of `after` when
it was done: nothing was tuned on them. `everyday` asks in other words than the facts have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

HALVES = ("before", "after")
EVERYDAY = "everyday"


@dataclass(frozen=True, slots=True)
class Question:
    """`answers`: the texts that answer it."""

    text: str
    half: str
    answers: frozenset[str]


@dataclass(frozen=True, slots=True)
class BeliefSet:
    """The memories of one user, oldest first, and questions about them."""

    name: str
    texts: Sequence[str]
    questions: Sequence[Question]


def load() -> list[BeliefSet]:
    """Read all sets."""
    return [_read(path) for path in sorted(Path(__file__).parent.glob("*.yaml"))]


def _read(path: Path) -> BeliefSet:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    beliefs: Mapping[str, str] = data["beliefs"]
    questions = [
        Question(text, half, frozenset(beliefs[name] for name in answers))
        for half in HALVES
        for text, answers in data.get(half, ())
    ]
    return BeliefSet(path.stem, list(beliefs.values()), questions)
