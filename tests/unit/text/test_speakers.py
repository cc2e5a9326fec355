"""Speakers: the person that a question names, and the name a text is signed with."""

from __future__ import annotations

import pytest

from pipeline.text.speakers import first_named, unsigned


@pytest.mark.parametrize(
    ("question", "who"),
    [
        ("Where does Maya live?", "Maya"),
        ("What is MAYA'S dog called?", "Maya"),
        ("What did Jon Keller say?", "Jon Keller"),
        ("What did Jon say?", "Jon Keller"),
        ("What did Maya tell Jon?", None),
        ("Where do they live?", None),
        ("Who likes the Mayan ruins?", None),
        ("¿Dónde vive José?", "Jose"),
        ("", None),
    ],
)
def test_a_question_names(question: str, who: str | None) -> None:
    assert first_named([question], ["Maya", "Jon Keller", "Jose", "u-4711", "Al"]) == who


def test_a_short_name_is_named_only_as_a_whole_word() -> None:
    assert first_named(["Is Al at home?"], ["Al"]) == "Al"
    assert first_named(["Is Al at home?"], ["Al Pacini"]) is None


@pytest.mark.parametrize(
    ("text", "speaker", "expected"),
    [
        ("Maya: I live in Oslo.", "Maya", "I live in Oslo."),
        ("Maya : I live in Oslo.", "Maya", "I live in Oslo."),
        ("Maya: I live in Oslo.", "Jon", "Maya: I live in Oslo."),
        ("Maya: I live in Oslo.", None, "Maya: I live in Oslo."),
        ("Maya lives in Oslo.", "Maya", "Maya lives in Oslo."),
        ("Allergies: peanuts", "Maya", "Allergies: peanuts"),
        ("Maya:", "Maya", "Maya:"),
        ("", "", ""),
    ],
)
def test_a_speaker_signs_only_with_the_own_name(
    text: str, speaker: str | None, expected: str
) -> None:
    assert unsigned(text, speaker) == expected


def test_the_first_question_that_names_one_speaker_decides() -> None:
    questions = ["And there?", "Maya or Jon?", "What did Jon say?", "Where is Maya?"]
    assert first_named(questions, ["Maya", "Jon"]) == "Jon"


def test_a_long_name_is_compared_by_its_first_words() -> None:
    name = "Jo of the House of Torres and Vega"
    assert first_named(["Where does Jo of the House of Lima live?"], [name]) == name
    assert first_named(["Where is Jo of the Garden?"], [name]) is None
