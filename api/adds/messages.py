"""Messages of OpenAI-style conversations: their text, and the parts that are not text.

An add is never refused because of one part. Parts that cannot be stored (an image, a tool call, a
document behind a URL) are left out, and named with the reason on the event's receipt.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    PrivateAttr,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from api.http.limits import SPLIT
from pipeline.domain.limits import LONGEST_TEXT, MOST_MESSAGES, MOST_PARTS, PersonName, checked
from pipeline.domain.messages import Message, Omission, Role

# Other names of roles: those of OpenAI, LangChain, Gemini and Mem0.
ROLES = {role.value: role for role in Role} | {
    "agent": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "developer": Role.SYSTEM,
    "function": Role.TOOL,
    "human": Role.USER,
}
# Types of parts with a document, and the key of the document: a data URL or base64.
DOCUMENTS = {"txt_url": "url", "mdx_url": "url", "file": "file_data", "input_file": "file_data"}
TEXT_KINDS = ("text/", "application/json", "application/xml", "application/yaml")
# Types of parts come from the client: only plain words are shown on a receipt.
PART_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,39}", re.IGNORECASE)

CONTENT: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "maxLength": LONGEST_TEXT},
        {"type": "array", "items": {"type": "object"}, "maxItems": MOST_PARTS},
        {"type": "null"},
    ]
}
# Keys that a message may have instead of content.
INSTEAD = ("tool_calls", "function_call", "refusal", "audio")
NOT_TEXT = "only text can be remembered"
NOT_FETCHED = "a document behind a URL is not fetched; send its text, or the document as base64"
NOT_READABLE = "this document is no text in UTF-8"
TOO_LONG = (
    f"this document has more than {LONGEST_TEXT:,} characters; split it over several messages"
)
NO_CONTENT = 'a message needs content: {"role": "user", "content": "…"}'
# Keys that other APIs use for the text of a message.
TEXT_KEYS = ("text", "message", "body", "contents", "value")
CALLS = "tool calls are not kept; what the tool answers is, as context"
CUT = f"cut after {LONGEST_TEXT:,} characters"


class PartLeftOut(Exception):
    """A part that is left out; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Content:
    """The text of a message, and the parts that were left out."""

    text: str
    omitted: tuple[Omission, ...] = ()


class MessageIn(BaseModel):
    """One message. `content` is a string or a list of parts. Parts `{"type": "text", "text": …}`
    and base64 documents of text are stored; images, audio and files are left out and named on the
    receipt.
    """

    role: str = Field(
        default="user",
        description="user, assistant, system or tool; also developer, function, agent, human, ai.",
    )
    content: Annotated[Any, WithJsonSchema(CONTENT)] = None
    name: PersonName | None = None
    tool_calls: Any = Field(default=None, description="Left out, and named on the receipt.")
    function_call: Any = Field(default=None, description="The older form of `tool_calls`.")
    _content: Content = PrivateAttr(default=Content(""))

    @field_validator("role")
    @classmethod
    def known_role(cls, value: str) -> str:
        """Replace another name of a role by ours."""
        if value not in ROLES:
            raise ValueError(f"{value!r} is not a role; use user, assistant, system or tool")
        return ROLES[value].value

    @model_validator(mode="before")
    @classmethod
    def has_content(cls, value: Any) -> Any:
        """Refuse a message without content, which would be lost.

        Tool calls, what a tool answers, a refusal and audio are messages without content.
        """
        if not isinstance(value, dict) or value.get("role") in ("tool", "function"):
            return value
        content = value.get("content")
        blank = not content.strip() if isinstance(content, str) else content is None
        if (blank or content == []) and not any(value.get(key) for key in INSTEAD):
            wrote = next((key for key in TEXT_KEYS if value.get(key)), None)
            hint = f"you wrote {wrote}; did you mean content? " if wrote else ""
            raise ValueError(hint + NO_CONTENT)
        return value

    @model_validator(mode="after")
    def text_and_rest(self) -> MessageIn:
        """Join the content into one text, and list the parts that are left out."""
        texts, omitted = _parts(self.content)
        if self.tool_calls or self.function_call:
            omitted.append(Omission(None, "tool_calls", CALLS))
        text = "\n".join(texts)
        if len(text) > LONGEST_TEXT and self.role == Role.TOOL:  # only context, so it is cut
            text = text[:LONGEST_TEXT]
            omitted.append(Omission(None, "text", CUT))
        self._content = Content(checked(text, LONGEST_TEXT, SPLIT), tuple(omitted))
        return self

    def turn(self) -> Message:
        """The message's text and omitted parts."""
        return Message(Role(self.role), self._content.text, self.name, self._content.omitted)


def _parts(content: Any) -> tuple[list[str], list[Omission]]:
    parts = content if isinstance(content, list) else [] if content is None else [content]
    if len(parts) > MOST_PARTS:
        raise ValueError(f"a message has at most {MOST_PARTS} parts; join their texts")
    texts: list[str] = []
    omitted: list[Omission] = []
    for number, part in enumerate(parts):
        try:
            texts.append(_text(part))
        except PartLeftOut as reason:
            omitted.append(Omission(number, _name(part), str(reason)))
    return texts, omitted


def _text(part: Any) -> str:
    """The text of one part. Errors: PartLeftOut."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise PartLeftOut(NOT_TEXT)
    for key in ("text", "refusal"):
        if isinstance(part.get(key), str):
            return str(part[key])
    if source := next(_sources(part), None):
        return _document(source, bare=part.get("type") in ("txt_url", "mdx_url"))
    raise PartLeftOut(NOT_TEXT)


def _sources(part: dict[str, Any]) -> Iterator[str]:
    """The document of a part, in an object under the part's type, or beside it."""
    kind = str(part.get("type"))
    if (key := DOCUMENTS.get(kind)) is None:
        return
    for holder in (part.get(kind), part):
        value = holder.get(key) if isinstance(holder, dict) else holder
        if isinstance(value, str):
            yield value


def _document(source: str, *, bare: bool) -> str:
    """The text of a base64 document. Errors: PartLeftOut."""
    if source.startswith(("http://", "https://")):
        raise PartLeftOut(NOT_FETCHED)
    if source.startswith("data:"):
        header, _, source = source.removeprefix("data:").partition(",")
        if not header.endswith(";base64") or not header.startswith((";", *TEXT_KINDS)):
            raise PartLeftOut(NOT_TEXT)
    elif not bare:
        raise PartLeftOut(NOT_TEXT)
    return _decoded("".join(source.split()))


def _decoded(encoded: str) -> str:
    if len(encoded) > LONGEST_TEXT * 6:  # at most 4 bytes for a character, plus 1/3 for base64
        raise PartLeftOut(TOO_LONG)
    try:
        text = base64.b64decode(encoded, validate=True).decode("utf-8-sig")
    except (binascii.Error, UnicodeDecodeError):
        raise PartLeftOut(NOT_READABLE) from None
    if "\x00" in text:
        raise PartLeftOut(NOT_READABLE)
    if len(text) > LONGEST_TEXT:
        raise PartLeftOut(TOO_LONG)
    return text


def _name(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    return kind if isinstance(kind, str) and PART_NAME.fullmatch(kind) else "unknown"


def as_list(value: object) -> object:
    """Accept a bare string as one user message, and a bare object as one message."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return [value] if isinstance(value, dict) else value


Messages = Annotated[
    list[MessageIn], Field(min_length=1, max_length=MOST_MESSAGES), BeforeValidator(as_list)
]
