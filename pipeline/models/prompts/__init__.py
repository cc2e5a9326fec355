"""The words shown to language models: one Markdown file a prompt, for anyone to review and diff.

A file holds the standing instructions, a line `---`, and what changes from call to call. `$name`
marks a place to fill (`$$` is a dollar sign), so JSON braces stand as they are.

What users and models wrote is put in as a JSON string: one line, in quotes, that nothing inside can
leave. Only the project's own wishes stand unquoted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from functools import cache
from importlib import resources
from itertools import groupby
from string import Template
from typing import Any

from pipeline.domain.events import Instructions
from pipeline.domain.graph import StoredRelation
from pipeline.domain.messages import Message, Role, SourcedMessage
from pipeline.models.categories import BUILT_IN, offered

# An earlier turn only explains pronouns: its start is enough, and prompt tokens are paid for.
CONTEXT_CHARS = 280
NOTHING = "(none)"
DIVIDER = "\n---\n"


def render(name: str, **values: str) -> str:
    """The prompt `name` with every place filled.

    Values are put in as they are: a `$` in them is text, never a place.

    Errors: ValueError where a value is missing or the prompt has no place for it.
    """
    template = _template(name)
    places = frozenset(template.get_identifiers())
    if places != values.keys():
        odd = sorted(places ^ values.keys())
        raise ValueError(f"prompt {name!r}: missing or unknown values: {', '.join(odd)}")
    return template.substitute(values)


@cache
def version(name: str) -> str:
    """Twelve hex digits that change whenever the prompt's text does."""
    return hashlib.sha256(_template(name).template.encode()).hexdigest()[:12]


@cache
def _template(name: str) -> Template:
    path = resources.files(__name__) / f"{name}.md"
    return Template(path.read_text(encoding="utf-8").rstrip("\n"))


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def numbered(texts: Iterable[str]) -> str:
    """`1: "…"`, one a line: models name small numbers faithfully and UUIDs not."""
    return _lines(f"{n}: {quoted(text)}" for n, text in enumerate(texts, start=1))


def transcript(messages: Sequence[SourcedMessage]) -> str:
    """`1 user "Anna": "…"`, one a line, with the time (UTC) above those said in the same minute.

    A tool's answer has no number, so no fact can name it, and is cut to CONTEXT_CHARS.
    """
    lines: list[str] = []
    number = 0
    for minute, group in groupby(messages, key=_minute):
        lines.append(f"said {minute}")
        for said in group:
            if is_numbered(said.message):
                number += 1
                lines.append(f"{number} {_turn(said.message, said.message.content)}")
            else:
                lines.append(_turn(said.message, said.message.content[:CONTEXT_CHARS]))
    return _lines(lines)


def is_numbered(message: Message) -> bool:
    """Whether a fact can be read from the message; a tool's answer is only context."""
    return message.role is not Role.TOOL


def earlier_turns(turns: Sequence[Message]) -> str:
    """`user "Anna": "…"`, one a line, each cut to CONTEXT_CHARS."""
    return _lines(_turn(turn, turn.content[:CONTEXT_CHARS]) for turn in turns)


def form(shape: Mapping[str, Any]) -> str:
    """A JSON schema in one line."""
    return json.dumps(shape, ensure_ascii=False)


def edges(relations: Sequence[StoredRelation]) -> str:
    """`1: "Anna" lives_in "Rome"`, one a line."""
    return _lines(
        f"{n}: {quoted(edge.source)} {edge.relation} {quoted(edge.destination)}"
        for n, edge in enumerate(relations, start=1)
    )


def wishes(instructions: Instructions) -> str:
    """What the project or the call asks of its memory, in its own words."""
    parts = (
        ("Keep: ", instructions.includes),
        ("Leave out: ", instructions.excludes),
        ("", instructions.custom),
        ("Of what the assistant says about itself: ", instructions.agent),
    )
    return _lines(f"{label}{text.strip()}" for label, text in parts if text and text.strip())


def categories(instructions: Instructions) -> str:
    """The names to choose from; with what each is for where it is not built in and says so."""
    found = offered(instructions)
    if found is BUILT_IN:
        return ", ".join(found)
    return _lines(f"{name}: {meaning}" if meaning else name for name, meaning in found.items())


def _turn(message: Message, content: str) -> str:
    name = f" {quoted(message.name)}" if message.name else ""
    return f"{message.role}{name}: {quoted(content)}"


def _minute(said: SourcedMessage) -> str:
    return f"{said.said_at.astimezone(UTC):%A %Y-%m-%d %H:%M}"


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) or NOTHING
