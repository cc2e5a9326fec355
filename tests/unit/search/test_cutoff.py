"""Selection: who may come back, and where the strict cut falls."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.passages import FACT, PassageKey
from pipeline.search.cutoff import AT_LEAST, AT_MOST, Scores, Selection, looked_at, standing_out
from pipeline.search.fusion import Score, Signals, Weights

SHARE = st.floats(0, 1)
LOOK = AT_LEAST


def key(number: int, *, turn: bool = False) -> PassageKey:
    return PassageKey(UUID(int=number), 0 if turn else FACT)


def score(
    total: float = 0.0,
    *,
    semantic: float = 0.0,
    lexical: float = 0.0,
    reranked: float | None = None,
) -> Score:
    return Score(total, Signals(semantic, lexical), Weights(), 0.0, 0.0, reranked, fused=total)


SCORES = st.builds(score, SHARE, semantic=SHARE, lexical=SHARE)
FOUND = st.dictionaries(st.builds(key, st.integers(0, 20), turn=st.booleans()), SCORES)


def order(scores: Scores) -> list[PassageKey]:
    return sorted(scores, key=lambda one: (-scores[one].total, one))


# ── the threshold, and words ─────────────────────────────────────────────────────────────────────


def test_the_threshold_is_compared_with_the_semantic_score_where_there_is_one() -> None:
    far, near, turn = key(1), key(2), key(3, turn=True)
    scores = {far: score(0.9, semantic=0.2), near: score(0.5, semantic=0.3), turn: score(0.1)}
    assert Selection(10, threshold=0.3).best(order(scores), scores) == [near]
    bare = Selection(10, threshold=0.3, bare={turn})
    assert bare.best(order(scores), scores) == [near, turn]


def test_with_keyword_search_a_word_of_the_question_is_enough() -> None:
    worded, neither = key(1), key(2)
    scores = {worded: score(0.9, semantic=0.2, lexical=0.01), neither: score(0.8, semantic=0.2)}
    assert Selection(10, threshold=0.3).best(order(scores), scores) == []
    assert Selection(10, threshold=0.3, by_words=True).best(order(scores), scores) == [worded]


@given(FOUND, SHARE)
def test_keyword_search_loses_nothing_that_came_without_it(
    scores: dict[PassageKey, Score], threshold: float
) -> None:
    without = Selection(1_000, threshold).best(order(scores), scores)
    more = Selection(1_000, threshold, by_words=True).best(order(scores), scores)
    assert [one for one in more if one in without] == without


# ── the strict cut ───────────────────────────────────────────────────────────────────────────────


def totals(*values: float) -> dict[PassageKey, Score]:
    return {key(number): score(value) for number, value in enumerate(values)}


def stand_out(*values: float) -> int:
    scores = totals(*values)
    return len(standing_out(order(scores), scores, LOOK))


def test_the_cut_is_where_the_scores_part() -> None:
    assert stand_out(0.9, 0.1, 0.1, 0.05) == 1
    assert stand_out(0.9, 0.85, 0.8, 0.1, 0.05) == 3
    assert stand_out(0.5, 0.48, *[0.2] * LOOK) == 2


def test_where_all_are_about_as_good_all_are_kept() -> None:
    assert stand_out(0.45, 0.44) == 2
    assert stand_out(0.3, 0.29, 0.28, 0.27) == 4


def test_nothing_found_is_nothing_cut() -> None:
    assert standing_out([], {}, LOOK) == []
    assert stand_out(0.0, 0.0) == 2


def test_four_are_looked_at_for_each_result_within_bounds() -> None:
    looks = [looked_at(top_k) for top_k in (1, 5, 6, 25, 1_000)]
    assert looks == [AT_LEAST, AT_LEAST, 24, AT_MOST, AT_MOST]


@given(FOUND)
def test_the_best_is_never_cut(scores: dict[PassageKey, Score]) -> None:
    ranked = order(scores)
    assert standing_out(ranked, scores, LOOK)[:1] == ranked[:1]


@given(FOUND)
def test_what_is_kept_are_the_first_in_their_order_and_equals_stay_together(
    scores: dict[PassageKey, Score],
) -> None:
    ranked = order(scores)
    kept = standing_out(ranked, scores, LOOK)
    assert kept == ranked[: len(kept)]
    of_kept = {scores[one].total for one in kept}
    assert not [one for one in ranked[len(kept) :] if scores[one].total in of_kept]


@given(st.lists(SHARE, max_size=LOOK - 5), st.integers(0, 5))
def test_memories_that_have_nothing_to_do_with_it_change_nothing(
    values: list[float], others: int
) -> None:
    scores, more = totals(*values), totals(*values, *[0.0] * others)
    kept = standing_out(order(scores), scores, LOOK)
    assert [one for one in standing_out(order(more), more, LOOK) if one in scores] == kept


@given(st.lists(st.integers(0, 1_000), max_size=2 * LOOK), st.sampled_from([0.5, 0.25, 0.125]))
def test_the_cut_does_not_depend_on_the_scale_of_the_scores(
    values: list[int], factor: float
) -> None:
    # By powers of two nothing is rounded.
    scores = totals(*(value / 1_024 for value in values))
    scaled = totals(*(value / 1_024 * factor for value in values))
    kept = standing_out(order(scores), scores, LOOK)
    assert standing_out(order(scores), scaled, LOOK) == kept


@given(FOUND, SHARE, st.booleans(), st.integers(1, 5), st.integers(0, 4))
def test_asking_for_more_only_ever_appends_while_as_many_are_looked_at(
    scores: dict[PassageKey, Score], threshold: float, by_words: bool, top_k: int, more: int
) -> None:
    few = Selection(top_k, threshold, by_words=by_words, strict=True)
    many = replace(few, top_k=min(top_k + more, 5))
    ranked = order(scores)
    assert many.best(ranked, scores)[:top_k] == few.best(ranked, scores)


@given(FOUND, SHARE, st.booleans())
def test_there_is_an_answer_whenever_anything_is_near(
    scores: dict[PassageKey, Score], threshold: float, by_words: bool
) -> None:
    lax = Selection(10, threshold, by_words=by_words)
    strict = replace(lax, strict=True)
    ranked = order(scores)
    assert strict.best(ranked, scores)[:1] == lax.best(ranked, scores)[:1]


def test_a_rerankers_word_counts_for_more_than_the_fused_score() -> None:
    scores = {
        key(1): score(0.1, reranked=0.9),
        key(2): score(0.8, reranked=0.2),
        key(3): score(0.7),  # it was not shown this one
    }
    every = [key(1), key(2), key(3)]
    assert standing_out(every, scores, LOOK) == [key(1)]
    assert Selection(10).best(every, scores) == every
