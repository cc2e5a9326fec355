"""The two chat APIs: OpenAI's chat completions and Anthropic's messages.

Memories are appended to the last message in which the user speaks. Everything before them is as the
client sent it, and is the same in the next request: caches of the provider keep their prefix.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from memlane_client.storable import LONGEST_TEXT, storable

# Messages before the last one that a search reads.
MOST_EARLIER = 6

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The end of a response: its id, its text, and whether the turn goes on with tools."""

    id: str | None
    text: str
    calls_tools: bool


class Dialect(ABC):
    """Reading of requests and responses that both APIs share."""

    name: ClassVar[str]

    @abstractmethod
    def user_of(self, body: Body) -> str | None:
        """The user that the body names."""

    @abstractmethod
    def reply(self, documents: Sequence[Body]) -> Reply:
        """The reply in a response: one document, or those of a stream."""

    def conversation(self, body: Body) -> list[Body]:
        """The last texts of user and assistant, up to the message in which the user speaks last."""
        messages = _messages(body)
        end = spoken_last(messages)
        if end is None:
            return []
        texts = [(message.get("role"), _text(message)) for message in messages[: end + 1]]
        spoken = [
            {"role": role, "content": storable(text)[:LONGEST_TEXT]}
            for role, text in texts
            if role in ("user", "assistant") and text
        ]
        return spoken[-MOST_EARLIER - 1 :]

    def goes_on(self, body: Body) -> bool:
        """Tell if the request continues the user's turn: tools were called after its message."""
        messages = _messages(body)
        end = spoken_last(messages)
        return end is not None and any(map(_of_tools, messages[end + 1 :]))

    def with_memories(self, body: Body, context: str) -> Body:
        """A copy of the body with the context at the end of the last message of the user."""
        messages = list(_messages(body))
        place = spoken_last(messages)
        assert place is not None
        content = messages[place]["content"]
        if isinstance(content, str):
            content = f"{content}\n\n{context}"
        else:
            content = [*content, {"type": "text", "text": context}]
        messages[place] = {**messages[place], "content": content}
        return {**body, "messages": messages}


class ChatCompletions(Dialect):
    """OpenAI's `POST /v1/chat/completions`, which many providers speak."""

    name = "openai"

    def user_of(self, body: Body) -> str | None:
        """The field `user`."""
        return _id(body.get("user"))

    def reply(self, documents: Sequence[Body]) -> Reply:
        """The text of the first choice."""
        texts, calls, identity = [], False, None
        for document in documents:
            identity = identity or _word(document.get("id"))
            for choice in _dicts(document.get("choices")):
                if choice.get("index", 0) != 0:
                    continue
                part = choice.get("message") or choice.get("delta") or {}
                calls = calls or bool(part.get("tool_calls") or part.get("function_call"))
                texts.append(_text(part))
        return Reply(identity, storable("".join(texts))[:LONGEST_TEXT], calls)


class Messages(Dialect):
    """Anthropic's `POST /v1/messages`."""

    name = "anthropic"

    def user_of(self, body: Body) -> str | None:
        """The field `metadata.user_id`."""
        metadata = body.get("metadata")
        return _id(metadata.get("user_id")) if isinstance(metadata, dict) else None

    def reply(self, documents: Sequence[Body]) -> Reply:
        """The text of the response's text blocks."""
        texts, calls, identity = [], False, None
        for document in documents:
            message = document.get("message") if document.get("type") == "message_start" else None
            start = message if isinstance(message, dict) else document
            identity = identity or _word(start.get("id"))
            delta = document.get("delta")
            if isinstance(delta, dict):
                texts.append(_word(delta.get("text")) or "")
                calls = calls or delta.get("stop_reason") == "tool_use"
            texts.append(_text(document))
            calls = calls or document.get("stop_reason") == "tool_use"
        return Reply(identity, storable("".join(texts))[:LONGEST_TEXT], calls)


DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": ChatCompletions(),
    "/v1/messages": Messages(),
}


def parsed(content: bytes) -> Body | None:
    """A body as an object with messages; None for any other body, which is forwarded as it is."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) and _messages(body) else None


def documents(content: bytes) -> Iterator[Body]:
    """The JSON objects of a response: its body, or the data of its Server-Sent Events.

    Lines end as those of Server-Sent Events: `splitlines` would also split within texts.
    """
    text = content.decode("utf-8", errors="replace")
    lines = text.replace("\r", "\n").split("\n")
    data = [line.removeprefix("data:") for line in lines if line.startswith("data:")]
    for part in data or [text]:
        try:
            document = json.loads(part)
        except (ValueError, RecursionError):  # the end of a broken stream, or `[DONE]`
            continue
        if isinstance(document, dict):
            yield document


def spoken_last(messages: Sequence[Body]) -> int | None:
    """Index of the last message in which the user speaks; results of tools do not count.

    None if that message is an image or a recording without text: the reply is about that, and not
    about an earlier text.
    """
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") != "user":
            continue
        if _text(message):
            return place
        if _dicts(message.get("content")) and not _of_tools(message):
            return None
    return None


def _messages(body: Body) -> list[Body]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(part, dict) for part in messages):
        return []
    return messages


def _text(message: Body) -> str:
    """The text of a message: its content, or the text parts of it."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = [part for part in _dicts(content) if part.get("type", "text") == "text"]
    return "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))


def _of_tools(message: Body) -> bool:
    """Tell if a message calls tools, or has what they returned."""
    calls = message.get("tool_calls") or message.get("function_call")
    blocks = {part.get("type") for part in _dicts(message.get("content"))}
    by_role = message.get("role") in ("tool", "function")
    return bool(by_role or calls or blocks & {"tool_use", "tool_result"})


def _dicts(value: object) -> list[Body]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _id(value: object) -> str | None:
    word = _word(value)
    return storable(word) if word else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
