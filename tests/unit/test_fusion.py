"""Fusion of the two channels: bounds, monotony, and that neither channel can hide the other."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pipeline.fusion import DENSE, LEXICAL, fuse

MEMORIES = st.integers(0, 8).map(lambda n: UUID(int=n))
COSINE = st.floats(-1, 1)
RANK = st.just(0.0) | st.floats(1e-6, 1e6)
SEMANTIC = st.dictionaries(MEMORIES, COSINE, max_size=9)
WORDS = st.dictionaries(MEMORIES, RANK, max_size=9)


def test_the_two_channels_weigh_a_whole() -> None:
    assert DENSE + LEXICAL == 1


def test_a_score_is_the_documented_sum() -> None:
    a, b = UUID(int=1), UUID(int=2)
    scores = fuse({a: 0.8}, {a: 1.0, b: 4.0})
    assert (scores[a].semantic, scores[a].lexical, scores[a].total) == (0.8, 0.25, 0.525)
    assert (scores[b].semantic, scores[b].lexical, scores[b].total) == (0.0, 1.0, 0.5)


def test_nothing_found_is_no_score() -> None:
    assert fuse({}, {}) == {}


@given(SEMANTIC, WORDS)
def test_every_score_lies_between_zero_and_one(
    semantic: dict[UUID, float], lexical: dict[UUID, float]
) -> None:
    for score in fuse(semantic, lexical).values():
        assert all(0 <= part <= 1 for part in (score.total, score.semantic, score.lexical))


@given(SEMANTIC, WORDS)
def test_candidates_of_both_channels_appear(
    semantic: dict[UUID, float], lexical: dict[UUID, float]
) -> None:
    assert fuse(semantic, lexical).keys() == semantic.keys() | lexical.keys()


@given(SEMANTIC, WORDS, MEMORIES, COSINE, COSINE)
def test_a_nearer_memory_never_scores_less(
    semantic: dict[UUID, float], lexical: dict[UUID, float], one: UUID, a: float, b: float
) -> None:
    farther, nearer = (fuse(semantic | {one: c}, lexical) for c in sorted((a, b)))
    assert farther[one].total <= nearer[one].total
    assert all(farther[other] == nearer[other] for other in farther if other != one)


@given(SEMANTIC, WORDS, MEMORIES, RANK, RANK)
def test_a_better_match_of_words_never_scores_less(
    semantic: dict[UUID, float], lexical: dict[UUID, float], one: UUID, a: float, b: float
) -> None:
    worse, better = (fuse(semantic, lexical | {one: rank}) for rank in sorted((a, b)))
    assert worse[one].total <= better[one].total
    assert all(worse[other].total >= better[other].total for other in worse if other != one)


@given(WORDS)
def test_within_a_query_words_alone_keep_their_order(lexical: dict[UUID, float]) -> None:
    scores = fuse({}, lexical)
    ranked = sorted(lexical, key=lambda one: lexical[one])
    totals = [scores[one].total for one in ranked]
    assert totals == sorted(totals)


@given(SEMANTIC, WORDS, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(
    semantic: dict[UUID, float], lexical: dict[UUID, float], random: object
) -> None:
    shuffled = [list(channel.items()) for channel in (semantic, lexical)]
    for pairs in shuffled:
        random.shuffle(pairs)  # type: ignore[attr-defined]
    assert fuse(dict(shuffled[0]), dict(shuffled[1])) == fuse(semantic, lexical)


@given(SEMANTIC, WORDS, st.floats(0.1, 10))
def test_the_scale_of_the_ranks_does_not_matter(
    semantic: dict[UUID, float], lexical: dict[UUID, float], scale: float
) -> None:
    plain = fuse(semantic, lexical)
    scaled = fuse(semantic, {one: rank * scale for one, rank in lexical.items()})
    assert all(abs(plain[one].total - scaled[one].total) < 1e-9 for one in plain)
