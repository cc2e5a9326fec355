"""Planted pairs of names: of one thing, and of two things that are named alike."""

from __future__ import annotations

from pathlib import Path

import yaml

PAIRS = Path(__file__).parent / "pairs.yaml"
NamePair = tuple[str, str, str]


def pairs(which: str) -> list[NamePair]:
    """The type and the two names of each pair. `which`: aliases or look_alikes."""
    kinds = yaml.safe_load(PAIRS.read_text("utf-8"))[which]
    return [(kind, *row.split(" | ")) for kind, rows in kinds.items() for row in rows]
