"""Conversations as adds: an export of ChatGPT, or lines in the form of OpenAI's API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from deploy.stack.failure import StackError

# Messages of one add. A conversation with more is added in several turns, in order.
MOST_MESSAGES = 10
# Characters of one message; the API refuses longer ones.
MOST_CHARS = 100_000
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
    texts = [message for node in reversed(branch) if (message := _chatgpt_message(node))]
    key = str(conversation.get("conversation_id") or conversation.get("id") or "")
    title = str(conversation.get("title") or key)
    for start in range(0, len(texts), MOST_MESSAGES):
        part = texts[start : start + MOST_MESSAGES]
        at = next((at for _, at in part if at is not None), None)
        messages = [message for message, _ in part]
        yield ConversationTurn(messages, title, _key(key, start, messages), at)


def _chatgpt_message(node: Mapping[str, Any]) -> tuple[dict[str, str], datetime | None] | None:
    """The text of a node and its time; None for a node without a text of a user or assistant."""
    message = node.get("message") or {}
    role = (message.get("author") or {}).get("role")
    content = message.get("content") or {}
    parts = [part for part in content.get("parts") or () if isinstance(part, str)]
    text = "\n".join(parts).strip()[:MOST_CHARS]
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    if role not in ROLES or not text or hidden:
        return None
    at = message.get("create_time")
    time = datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else None
    return {"role": role, "content": text}, time


def _api_turns(file: Path, content: bytes) -> Iterator[ConversationTurn]:
    """The turns of lines in the form of OpenAI's API."""
    for place, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            rows = orjson.loads(line)["messages"]
            texts = [
                {"role": row["role"], "content": row["content"][:MOST_CHARS]}
                for row in rows
                if row["role"] in ROLES and isinstance(row["content"], str) and row["content"]
            ]
        except (ValueError, KeyError, TypeError):
            raise StackError(f"{file}, line {place}: the file should be {FORM}.") from None
        for start in range(0, len(texts), MOST_MESSAGES):
            messages = texts[start : start + MOST_MESSAGES]
            yield ConversationTurn(messages, f"line {place}", _key(str(place), start, messages))


def _key(conversation: str, start: int, messages: list[dict[str, str]]) -> str:
    text = orjson.dumps([conversation, start, messages])
    return f"import-{hashlib.sha256(text).hexdigest()}"
