"""Fusion of scores: bounds, monotony in every term, independence of unrelated candidates."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.passages import PassageKey
from pipeline.search.candidates import Candidate, Place, Score, Signals
from pipeline.search.ranking.fusion import fuse
from pipeline.search.weights import ANSWERING, BEST, FADING, OWN, SESSION_BEST, Weights
from tests.unit.search.candidates import candidate, key

SHARE = st.floats(0, 1)
WEIGHT = st.floats(0, 2)
TERMS = ("semantic", "lexical", "speaker", "date", "recency", "graph", "chain")
ALL = Weights(recency=0.2, graph=0.1)
Pairs = Mapping[int, tuple[Signals, Place | None]]


@st.composite
def places(draw: st.DrawFn) -> Place:
    """A turn in a conversation of two sessions with six turns each."""
    session, turn = draw(st.integers(0, 1)), draw(st.integers(0, 5))
    before = (session, turn - 1) if turn else None
    return Place((session, turn), session, before, dialogue=session == 1)


SIGNALS = st.builds(Signals, **dict.fromkeys(TERMS, SHARE))
PAIR = st.tuples(SIGNALS, st.none() | places())
PAIRS = st.dictionaries(st.integers(0, 9), PAIR, min_size=1, max_size=10)
WEIGHTS = st.builds(Weights, **{field.name: WEIGHT for field in fields(Weights)})


def fused(pairs: Pairs, weights: Weights) -> list[Candidate]:
    candidates = [candidate(number, *pair) for number, pair in pairs.items()]
    for each, number in zip(candidates, pairs, strict=True):
        each.words, each.parts = [f"word {number % 3}"], [each.signals.lexical / 3]
    return fuse(candidates, weights)


def scores(pairs: Pairs, weights: Weights) -> dict[PassageKey, Score]:
    return {each.key: each.score for each in fused(pairs, weights)}


def test_a_score_is_the_documented_sum() -> None:
    own = {"speaker": 0, "date": 0, "graph": 0, "chain": 0}
    weights = Weights(0.5, 0.5, before=0.2, after=0.1, session=0.6, **own)
    first = candidate(1, Signals(semantic=0.8), Place(1, "s"))
    second = candidate(2, Signals(lexical=0.5), Place(2, "s", before=1))
    fuse([first, second], weights)
    heard = {first: 0.4 + 0.1 * 0.25, second: 0.25 + 0.2 * 0.4}
    session = 0.6 * sum(heard.values()) / 3
    full = 1 * (1 + 0.6 / 3)
    for each in (first, second):
        expected = heard[each] + session
        assert each.score.fused == pytest.approx(expected)
        assert each.score.total == pytest.approx(1 - math.exp(-3.5 * expected / full))


def test_a_text_that_repeats_the_query_scores_near_one() -> None:
    same = candidate(1, Signals(semantic=1.0, lexical=1.0), Place(1, "s"))
    fuse([same], Weights(), {"dense", "lexical"})
    total = same.score.total
    assert total == pytest.approx(0.97, abs=0.01)
    fuse([same], Weights())
    assert same.score.total < total


def test_the_scale_of_thresholds_changes_no_order() -> None:
    far = candidate(1, Signals(semantic=0.2, calibrated=0.9))
    near = candidate(2, Signals(semantic=0.3, calibrated=0.1))
    assert fuse([far, near], Weights()) == [near, far]
    assert (far.score.semantic, near.score.semantic) == (0.9, 0.1)


def test_no_candidates_are_no_scores() -> None:
    assert fuse([], Weights()) == []


def test_a_turn_without_signals_is_found_by_the_question_before_it() -> None:
    question = candidate(1, Signals(semantic=0.9, lexical=0.9), Place(1, "s"))
    answer = candidate(2, Signals(), Place(2, "s", before=1))
    elsewhere = candidate(3, Signals(semantic=0.2), Place(9, "t"))
    assert fuse([answer, elsewhere, question], Weights()) == [question, answer, elsewhere]


def test_the_turns_beside_the_neighbours_count_too() -> None:
    first = candidate(1, Signals(semantic=1.0), Place(1, "s"))
    between = candidate(2, Signals(), Place(2, "s", before=1))
    last = candidate(3, Signals(), Place(3, "s", before=2))
    fuse([first, between, last], Weights(session=0))
    assert between.score.fused == pytest.approx(0.5 * Weights().before)
    assert last.score.fused == pytest.approx(0.5 * Weights().further)


def test_the_turn_after_a_question_counts_it_twice() -> None:
    question = candidate(1, Signals(semantic=1.0), Place(1, "s"))
    answer = candidate(2, Signals(), Place(2, "s", before=1))
    question.is_question = True
    fuse([question, answer], Weights(session=0))
    assert answer.score.beside == pytest.approx(0.5 * Weights().before * ANSWERING)


def test_a_long_message_of_a_dialogue_ranks_before_a_short_one_and_a_question() -> None:
    signals, place = Signals(semantic=0.5), Place(1, "s", dialogue=True)
    short, long, question, fact = (candidate(number, signals, place) for number in range(1, 5))
    short.length, long.length, question.length, fact.length = 2, 30, 30, 2
    question.is_question = fact.has_subject = True
    assert fuse([short, question, fact, long], Weights()) == [long, question, fact, short]
    assert sum(short.score.shares.values()) == pytest.approx(short.score.total)


def test_the_best_of_a_dialogue_counts_most_for_its_session() -> None:
    for dialogue in (False, True):
        best = candidate(1, Signals(semantic=1.0), Place(1, "s", dialogue=dialogue))
        other = candidate(2, Signals(semantic=0.2), Place(2, "s", dialogue=dialogue))
        fuse([best, other], Weights())
        mean = (0.5 + 0.1) / SESSION_BEST
        wanted = BEST * 0.5 + (1 - BEST) * mean if dialogue else mean
        assert other.score.session == pytest.approx(Weights().session * wanted)


def dialogue(*texts: Mapping[str, float]) -> list[Candidate]:
    """Messages of one dialogue in their order; each text is its words of the query."""
    messages = [
        candidate(n, Signals(), Place(n, "s", n - 1 if n else None, dialogue=True))
        for n in range(len(texts))
    ]
    for message, words in zip(messages, texts, strict=True):
        message.words, message.parts = list(words), list(words.values())
    return messages


def test_an_answer_ranks_by_the_words_of_the_turns_around_it_together() -> None:
    # "Which race did Ida train for in the hills?": the words are spread over three messages.
    spread = dialogue({"race": 0.3}, {"train": 0.2}, {"hill": 0.5})
    repeated = dialogue({"race": 0.3}, {"race": 0.3}, {"race": 0.3})
    fuse(spread, Weights())
    fuse(repeated, Weights())
    window = Weights().window
    assert spread[1].score.beside == pytest.approx(window * (0.2 + FADING * (0.3 + 0.5)))
    assert repeated[1].score.beside == pytest.approx(window * 0.3)
    assert spread[0].score.beside == pytest.approx(window * (0.3 + FADING * 0.2 + FADING**2 * 0.5))


def test_the_window_of_a_message_ends_two_turns_away() -> None:
    messages = dialogue({"race": 0.4}, {}, {}, {})
    fuse(messages, Weights())
    window = Weights().window
    assert messages[2].score.beside == pytest.approx(window * FADING**2 * 0.4)
    assert messages[3].score.beside == 0


def test_facts_and_sessions_of_one_speaker_have_no_window() -> None:
    first, fact = dialogue({"race": 0.4}, {"hill": 0.4})
    fact.has_subject = True
    alone = candidate(7, Signals(), Place(7, "t"))
    alone.words, alone.parts = ["race"], [0.4]
    fuse([first, fact, alone], Weights())
    assert first.score.beside > 0
    assert fact.score.beside == alone.score.beside == 0


def test_a_candidate_without_a_place_is_ranked_by_its_own_signals() -> None:
    written = candidate(1, Signals(semantic=0.5))
    turn = candidate(2, Signals(), Place(1, "s"))
    fuse([written, turn], ALL)
    assert written.score.shares["session"] == written.score.shares["neighbours"] == 0
    assert written.score.total > turn.score.total == 0


@given(PAIRS, WEIGHTS)
def test_every_score_lies_between_zero_and_one(pairs: Pairs, weights: Weights) -> None:
    assert all(0 <= score.total <= 1 for score in scores(pairs, weights).values())


@given(PAIRS)
def test_the_shares_of_the_terms_sum_to_the_score(pairs: Pairs) -> None:
    for score in scores(pairs, ALL).values():
        assert sum(score.shares.values()) == pytest.approx(score.total)
        assert set(score.shares) == {*OWN, "neighbours", "session"}


@given(PAIRS, st.data())
def test_more_of_any_signal_never_lowers_any_score(pairs: Pairs, data: st.DataObject) -> None:
    number = data.draw(st.sampled_from(sorted(pairs)))
    term = data.draw(st.sampled_from(TERMS))
    signals, place = pairs[number]
    more = max(getattr(signals, term), data.draw(SHARE))
    before = scores(pairs, ALL)
    after = scores({**pairs, number: (signals._replace(**{term: more}), place)}, ALL)
    assert all(after[each].total >= before[each].total - 1e-12 for each in before)


@given(PAIRS, PAIR)
def test_another_candidate_never_lowers_a_score(
    pairs: Pairs, another: tuple[Signals, Place | None]
) -> None:
    before, after = scores(pairs, ALL), scores({**pairs, 99: another}, ALL)
    assert all(after[each].total >= before[each].total - 1e-12 for each in before)


@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(pairs: Pairs, shuffle: random.Random) -> None:
    items = list(pairs.items())
    shuffle.shuffle(items)
    plain, shuffled = fused(pairs, ALL), fused(dict(items), ALL)
    assert [each.key for each in plain] == [each.key for each in shuffled]
    assert [each.score.total for each in plain] == [each.score.total for each in shuffled]


def test_a_window_is_the_same_sum_in_any_order() -> None:
    """A sum of floats depends on their order."""
    pairs = {
        number: (Signals(lexical=share), Place((1, number), 1, (1, number - 1), dialogue=True))
        for number, share in enumerate((0.1, 0.3, 0.5))
    }
    plain, turned = scores(pairs, ALL), scores(dict(reversed(pairs.items())), ALL)
    assert {k: v.total for k, v in plain.items()} == {k: v.total for k, v in turned.items()}


@given(st.sets(st.integers(0, 50), min_size=2), SHARE)
def test_equal_scores_are_ordered_by_key(numbers: set[int], share: float) -> None:
    ranked = fused({number: (Signals(semantic=share), None) for number in numbers}, ALL)
    assert [each.key for each in ranked] == [key(number) for number in sorted(numbers)]


@given(PAIRS)
def test_a_term_without_weight_changes_nothing(pairs: Pairs) -> None:
    bare = {
        number: (signals._replace(recency=0.0, graph=0.0), place)
        for number, (signals, place) in pairs.items()
    }
    weights = Weights(recency=0.0, graph=0.0)
    plain, without = scores(pairs, weights), scores(bare, weights)
    assert {k: v.total for k, v in plain.items()} == {k: v.total for k, v in without.items()}
