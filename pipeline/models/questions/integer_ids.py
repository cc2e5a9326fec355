"""Integer ids in prompts: items are numbered from 1, and an answer refers to them by number.

Models repeat small numbers reliably, but not UUIDs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.graph.values import StoredRelation
from pipeline.models import prompts
from pipeline.models.prompts import lines

Item = TypeVar("Item")


def numbered(texts: Iterable[str]) -> str:
    """One line for each text: `1: "…"`."""
    return lines(f"{n}: {prompts.quoted(text)}" for n, text in enumerate(texts, start=1))


def dated(texts: Iterable[tuple[str, datetime | None]]) -> str:
    """One line for each text with the day it was said, if known: `1 (2026-11-22): "…"`."""
    return lines(
        f"{n} ({said_at.astimezone(UTC):%Y-%m-%d}): {prompts.quoted(text)}"
        if said_at
        else f"{n}: {prompts.quoted(text)}"
        for n, (text, said_at) in enumerate(texts, start=1)
    )


def groups(positions: Iterable[Sequence[int]]) -> str:
    """One line for each group: the numbers of its members, from 1."""
    return lines(", ".join(str(place + 1) for place in group) for group in positions)


def relations(current: Sequence[StoredRelation]) -> str:
    """One line for each relation: `1: "Anna" lives_in "Rome"`."""
    return lines(
        f"{n}: {prompts.quoted(edge.source)} {edge.relation} {prompts.quoted(edge.destination)}"
        for n, edge in enumerate(current, start=1)
    )


def check(where: str, number: int, count: int, of: str) -> None:
    """Check that a number of the answer refers to one of `count` items, numbered from 1.

    `where` names the place in the answer and `of` the items, for the message.
    Errors: MalformedAnswer.
    """
    if not 1 <= number <= count:
        raise MalformedAnswer(f"{where} is {number}, but {of} are numbered from 1 to {count}")


def item(items: Sequence[Item], number: int) -> Item:
    """The item with this number, which `check` has accepted."""
    return items[number - 1]
