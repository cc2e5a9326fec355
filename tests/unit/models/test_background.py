"""Background of an extraction: the summary and the earlier turns within their budget."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.models.background import (
    BACKGROUND_TOKENS,
    SUMMARY_TOKENS,
    TURN_TOKENS,
    shortened,
    within_budget,
)
from pipeline.models.prompts import CONTEXT_CHARS
from pipeline.models.questions.extract import extract_prompt
from pipeline.ports import ExtractionRequest
from pipeline.text.tokens import tokens

TURN = "The train was late again this morning, and the coffee tasted of paper."
FILLER = "They spoke about trains that stop on the open line and about the weather of the week."
DATED = "Maya moved to Porto on 2026-03-04."
LONG = " ".join([FILLER] * 4 + [DATED] + [FILLER] * 4 + ["Lea was born on 2026-03-09."])


def turns(*texts: str) -> list[Message]:
    return [Message(Role.USER, text) for text in texts]


def test_a_short_background_stays_whole() -> None:
    given_turns = turns("Hi.", "I moved.")
    assert within_budget(DATED, given_turns) == (DATED, given_turns)
    assert within_budget(None, []) == (None, [])


def test_a_long_summary_keeps_its_times_in_their_order() -> None:
    brief = shortened(LONG, SUMMARY_TOKENS)
    assert tokens(LONG) > SUMMARY_TOKENS >= tokens(brief)
    assert brief.index("2026-03-04") < brief.index("2026-03-09")
    assert FILLER in brief


def test_the_newest_turns_stay() -> None:
    numbered = turns(*(f"{TURN} {n}" for n in range(10)))
    brief, shown = within_budget(LONG, numbered)
    assert brief is not None
    assert shown == numbered[-len(shown) :]
    assert 0 < len(shown) < len(numbered)
    # Without a summary there is room for more turns.
    assert len(within_budget(None, numbered)[1]) > len(shown)


def test_the_last_turn_always_stays_and_is_cut() -> None:
    _, [last] = within_budget(None, turns("先" * 5_000))
    assert len(last.content) == CONTEXT_CHARS


@given(st.text(max_size=4_000), st.lists(st.text(max_size=400), max_size=12))
def test_the_budget_holds_but_for_the_last_turn(summary: str, texts: list[str]) -> None:
    brief, shown = within_budget(summary, turns(*texts))
    spent = tokens(brief or "") + sum(tokens(turn.content) + TURN_TOKENS for turn in shown[:-1])
    assert spent <= BACKGROUND_TOKENS
    assert tokens(brief or "") <= SUMMARY_TOKENS


def test_the_extraction_prompt_has_the_shortened_background() -> None:
    message = SourcedMessage(
        Source(0, 0), Message(Role.USER, "I like tea."), datetime(2026, 3, 10, tzinfo=UTC)
    )
    numbered = turns(*(f"{TURN} {n}" for n in range(10)))
    prompt = extract_prompt(ExtractionRequest([message], numbered, summary=LONG))
    assert prompt is not None
    assert "2026-03-04" in prompt.text
    assert f"{TURN} 9" in prompt.text
    assert f"{TURN} 0" not in prompt.text
    assert LONG not in prompt.text
