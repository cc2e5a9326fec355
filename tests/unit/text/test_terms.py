"""The tokenizer: terms in four languages, and its limits for any input."""

from __future__ import annotations

import asyncio
import sys
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.equality import same_text
from pipeline.text.marks import MOST_MARKS, bounded
from pipeline.text.terms import (
    LONGEST_WORD,
    MOST_ASKED,
    MOST_AT_ONCE,
    MOST_TERMS,
    cut,
    fold,
    query_terms,
    root,
    stem,
    terms,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Maya's dogs loved the Köln zoo", ["maya", "dog", "love", "koln", "zoo"]),
        ("What did she buy? She bought two bikes.", ["buy", "buy", "two", "bike"]),
        ("Wir fahren über die Brücke nach Köln", ["fahren", "die", "bruck", "koln"]),
        ("¿Dónde está el café de Álvaro?", ["cafe", "alvaro"]),
        ("她喜欢绿茶。", ["她喜", "喜欢", "欢绿", "绿茶"]),
        ("茶", ["茶"]),
        ("GPT-4 costs 12.50 €", ["gpt", "4", "cost", "12", "50"]),
        ("I don’t know", ["don", "know"]),
        ("", []),
        ("the and of", []),
    ],
)
def test_a_text_is_cut_into(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("hiking", "hikes"),
        ("lives", "lived"),
        ("leaves", "left"),
        ("bought", "buy"),
        ("children", "child"),
        ("Müller", "MULLER"),
        ("Straße", "STRASSE"),
        ("gatos", "gato"),
        ("Hunde", "Hund"),
        ("ｆｕｌｌ", "full"),
    ],
)
def test_forms_of_one_word_are_one_term(word: str, other: str) -> None:
    assert terms(word) == terms(other) != []


@pytest.mark.parametrize(
    ("word", "compound"),
    [
        ("Versicherungen", "Krankenversicherungskarte"),
        ("Katze", "Katzenfutter"),
        ("Räder", "Fahrradschlauch"),
        ("Hunde", "Hundeschule"),
    ],
)
def test_a_word_keeps_its_root_inside_a_compound(word: str, compound: str) -> None:
    assert root(terms(word)[0]) in terms(compound)[0]


@pytest.mark.parametrize("word", ["war", "die", "hat", "mit", "sin"])
def test_what_means_something_in_another_language_is_no_stop_word(word: str) -> None:
    assert terms(word)


def test_long_texts_and_questions_are_bounded() -> None:
    words = " ".join(f"word{n}x" for n in range(5_000))
    assert len(terms(words)) == MOST_TERMS
    assert len(query_terms(words)) == MOST_ASKED
    assert terms("x" * (LONGEST_WORD + 1)) == []


async def test_other_work_goes_on_while_long_texts_are_cut() -> None:
    texts = [" ".join(f"word{n}x" for n in range(1_000))] * (MOST_AT_ONCE // 5_000)
    cutting = asyncio.create_task(cut(texts))
    turns = 0
    while not cutting.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 2
    assert cutting.result() == [terms(text) for text in texts]


@given(st.text())
def test_any_text_can_be_cut_and_its_terms_are_storable(text: str) -> None:
    for term in terms(text):
        assert term
        assert " " not in term
        assert "\0" not in term


@given(st.text(st.characters(codec="utf-8")))
def test_one_text_has_the_same_terms_however_its_accents_are_written(text: str) -> None:
    assert terms(unicodedata.normalize("NFC", text)) == terms(unicodedata.normalize("NFD", text))


MARKS = "\u0345\u0301\u0316\u0334"


@pytest.mark.parametrize(
    "text",
    [
        "a" + "".join(mark * 125_000 for mark in MARKS),
        "a" + MARKS * 125_000,
        "a" + "\u0301\uff9e" * 250_000,
        "a" + "\u0f73\u0301" * 250_000,
        ("a" + "\u0301\u0316" * 15) * 16_000,
        ("a" + "\u0344\u0316" * 15) * 16_000,
    ],
    ids=["in blocks", "in turns", "half width", "that decompose", "just allowed", "that double"],
)
@pytest.mark.parametrize("form", [fold, same_text], ids=["fold", "same_text"])
def test_half_a_million_marks_are_folded_in_linear_time(
    text: str, form: Callable[[str], str]
) -> None:
    began = time.process_time()
    assert form(text)
    assert time.process_time() - began < 3


def test_every_mark_that_unicode_reorders_is_bounded() -> None:
    for code in range(sys.maxunicode + 1):
        mark = chr(code)
        decomposed = unicodedata.normalize("NFKD", mark)
        if unicodedata.combining(decomposed[0]):
            assert len(bounded("a" + mark * 40)) == 1 + MOST_MARKS, hex(code)


def test_ordinary_marks_stay() -> None:
    text = "z" + "\u0351\u034c\u0315" * 10 + "algo नमस्ते — …"
    assert bounded(text) == text


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.from_regex(r"[a-z]{1,20}", fullmatch=True))
def test_a_stem_is_never_empty(word: str) -> None:
    assert stem(word)
