"""Readings of sentences by `local/rules`, and tables of such sentences.

A line of a table has steps divided by "=>"; "-" means none, and "|" divides facts, memories or
edges.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.facts import Fact
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.ports import ExtractionRequest

# A Monday.
SAID_AT = datetime(2026, 3, 9, 18, 30, tzinfo=UTC)


def table(text: str) -> list[tuple[str, ...]]:
    """The lines of a table, as their steps."""
    return [tuple(line.split(" => ")) for line in text.strip().split("\n")]


def parts(text: str) -> list[str]:
    """The facts, memories or edges of a step."""
    return [] if text == "-" else text.split(" | ")


async def read(line: str) -> tuple[Fact, ...]:
    """The facts of a message."""
    sourced = SourcedMessage(Source(0, 0), Message(Role.USER, line), SAID_AT)
    return (await RulesModel().extract(ExtractionRequest([sourced]))).value
