"""Cutoff of hits: the threshold, keyword search instead of it, and the strict cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.search.candidates import Candidate, Place, Signals
from pipeline.search.ranking.cutoff import (
    AT_LEAST,
    AT_MOST,
    ENOUGH,
    OF_THE_BEST,
    Cutoff,
    answering,
    compared_for,
    standing_out,
    supported,
)
from tests.unit.search.candidates import scored

SHARE = st.floats(0, 1)
COMPARED = AT_LEAST


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda each: (-each.score.fused, each.key))


CANDIDATES = st.builds(
    scored, st.integers(0, 20), SHARE, semantic=SHARE, lexical=SHARE, turn=st.booleans()
)
RANKED = st.lists(CANDIDATES, unique_by=lambda each: each.key).map(in_order)


# ── the threshold and keyword search ─────────────────────────────────────────────────────────────


def test_the_threshold_is_compared_with_the_semantic_score_of_embedded_passages() -> None:
    far, near = scored(1, 0.9, semantic=0.2), scored(2, 0.5, semantic=0.3)
    turn = scored(3, 0.1, turn=True)
    bare = scored(4, 0.1, turn=True, unembedded=True)
    assert Cutoff(10, threshold=0.3).best([far, near, turn, bare]) == [near, bare]


def test_with_keyword_search_a_word_of_the_query_is_enough() -> None:
    worded, neither = scored(1, 0.9, semantic=0.2, lexical=0.01), scored(2, 0.8, semantic=0.2)
    assert Cutoff(10, threshold=0.3).best([worded, neither]) == []
    assert Cutoff(10, threshold=0.3, by_words=True).best([worded, neither]) == [worded]


@given(RANKED, SHARE)
def test_keyword_search_loses_nothing_that_came_without_it(
    ranked: list[Candidate], threshold: float
) -> None:
    without = Cutoff(1_000, threshold).best(ranked)
    more = Cutoff(1_000, threshold, by_words=True).best(ranked)
    assert [each for each in more if each in without] == without


# ── the strict cut by a reranker's scores ────────────────────────────────────────────────────────


def valued(*values: float) -> list[Candidate]:
    return by_reranker([scored(number, value) for number, value in enumerate(values)])


def by_reranker(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The same candidates, with their fused score also as that of the reranker."""
    for each in candidates:
        each.score = each.score._replace(reranked=each.score.fused)
    return in_order(candidates)


RERANKED = RANKED.map(by_reranker)


def stand_out(*values: float) -> int:
    return len(standing_out(valued(*values), COMPARED))


def test_the_cut_is_at_the_widest_gap_of_the_scores() -> None:
    assert stand_out(0.9, 0.1, 0.1, 0.05) == 1
    assert stand_out(0.9, 0.85, 0.8, 0.1, 0.05) == 3
    assert stand_out(0.5, 0.48, *[0.2] * COMPARED) == 2


def test_scores_that_are_about_equal_are_all_kept() -> None:
    assert stand_out(0.45, 0.44) == 2
    assert stand_out(0.3, 0.29, 0.28, 0.27) == 4


def test_no_candidates_are_nothing_to_cut() -> None:
    assert standing_out([], COMPARED) == []
    assert stand_out(0.0, 0.0) == 2


def test_four_are_compared_for_each_result_within_bounds() -> None:
    compared = [compared_for(top_k) for top_k in (1, 5, 6, 25, 1_000)]
    assert compared == [AT_LEAST, AT_LEAST, 24, AT_MOST, AT_MOST]


@given(RERANKED)
def test_the_best_is_never_cut(ranked: list[Candidate]) -> None:
    assert standing_out(ranked, COMPARED)[:1] == ranked[:1]


@given(RERANKED)
def test_the_first_are_kept_in_their_order_and_equals_stay_together(
    ranked: list[Candidate],
) -> None:
    first = standing_out(ranked, COMPARED)
    assert first == ranked[: len(first)]
    of_kept = {each.score.fused for each in first}
    assert not [each for each in ranked[len(first) :] if each.score.fused in of_kept]


@given(st.lists(SHARE, max_size=COMPARED - 5), st.integers(0, 5))
def test_memories_that_have_nothing_to_do_with_it_change_nothing(
    values: list[float], others: int
) -> None:
    first = [each.key for each in standing_out(valued(*values), COMPARED)]
    more = standing_out(valued(*values, *[0.0] * others), COMPARED)
    known = {each.key for each in valued(*values)}
    assert [each.key for each in more if each.key in known] == first


@given(st.lists(st.integers(0, 1_000), max_size=2 * COMPARED), st.sampled_from([0.5, 0.25, 0.125]))
def test_the_cut_does_not_depend_on_the_scale_of_the_scores(
    values: list[int], factor: float
) -> None:
    # Factors that are powers of two cause no rounding.
    plain = valued(*(value / 1_024 for value in values))
    scaled = valued(*(value / 1_024 * factor for value in values))
    first = [each.key for each in standing_out(plain, COMPARED)]
    assert [each.key for each in standing_out(scaled, COMPARED)] == first


@given(RERANKED, SHARE, st.booleans(), st.integers(1, 5), st.integers(0, 4))
def test_a_larger_top_k_only_appends_while_as_many_are_compared(
    ranked: list[Candidate], threshold: float, by_words: bool, top_k: int, more: int
) -> None:
    few = Cutoff(top_k, threshold, by_words=by_words, strict=True)
    many = replace(few, top_k=min(top_k + more, 5))
    assert many.best(ranked)[:top_k] == few.best(ranked)


@given(RERANKED, SHARE, st.booleans())
def test_a_strict_cut_keeps_the_best_near_candidate(
    ranked: list[Candidate], threshold: float, by_words: bool
) -> None:
    lax = Cutoff(10, threshold, by_words=by_words)
    assert replace(lax, strict=True).best(ranked)[:1] == lax.best(ranked)[:1]


def test_a_rerankers_score_counts_for_more_than_the_fused_score() -> None:
    first, second = scored(1, 0.1, reranked=0.9), scored(2, 0.8, reranked=0.2)
    not_shown = scored(3, 0.7)
    assert standing_out([first, second, not_shown], COMPARED) == [first]
    assert Cutoff(10).best([first, second, not_shown]) == [first, second, not_shown]


# ── the strict cut by evidence ───────────────────────────────────────────────────────────────────


def measured(*values: float | None) -> list[Candidate]:
    """Candidates with this evidence, in an order that is not that of the evidence."""
    candidates = [scored(number, 1 - number / 100) for number in range(len(values))]
    for each, value in zip(candidates, values, strict=True):
        each.score = each.score._replace(evidence=value)
    return candidates


def returned(*values: float | None) -> list[float | None]:
    return [each.score.evidence for each in Cutoff(100, strict=True).best(measured(*values))]


def test_only_candidates_with_enough_evidence_are_returned() -> None:
    assert returned(0.3, 1.0, 0.79, 0.81) == [1.0, 0.81]
    assert returned(ENOUGH, ENOUGH - 0.01, ENOUGH / OF_THE_BEST) == [ENOUGH, ENOUGH / OF_THE_BEST]
    assert returned(0.39, 0.2) == []
    assert returned() == []


def test_without_evidence_nothing_is_cut() -> None:
    assert returned(None, None, None) == [None, None, None]


def test_only_the_strict_cut_compares_evidence() -> None:
    assert len(Cutoff(100).best(measured(0.0, 0.1, 1.0))) == 3


@given(st.lists(SHARE, max_size=30))
def test_the_best_evidence_decides_and_the_order_stays(values: list[float]) -> None:
    ranked = measured(*values)
    first = answering(ranked)
    assert first == [each for each in ranked if each in first]
    assert bool(first) == (max(values, default=0) >= ENOUGH)
    passed, cut = (
        [each.score.evidence or 0 for each in ranked if (each in first) is wanted]
        for wanted in (True, False)
    )
    assert min(passed, default=1) >= max(cut, default=0)


# ── the default cut ──────────────────────────────────────────────────────────────────────────────


def sign(
    number: int, *, lexical: float = 0.0, closeness: float = 0.0, session: int | None = None
) -> Candidate:
    result = scored(number, 1 - number / 100, lexical=lexical)
    result.score = result.score._replace(closeness=closeness)
    result.place = Place(number, number if session is None else session)
    return result


def numbers(candidates: Sequence[Candidate]) -> list[int]:
    return [candidate.key.id.int for candidate in candidates]


CUT = Cutoff(10, lenient=True)


def test_results_with_half_of_the_best_words_stay() -> None:
    ranked = [sign(1, lexical=0.8), sign(2, lexical=0.39), sign(3, lexical=0.4)]
    assert numbers(CUT.best(ranked)) == [1, 3]
    assert numbers(Cutoff(10).best(ranked)) == [1, 2, 3]


def test_only_the_first_results_stay_for_their_meaning() -> None:
    ranked = [sign(number, closeness=0.5) for number in range(1, 6)]
    assert numbers(CUT.best(ranked)) == [1, 2, 3]


def test_nothing_is_returned_without_any_sign_of_an_answer() -> None:
    assert CUT.best([sign(1), sign(2)]) == []


def test_a_message_between_speakers_stays_and_a_fact_of_the_conversation_does_not() -> None:
    message, other, fact = (sign(number, session=1) for number in (1, 2, 3))
    fact.has_subject = True
    for each in (message, other, fact):
        each.place = Place(each.key, 1, dialogue=True)
    assert numbers(CUT.best([message, other, fact])) == [1, 2]


def test_memories_of_one_speaker_are_no_conversation_because_they_came_together() -> None:
    first, second = (sign(number, session=1) for number in (1, 2))
    assert numbers(CUT.best([first, second])) == []


def test_a_turn_stays() -> None:
    turn = scored(1, 0.5, turn=True)
    turn.score = turn.score._replace(closeness=0.0)
    assert CUT.best([turn]) == [turn]


def test_with_a_sure_answer_only_what_answers_about_as_well_stays() -> None:
    ranked = [sign(number, lexical=1, closeness=1) for number in (1, 2, 3)]
    for each, value in zip(ranked, (0.9, 0.5, 0.8), strict=True):
        each.score = each.score._replace(evidence=value)
    assert numbers(CUT.best(ranked)) == [1, 3]


def test_without_a_sure_answer_a_sign_is_enough() -> None:
    ranked = [sign(number, closeness=0.5) for number in (1, 2, 3, 4)]
    for each, value in zip(ranked, (0.3, 0.2, 0.0, 0.45), strict=True):
        each.score = each.score._replace(evidence=value)
    assert numbers(CUT.best(ranked)) == [1, 2, 3, 4]
    ranked[3].score = ranked[3].score._replace(evidence=0.3)
    assert numbers(CUT.best(ranked)) == [1, 2, 3]


def test_a_question_that_no_result_accounts_for_is_not_cut() -> None:
    ranked = [sign(number) for number in range(1, 8)]
    for each in ranked:
        each.score = each.score._replace(evidence=0.1)
    assert CUT.best(ranked) == ranked


def test_each_topic_keeps_its_answer() -> None:
    ranked = [sign(number) for number in (1, 2, 3)]
    for each, values in zip(ranked, ((0.9, 0.0), (0.0, 0.7), (0.3, 0.3)), strict=True):
        each.score = each.score._replace(evidence=max(values), by_topic=values)
    assert numbers(CUT.best(ranked)) == [1, 2]
    assert numbers(Cutoff(10, strict=True).best(ranked)) == [1, 2]


def test_what_the_question_excludes_is_never_returned() -> None:
    first, second = sign(1, lexical=1), sign(2, lexical=1)
    for each in (first, second):
        each.score = each.score._replace(evidence=0.9)
    first.score = first.score._replace(excluded=True)
    assert numbers(CUT.best([first, second])) == [2]
    assert numbers(Cutoff(10, strict=True).best([first, second])) == [2]


def test_a_memory_of_the_time_that_the_query_names_stays() -> None:
    dated = sign(1)
    dated.score = dated.score._replace(signals=Signals(date=0.3))
    assert numbers(CUT.best([dated])) == [1]


def test_the_default_cut_fills_no_place_from_below_top_k() -> None:
    ranked = [sign(1, lexical=1), sign(2), sign(3, lexical=1)]
    assert numbers(Cutoff(2, lenient=True).best(ranked)) == [1]


@given(RANKED)
def test_the_default_cut_only_leaves_out(ranked: list[Candidate]) -> None:
    uncut = Cutoff(10).best(ranked)
    cut = CUT.best(ranked)
    assert cut == [each for each in uncut if each in cut]


def test_a_result_on_a_path_of_the_graph_is_supported() -> None:
    best, on_path, other = (scored(n, 1 - n / 10, semantic=0.2) for n in (1, 2, 3))
    for each, share in ((best, 0.8), (on_path, 0.4), (other, 0.3)):
        signals = each.score.signals._replace(graph=share)
        each.score = each.score._replace(signals=signals, closeness=0.0)
        each.has_subject = True
    assert supported([best, on_path, other]) == [best, on_path]
