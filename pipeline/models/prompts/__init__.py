"""Prompts of language models: one Markdown file for each prompt, so that changes can be reviewed.

A file has two parts, divided by a line `---`: instructions that do not change, and the part that
changes with each call. `$name` is a placeholder and `$$` a dollar sign; braces need no escape.

Text from users, models and owners is inserted as a JSON string: one quoted line, so that it cannot
end the string or start a section of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from string import Template
from typing import Any

from pipeline.domain.events import Instructions
from pipeline.domain.graph.values import GraphTypes, RelationRequest
from pipeline.domain.messages import Message, Role, SourcedMessage
from pipeline.models.categories import BUILT_IN, offered
from pipeline.text.relations import entity_types as types
from pipeline.text.relations import names as relations

# Maximum length of an earlier turn. It only explains pronouns, and prompt tokens cost money.
CONTEXT_CHARS = 280
NOTHING = "(none)"
# Characters that end a line or control a terminal, which JSON does not escape.
CONTROLS = str.maketrans({code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)})
DIVIDER = "\n---\n"


def render(name: str, **values: str) -> str:
    """The prompt `name` with all placeholders replaced. A `$` in a value is plain text.

    Errors: ValueError if a value is missing or the prompt has no placeholder for it.
    """
    template = _template(name)
    places = frozenset(template.get_identifiers())
    if places != values.keys():
        odd = sorted(places ^ values.keys())
        raise ValueError(f"prompt {name!r}: missing or unknown values: {', '.join(odd)}")
    return template.substitute(values)


@cache
def version(name: str) -> str:
    """Version of a prompt: 12 hex digits of the SHA-256 of its text."""
    return hashlib.sha256(_template(name).template.encode()).hexdigest()[:12]


@cache
def _template(name: str) -> Template:
    path = resources.files(__name__) / f"{name}.md"
    return Template(path.read_text(encoding="utf-8").rstrip("\n"))


def quoted(text: str) -> str:
    """The text as a JSON string: one line, in quotes."""
    return json.dumps(text, ensure_ascii=False).translate(CONTROLS)


def transcript(messages: Sequence[SourcedMessage]) -> str:
    """One line for each message, `1 user "Anna": "…"`, below a line with its minute.

    The minute is that of the speaker's clock.
    Messages of tools have no number, so no fact can refer to them; they are cut to CONTEXT_CHARS.
    """
    rows: list[str] = []
    number = 0
    for minute, group in groupby(messages, key=_minute):
        rows.append(f"said {minute}")
        for message in (sourced.message for sourced in group):
            if is_numbered(message):
                number += 1
                rows.append(f"{number} {_turn(message, message.content)}")
            else:
                rows.append(_turn(message, message.content[:CONTEXT_CHARS]))
    return lines(rows)


def is_shown(message: Message) -> bool:
    """True for a message with text, except the system's."""
    return message.role is not Role.SYSTEM and bool(message.content.strip())


def is_numbered(message: Message) -> bool:
    """True if facts can be extracted from the message. A tool's message is only context."""
    return message.role is not Role.TOOL


def turns(messages: Iterable[Message]) -> str:
    """One line for each message, in full and without a number: `user "Anna": "…"`."""
    return lines(_turn(message, message.content) for message in messages)


def form(shape: Mapping[str, Any]) -> str:
    """A JSON schema in one line."""
    return json.dumps(shape, ensure_ascii=False).translate(CONTROLS)


def entity_types(own: GraphTypes) -> str:
    """The types of entities in one line, and a line for each type of the project."""
    return lines([", ".join(types.BUILT_IN), *_described(own.entities)])


def relation_names(request: RelationRequest) -> str:
    """The names of relations in one line, and a line for each one of the project."""
    own = request.types.relations
    names = dict.fromkeys((*relations.OFFERED, *request.vocabulary))
    return lines([", ".join(name for name in names if name not in own), *_described(own)])


def _described(meanings: Mapping[str, str]) -> list[str]:
    return [f"{name}: {quoted(meaning)}" if meaning else name for name, meaning in meanings.items()]


def wishes(instructions: Instructions) -> str:
    """Instructions of the project or the call, each with a label; `(none)` without any."""
    parts = (
        ("Keep: ", instructions.includes),
        ("Leave out: ", instructions.excludes),
        ("", instructions.custom),
        ("Of what the assistant says about itself: ", instructions.agent),
    )
    return lines(f"{label}{quoted(text.strip())}" for label, text in parts if text and text.strip())


def categories(instructions: Instructions) -> str:
    """The categories to choose from. Those of a project are listed with their meanings."""
    meanings = offered(instructions)
    if meanings is BUILT_IN:
        return ", ".join(meanings)
    return lines(_described({quoted(name): meaning for name, meaning in meanings.items()}))


def _turn(message: Message, content: str) -> str:
    name = f" {quoted(message.name)}" if message.name else ""
    return f"{message.role}{name}: {quoted(content)}"


def _minute(sourced: SourcedMessage) -> str:
    return f"{sourced.said_at:%A %Y-%m-%d %H:%M}"


def lines(rows: Iterable[str]) -> str:
    """The rows as lines; `(none)` without any."""
    return "\n".join(rows) or NOTHING
