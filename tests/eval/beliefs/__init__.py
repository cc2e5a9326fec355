"""Belief sets: questions about the memories of one user, each with the exact set that answers it.

One file for each user: `beliefs` by name, and questions with the names of their answers. The
questions of `before` were written before the default cut compared evidence, those of `after` when
it was done: nothing was tuned on them. `everyday` asks in other words than the facts have.
foreign/sets.yaml has 20 users more, in the manner of other systems' memories: notes without a
subject, in five languages. They were written before the cut was read or run on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HALVES = ("before", "after")
EVERYDAY = "everyday"
FOREIGN = "foreign"


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
    folder = Path(__file__).parent
    own = [(path.stem, _content(path)) for path in sorted(folder.glob("*.yaml"))]
    foreign = _content(folder / FOREIGN / "sets.yaml").items()
    return [_read(name, data) for name, data in (*own, *foreign)]


def _content(path: Path) -> Mapping[str, Any]:
    content: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def _read(name: str, data: Mapping[str, Any]) -> BeliefSet:
    beliefs: Mapping[str, str] = data["beliefs"]
    questions = [
        Question(text, half, frozenset(beliefs[name] for name in answers))
        for half in (*HALVES, FOREIGN)
        for text, answers in data.get(half, ())
    ]
    return BeliefSet(name, list(beliefs.values()), questions)
