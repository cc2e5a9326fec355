"""Messages of OpenAI-style histories: text is kept, every other part is replaced by its name."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from api.adds.messages import CALLS, CUT, NOT_FETCHED, NOT_READABLE, NOT_TEXT, TOO_LONG, MessageIn
from pipeline.domain.limits import LONGEST_TEXT
from pipeline.domain.messages import Message, Omission, Role


def turn(**message: Any) -> Message:
    return MessageIn.model_validate(message).turn()


def in_base64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


@pytest.mark.parametrize(
    ("name", "role"),
    {
        "tool": Role.TOOL,
        "function": Role.TOOL,
        "developer": Role.SYSTEM,
        "human": Role.USER,
        "ai": Role.ASSISTANT,
        "model": Role.ASSISTANT,
        "agent": Role.ASSISTANT,
    }.items(),
)
def test_other_names_for_a_role_are_understood(name: str, role: Role) -> None:
    assert turn(role=name, content="x").role is role


@pytest.mark.parametrize("role", ["User", "", "narrator"])
def test_an_unknown_role_is_refused_with_those_that_are_known(role: str) -> None:
    with pytest.raises(ValidationError, match="use user, assistant, system or tool"):
        MessageIn(role=role, content="x")


def test_a_tool_call_without_content_is_an_empty_turn_that_names_the_call() -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
    expected = Message(Role.ASSISTANT, "", omitted=(Omission(None, "tool_calls", CALLS),))
    assert turn(role="assistant", content=None, tool_calls=calls) == expected
    assert turn(role="assistant", function_call={"name": "weather"}) == expected
    assert turn(role="assistant", content="Let me see.", tool_calls=calls).content == "Let me see."


@pytest.mark.parametrize(
    "message",
    [{"role": "user"}, {"content": None}, {"content": " "}, {"role": "user", "content": []}],
)
def test_a_message_without_content_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="a message needs content"):
        MessageIn(**message)


def test_the_text_under_another_key_is_refused_with_the_right_one() -> None:
    with pytest.raises(ValidationError, match=r"you wrote text; did you mean content\?"):
        MessageIn.model_validate({"role": "user", "text": "hi"})


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "content": "", "tool_call_id": "1"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        {"role": "assistant", "content": None, "audio": {"id": "a"}},
    ],
)
def test_a_message_of_an_openai_conversation_may_have_no_content(message: dict[str, Any]) -> None:
    assert turn(**message).content == ""


def test_the_text_between_other_parts_is_kept_and_each_of_them_is_named() -> None:
    parts = [
        {"type": "text", "text": "This is my dog."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        "Her name is Bo.",
        {"type": "input_text", "text": "She is three."},
        {"type": "refusal", "refusal": "I cannot see it."},
        {"type": "pdf_url", "pdf_url": {"url": "https://x/y.pdf"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "<b>odd</b>"},
        7,
    ]
    message = turn(content=parts)
    assert message.content == "This is my dog.\nHer name is Bo.\nShe is three.\nI cannot see it."
    kinds = ("image_url", "input_audio", "pdf_url", "file", "unknown", "int")
    places = (1, 2, 6, 7, 8, 9)
    assert message.omitted == tuple(
        Omission(place, kind, NOT_TEXT) for place, kind in zip(places, kinds, strict=True)
    )


@pytest.mark.parametrize(
    "part",
    [
        {"type": "txt_url", "txt_url": {"url": in_base64("I like tea.")}},
        {"type": "mdx_url", "mdx_url": {"url": in_base64("\ufeffI like tea.")}},
        {"type": "mdx_url", "mdx_url": in_base64("I like tea.")},
        {"type": "txt_url", "url": in_base64("I like tea.")},
        {
            "type": "txt_url",
            "txt_url": {"url": f"data:text/plain;base64,{in_base64('I like tea.')}"},
        },
        {"type": "file", "file": {"file_data": f"data:text/x;base64,{in_base64('I like tea.')}"}},
    ],
)
def test_a_document_of_text_in_base64_is_read(part: dict[str, Any]) -> None:
    assert turn(content=[part]) == Message(Role.USER, "I like tea.")
    assert turn(content=part) == Message(Role.USER, "I like tea.")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("https://example.org/a.txt", NOT_FETCHED),
        ("http://10.0.0.1/a.txt", NOT_FETCHED),
        ("not base64!", NOT_READABLE),
        (in_base64(b"\xff\xfe"), NOT_READABLE),
        (in_base64("a\x00b"), NOT_READABLE),
        (in_base64("a" * (LONGEST_TEXT + 1)), TOO_LONG),
        ("A" * 1_000_000, TOO_LONG),
        ("data:" + "a" * 900_000, NOT_TEXT),
        ("data:application/pdf;base64,AAAA", NOT_TEXT),
        ("data:text/plain,plain", NOT_TEXT),
    ],
    ids=range(10),
)
def test_a_document_that_cannot_be_read_is_named_with_the_reason(source: str, reason: str) -> None:
    part = {"type": "mdx_url", "mdx_url": {"url": source}}
    assert turn(content=[part]).omitted == (Omission(0, "mdx_url", reason),)


def test_a_long_answer_of_a_tool_is_cut_and_a_long_turn_refused() -> None:
    long = "a" * (LONGEST_TEXT + 1)
    message = turn(role="tool", content=long)
    assert (len(message.content), message.omitted) == (LONGEST_TEXT, (Omission(None, "text", CUT),))
    with pytest.raises(ValidationError, match="32,001 characters"):
        MessageIn(role="user", content=long)
