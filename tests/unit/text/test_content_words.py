"""Content words of questions, in four languages and beyond."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.questions import (
    MOST_WORDS,
    content_words,
    has_known_question_words,
    is_latin,
)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is Maya allergic to?", ["Maya", "allergic"]),
        ("Can you tell me what kind of films Maya likes?", ["films", "Maya"]),
        ("Wie hoch ist die Miete?", ["Miete"]),
        ("Was weißt du über Ahmet?", ["Ahmet"]),
        ("Wie heißt das Kind von Jonas?", ["Kind", "Jonas"]),
        ("¿Qué sabes de Andrés?", ["Andrés"]),
        ("¿Cuántos años tiene Lucía?", ["años", "Lucía"]),
        ("陈薇对什么过敏？", ["陈薇", "过敏"]),
        ("关于土豆你知道什么？", ["土豆"]),
        ("What do you know about me?", []),
        ("Was weißt du über mich?", []),
        ("你知道什么？", []),
        ("", []),
    ],
)
def test_words_that_only_ask_are_left_out(question: str, words: list[str]) -> None:
    assert [word.text for word in content_words(question)] == words


def test_a_word_counts_once_in_all_of_its_forms() -> None:
    [word] = content_words("Maya, Maya's and MAYA")
    assert (word.text, word.terms) == ("Maya", ("maya",))


def test_numbers_months_and_weekdays_are_times() -> None:
    words = content_words("Where did Maya hike in July 2025 on a Monday?")
    assert [word.text for word in words if word.is_time] == ["July", "2025", "Monday"]


def test_a_script_with_unknown_question_words_is_recognised() -> None:
    assert has_known_question_words("¿Dónde vive Lucía?")
    assert has_known_question_words("陈薇住在哪里？")
    assert not has_known_question_words("私の猫の名前は何ですか")
    assert not has_known_question_words("Где живёт Майя?")
    assert is_latin("Wo wohnt Maya?")
    assert not is_latin("陈薇住在哪里？")


@given(st.text(max_size=200))
def test_any_text_has_a_bounded_number_of_different_words(text: str) -> None:
    words = content_words(text)
    assert len({word.terms for word in words}) == len(words) <= MOST_WORDS
    assert all(word.text and word.terms for word in words)
