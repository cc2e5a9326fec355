"""The short form of long texts on the console's pages."""

from __future__ import annotations

import pytest

from api.console.long_text import (
    MOST_CHARACTERS,
    MOST_LINES,
    SHORT_CHARACTERS,
    SHORT_LINES,
    characters,
    is_long,
    parts_of,
    short_form,
)
from api.console.word_marks import TextPart, diff_parts

WORDS = " ".join(f"word{n}" for n in range(1_250))


def joined(parts: list[TextPart]) -> str:
    return "".join(part.text for part in parts)


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("x" * MOST_CHARACTERS, False),
        ("x" * (MOST_CHARACTERS + 1), True),
        ("x\n" * (MOST_LINES - 1), False),
        ("x\n" * MOST_LINES, True),
    ],
)
def test_a_text_is_long_by_characters_or_lines(text: str, long: bool) -> None:
    assert is_long(parts_of(text)) == long


def test_the_short_form_of_a_text_is_its_start() -> None:
    assert joined(short_form(parts_of(WORDS))) == WORDS[:SHORT_CHARACTERS].rstrip() + "…"
    lines = joined(short_form(parts_of("x\n" * 1_000)))
    assert lines == "x\n" * (SHORT_LINES - 1) + "x…"


def test_the_short_form_of_a_difference_has_the_difference() -> None:
    for old, new in (
        (f"{WORDS} red {WORDS}", f"{WORDS} blue {WORDS}"),
        (f"red {WORDS}", f"blue {WORDS}"),
        (f"{WORDS} red", f"{WORDS} blue"),
    ):
        short = short_form(diff_parts(old, new))
        assert {part.text.strip() for part in short if part.kind != "same"} == {"red", "blue"}
        assert characters(short) < SHORT_CHARACTERS
        assert "word0" in joined(short) or "word1249" in joined(short)


def test_two_long_texts_without_a_common_word_are_both_in_the_short_form() -> None:
    short = short_form(diff_parts("a" * 9_000, "b" * 9_000))
    assert [part.kind for part in short if part.text.strip("…")] == ["removed", "added"]


def test_a_text_with_many_marks_ends_at_the_limit() -> None:
    parts = [TextPart(kind, "word ") for kind in ("same", "source") * 1_000]
    assert characters(short_form(parts)) <= SHORT_CHARACTERS + 1
