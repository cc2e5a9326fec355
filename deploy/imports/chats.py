"""Conversations as adds: an export of ChatGPT, or lines in the form of OpenAI's API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from deploy.stack.failure import StackError
from pipeline.domain.limits import LONGEST_TEXT

# Messages of one add, and bytes of their texts. A conversation with more is added in several turns,
# in order.
MOST_MESSAGES, MOST_BYTES = 10, 400_000
ROLES = ("user", "assistant")
FORM = 'an export of ChatGPT (conversations.json), or lines of {"messages": [{"role", "content"}]}'


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One add: its messages, its time, and a key that is the same each time the file is read."""

    messages: list[dict[str, str]]
    conversation: str
    key: str
    said_at: datetime | None = None


def read_turns(file: Path) -> Iterator[ConversationTurn]:
    """The turns of all conversations of a file, oldest conversation first. Errors: StackError."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise StackError(f"{file} cannot be read ({error.strerror}).") from error
    try:
        conversations = orjson.loads(content)
    except ValueError:
        yield from _api_turns(file, content)
        return
    if isinstance(conversations, dict) and "messages" in conversations:
        yield from _api_turns(file, content)
        return
    if not isinstance(conversations, list):
        raise StackError(f"{file} should be {FORM}.")
    for place, conversation in enumerate(sorted(conversations, key=_began), start=1):
        if not isinstance(conversation, dict) or not isinstance(conversation.get("mapping"), dict):
            raise StackError(f"{file}, conversation {place}: the file should be {FORM}.")
        yield from _chatgpt_turns(conversation)


def _began(conversation: Any) -> float:
    began = conversation.get("create_time") if isinstance(conversation, dict) else None
    return began if isinstance(began, int | float) else 0.0


def _chatgpt_turns(conversation: Mapping[str, Any]) -> Iterator[ConversationTurn]:
    """The turns of the branch that the conversation shows: from its last message to the first."""
    mapping, branch = conversation["mapping"], []
    name, passed = conversation.get("current_node"), set[str]()
    while isinstance(name, str) and name in mapping and name not in passed:
        passed.add(name)
        branch.append(mapping[name])
        name = mapping[name].get("parent")
    texts = [part for node in reversed(branch) for part in _chatgpt_messages(node)]
    key = str(conversation.get("conversation_id") or conversation.get("id") or "")
    title = str(conversation.get("title") or key)
    for start, end in _adds([message for message, _ in texts]):
        part = texts[start:end]
        at = next((at for _, at in part if at is not None), None)
        messages = [message for message, _ in part]
        yield ConversationTurn(messages, title, _key(key, start, messages), at)


def _chatgpt_messages(node: Mapping[str, Any]) -> list[tuple[dict[str, str], datetime | None]]:
    """The text of a node and its time; empty for a node without a text of a user or assistant."""
    message = node.get("message") or {}
    role = (message.get("author") or {}).get("role")
    content = message.get("content") or {}
    parts = [part for part in content.get("parts") or () if isinstance(part, str)]
    text = "\n".join(parts).strip()
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    if role not in ROLES or hidden:
        return []
    time = _time(message.get("create_time"))
    return [(part, time) for part in _messages(role, text)]


def _time(seconds: object) -> datetime | None:
    """A Unix time; None for anything that is no time of the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int | float) else None
    except (ValueError, OverflowError, OSError):
        return None


def _messages(role: str, text: str) -> list[dict[str, str]]:
    """A text as messages that the API takes: a long one as several, without NUL characters."""
    text = text.replace("\0", "")
    parts = (text[start : start + LONGEST_TEXT] for start in range(0, len(text), LONGEST_TEXT))
    return [{"role": role, "content": part} for part in parts if part.strip()]


def _adds(messages: Sequence[Mapping[str, str]]) -> Iterator[tuple[int, int]]:
    """The first and the last place, exclusive, of the messages of each add."""
    start, size = 0, 0
    for place, message in enumerate(messages):
        more = len(message["content"].encode())
        if place - start == MOST_MESSAGES or (place > start and size + more > MOST_BYTES):
            yield start, place
            start, size = place, 0
        size += more
    if start < len(messages):
        yield start, len(messages)


def _api_turns(file: Path, content: bytes) -> Iterator[ConversationTurn]:
    """The turns of lines in the form of OpenAI's API."""
    for place, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            rows = orjson.loads(line)["messages"]
            texts = [
                part
                for row in rows
                if row["role"] in ROLES and isinstance(row["content"], str)
                for part in _messages(row["role"], row["content"])
            ]
        except (ValueError, KeyError, TypeError):
            raise StackError(f"{file}, line {place}: the file should be {FORM}.") from None
        for start, end in _adds(texts):
            messages = texts[start:end]
            yield ConversationTurn(messages, f"line {place}", _key(str(place), start, messages))


def _key(conversation: str, start: int, messages: list[dict[str, str]]) -> str:
    text = orjson.dumps([conversation, start, messages])
    return f"import-{hashlib.sha256(text).hexdigest()}"
