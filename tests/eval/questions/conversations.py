"""Conversations of two speakers in several sessions, and questions about them.

`kind` of a question: `single` (one turn answers it), `multi` (several turns), `temporal` (a date),
`update` (the answer has changed) or `unknown` (no turn answers it). `evidence`: texts that a
context must contain to answer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

UNKNOWN = "unknown"
KINDS = ("single", "multi", "temporal", "update", UNKNOWN)


@dataclass(frozen=True)
class Line:
    speaker: str
    text: str
    at: datetime

    @property
    def dated(self) -> str:
        return f"({self.at:%Y-%m-%d}) {self.speaker}: {self.text}"


@dataclass(frozen=True)
class Question:
    ask: str
    answer: str
    kind: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Conversation:
    name: str
    language: str
    sessions: Sequence[Sequence[Line]]
    questions: Sequence[Question]

    @property
    def lines(self) -> Iterator[Line]:
        for session in self.sessions:
            yield from session


def load() -> list[Conversation]:
    """All conversations, in the order of the files."""
    paths = sorted(Path(__file__).parent.glob("*.yaml"))
    return [_conversation(path.stem, yaml.safe_load(path.read_text("utf-8"))) for path in paths]


def _conversation(name: str, raw: dict[str, Any]) -> Conversation:
    sessions = [list(_lines(session)) for session in raw["sessions"]]
    return Conversation(name, raw["language"], sessions, list(map(_question, raw["questions"])))


def _lines(session: dict[str, Any]) -> Iterator[Line]:
    at = session["at"]
    said_at = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
    for line in session["lines"].strip().splitlines():
        speaker, _, text = line.partition(": ")
        yield Line(speaker, text, said_at.replace(tzinfo=UTC))


def _question(raw: dict[str, Any]) -> Question:
    unknown = raw["kind"] == UNKNOWN
    answer = UNKNOWN if unknown else str(raw["answer"])
    return Question(raw["ask"], answer, raw["kind"], tuple(map(str, raw["evidence"])))
