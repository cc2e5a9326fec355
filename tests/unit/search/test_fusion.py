"""Fusion: bounds, monotony in every term, and that company changes nothing it should not."""

from __future__ import annotations

import math
import random
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.search.fusion import OWN, Place, Signals, Weights, fuse, ranked

SHARE = st.floats(0, 1)
WEIGHT = st.floats(0, 2)
TERMS = ("semantic", "lexical", "speaker", "date", "recency", "graph")
ALL = Weights(recency=0.2, graph=0.1)


@st.composite
def places(draw: st.DrawFn) -> Place:
    """A turn in a conversation of two sessions of six turns."""
    session, turn = draw(st.integers(0, 1)), draw(st.integers(0, 5))
    return Place((session, turn), session, (session, turn - 1) if turn else None)


SIGNALS = st.builds(Signals, **dict.fromkeys(TERMS, SHARE), place=st.none() | places())
CANDIDATES = st.dictionaries(st.integers(0, 9), SIGNALS, min_size=1, max_size=10)
WEIGHTS = st.builds(Weights, **{field.name: WEIGHT for field in fields(Weights)})


def test_a_score_is_the_documented_sum() -> None:
    weights = Weights(dense=0.5, lexical=0.5, speaker=0, date=0, before=0.2, after=0.1, session=0.6)
    first = Signals(semantic=0.8, place=Place(1, "s"))
    second = Signals(lexical=0.5, place=Place(2, "s", before=1))
    scores = fuse({"a": first, "b": second}, weights)
    heard = {"a": 0.4 + 0.1 * 0.25, "b": 0.25 + 0.2 * 0.4}
    session = 0.6 * sum(heard.values()) / 3
    full = 1 * (1 + 0.6 / 3)
    for key in ("a", "b"):
        fused = heard[key] + session
        assert scores[key].fused == pytest.approx(fused)
        assert scores[key].total == pytest.approx(1 - math.exp(-3.5 * fused / full))


def test_a_text_that_repeats_the_question_scores_near_one() -> None:
    same = Signals(semantic=1.0, lexical=1.0, place=Place(1, "s"))
    scores = fuse({"same": same}, Weights(), given={"dense", "lexical"})
    assert scores["same"].total == pytest.approx(0.97, abs=0.01)
    assert fuse({"same": same}, Weights())["same"].total < scores["same"].total


def test_the_scale_of_thresholds_changes_no_order() -> None:
    far = Signals(semantic=0.2, calibrated=0.9)
    near = Signals(semantic=0.3, calibrated=0.1)
    scores = fuse({"far": far, "near": near}, Weights())
    assert ranked(scores) == ["near", "far"]
    assert (scores["far"].semantic, scores["near"].semantic) == (0.9, 0.1)


def test_nothing_found_is_no_score() -> None:
    assert fuse({}, Weights()) == {}


def test_a_turn_that_says_nothing_itself_is_found_by_the_question_before_it() -> None:
    asked = Signals(semantic=0.9, lexical=0.9, place=Place(1, "s"))
    answer = Signals(place=Place(2, "s", before=1))
    elsewhere = Signals(semantic=0.2, place=Place(9, "t"))
    assert ranked(fuse({"answer": answer, "elsewhere": elsewhere, "asked": asked}, Weights())) == [
        "asked",
        "answer",
        "elsewhere",
    ]


def test_what_nobody_said_is_ranked_by_its_own_signals() -> None:
    scores = fuse({"written": Signals(semantic=0.5), "said": Signals(place=Place(1, "s"))}, ALL)
    assert scores["written"].shares["session"] == scores["written"].shares["neighbours"] == 0
    assert scores["written"].total > scores["said"].total == 0


@given(CANDIDATES, WEIGHTS)
def test_every_score_lies_between_zero_and_one(
    candidates: dict[int, Signals], weights: Weights
) -> None:
    assert all(0 <= score.total <= 1 for score in fuse(candidates, weights).values())


@given(CANDIDATES)
def test_the_shares_of_the_terms_sum_to_the_score(candidates: dict[int, Signals]) -> None:
    for score in fuse(candidates, ALL).values():
        assert sum(score.shares.values()) == pytest.approx(score.total)
        assert set(score.shares) == {*OWN, "neighbours", "session"}


@given(CANDIDATES, st.data())
def test_more_of_any_signal_never_lowers_a_score_nor_anybody_elses(
    candidates: dict[int, Signals], data: st.DataObject
) -> None:
    one = data.draw(st.sampled_from(sorted(candidates)))
    term = data.draw(st.sampled_from(TERMS))
    more = max(getattr(candidates[one], term), data.draw(SHARE))
    before = fuse(candidates, ALL)
    after = fuse(candidates | {one: candidates[one]._replace(**{term: more})}, ALL)
    assert all(after[key].total >= before[key].total - 1e-12 for key in candidates)


@given(CANDIDATES, SIGNALS)
def test_another_candidate_never_lowers_a_score(
    candidates: dict[int, Signals], another: Signals
) -> None:
    before, after = fuse(candidates, ALL), fuse(candidates | {99: another}, ALL)
    assert all(after[key].total >= before[key].total - 1e-12 for key in candidates)


@given(CANDIDATES, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(
    candidates: dict[int, Signals], shuffle: random.Random
) -> None:
    pairs = list(candidates.items())
    shuffle.shuffle(pairs)
    plain, shuffled = fuse(candidates, ALL), fuse(dict(pairs), ALL)
    assert {k: v.total for k, v in plain.items()} == {k: v.total for k, v in shuffled.items()}
    assert ranked(plain) == ranked(shuffled)


@given(st.sets(st.integers(0, 50), min_size=2), SHARE)
def test_equals_come_in_the_order_of_their_keys(keys: set[int], share: float) -> None:
    assert ranked(fuse({key: Signals(semantic=share) for key in keys}, ALL)) == sorted(keys)


@given(CANDIDATES)
def test_a_term_without_weight_changes_nothing(candidates: dict[int, Signals]) -> None:
    bare = {key: one._replace(recency=0.0, graph=0.0) for key, one in candidates.items()}
    weights = Weights()
    assert weights.recency == weights.graph == 0
    plain, without = fuse(candidates, weights), fuse(bare, weights)
    assert {k: v.total for k, v in plain.items()} == {k: v.total for k, v in without.items()}
