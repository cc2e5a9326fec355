"""Worlds: the facts of one user with the relations they state, and questions of several hops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

FOLDER = Path(__file__).parent
# Worlds that were written before the walk was read or run on them.
FOREIGN = FOLDER / "foreign"
Edge = tuple[str, str, str]


@dataclass(frozen=True)
class HopQuestion:
    """A question, and the relations that lead to its answer, in the order of the walk."""

    text: str
    path: tuple[Edge, ...]


@dataclass(frozen=True)
class World:
    """The facts of one user, each with the relations that it states."""

    name: str
    facts: tuple[tuple[str, tuple[Edge, ...]], ...]
    questions: tuple[HopQuestion, ...]


def load(folder: Path = FOLDER) -> list[World]:
    """All worlds, in the order of the files."""
    worlds = []
    for path in sorted(folder.glob("*.yaml")):
        for number, raw in enumerate(yaml.safe_load(path.read_text("utf-8"))):
            facts = tuple((fact["says"], edges(fact["states"])) for fact in raw["facts"])
            questions = tuple(HopQuestion(q["asks"], edges(q["path"])) for q in raw["questions"])
            worlds.append(World(f"{path.stem}-{number}", facts, questions))
    return worlds


def edges(lines: Sequence[str]) -> tuple[Edge, ...]:
    """Relations in the form "source | relation | target"."""
    return tuple(tuple(line.split(" | ")) for line in lines)  # type: ignore[misc]
