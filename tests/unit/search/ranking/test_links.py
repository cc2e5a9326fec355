"""Facts linked to an answer: they open with a name that the answer has."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from pipeline.domain.passages import PassageKey
from pipeline.search.candidates import Candidate
from pipeline.search.ranking.links import linked, near_answers, opens_with
from pipeline.text import terms

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TILL, FEE = "The shop uses a SumUp till", "SumUp takes 1.4 percent of every payment"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (FEE, TILL),
        ("The Miwe is serviced every January", "The bakery bakes in a Miwe deck oven"),
        ("Bright Field keeps thirty percent", "The record was released by Bright Field"),
        ("Imani's kit is a Gretsch", "Imani plays the drums"),
        ("Frau Öztürk arbeitet vormittags", "Frau Öztürk leitet den Empfang"),
        ("Der Liebherr gibt ab acht Grad Alarm", "Impfstoffe liegen im Kühlschrank von Liebherr"),
        ("Pablo habla wayuu", "La espera su hermano Pablo"),
    ],
)
def test_a_text_opens_with_a_name_of_the_answer(text: str, answer: str) -> None:
    assert opens_with(text, answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Songs are written by Saoirse", "The band took its songs off Spotify"),
        ("Friday is film night", "The flat is cleaned on Friday"),
        ("Dr. Sommer vertritt die Praxis", "Hausbesuche macht Dr. Brandt"),
        ("the van is a Kangoo", "The shop is near the van"),
        ("", "The shop uses a SumUp till"),
        ("1.4 percent is the fee", "The fee is 1.4 percent"),
    ],
)
def test_a_common_word_a_day_or_half_a_name_links_nothing(text: str, answer: str) -> None:
    assert not opens_with(text, answer)


def pool(*texts: str) -> list[Candidate]:
    candidates = []
    for number, text in enumerate(texts):
        candidate = Candidate(PassageKey(UUID(int=number + 1)), UUID(int=0), None, NOW)
        candidate.terms = terms.terms(text)
        candidates.append(candidate)
    sure = candidates[0].score._replace(evidence=1.0, by_topic=(1.0,))
    candidates[0].score = sure
    return candidates


def found_beside(question: str, *texts: str) -> list[str]:
    """The texts that are linked to the first one, which is a sure answer."""
    candidates = pool(*texts)
    of_key = {c.key: text for c, text in zip(candidates, texts, strict=True)}
    near = near_answers(question, candidates[:1], candidates)
    return [of_key[candidate.key] for candidate in linked(candidates[:1], near, of_key)]


def test_the_fact_about_the_named_thing_comes_with_the_answer() -> None:
    assert found_beside("Which till is used?", TILL, FEE, "The shop is closed on Sundays") == [FEE]


def test_the_name_stands_anywhere_in_the_linked_fact() -> None:
    answer, fact = "Lena runs the pastry section", "No nuts are baked because Lena is allergic"
    assert found_beside("Who runs the pastry section?", answer, fact) == [fact]
    answer, fact = "Hotel Sonne orders eighty rolls", "Hotel Sonne is invoiced monthly"
    assert found_beside("Which hotel orders rolls?", answer, fact) == [fact]


def test_a_common_word_of_both_links_nothing() -> None:
    assert found_beside("Which till?", TILL, "The lease of the shop ends in May") == []
    assert found_beside("Which pot?", "The key is under the blue pot", "Blue ink") == []


def test_a_name_that_the_question_has_links_nothing() -> None:
    assert found_beside("Where is the SumUp till?", TILL, FEE) == []


def test_a_name_of_many_memories_links_nothing() -> None:
    texts = ("Ravi uses Neovim", "Ravi likes tea", "Ravi has a cat", "Ravi is on call")
    assert found_beside("Which editor?", *texts) == []


def test_an_answer_that_is_not_sure_links_nothing() -> None:
    candidates = pool(TILL, FEE)
    candidates[0].score = candidates[0].score._replace(evidence=0.5, by_topic=(0.5,))
    assert near_answers("Which till?", candidates[:1], candidates) == []
