"""Evidence: the share of a question that one candidate accounts for by itself, 0..1.

    in the text        =   1 for the word, less for a part of a compound or another form of it
    in meaning         =   0.9 · closeness to the word · closeness to the question
    evidence           =   mean of the larger one over the question's words, weighted by rarity

A word that no candidate has weighs most, so a question about a person, thing or event that is not
in the store finds little evidence. The candidate's neighbours and session do not count.

Closeness is measured against the other candidates, in standard deviations of their cosines, so no
constant depends on the scale of the embedder. Rarity is counted among the candidates.

Source: tests/eval/precision. The constants were chosen on its tuning half, in scopes of 3 to 160
memories; each is in the middle of a range with about the same result.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pipeline.domain.vectors import Vector
from pipeline.search.bm25 import COMPOUND, HELD_BY, HELD_IN, PART
from pipeline.search.candidates import Candidate
from pipeline.text import terms
from pipeline.text.questions import ContentWord

Array = npt.NDArray[np.float64]

# Weight of another form of a word, and of a single Chinese character inside a pair.
OTHER_FORM, CHARACTER = 0.5, 0.7
# Another form has the same first letters: at least five, and this share of the longer word.
SAME_START, SAME_SHARE = 5, 0.7
# Number of the candidates nearest to the question that form the background.
BACKGROUND = 50
# Standard deviations above the background at which closeness begins, and at which it is full.
FROM, TO = 1.0, 3.5
# Most that closeness counts for a word that is not in the text.
MEANING = 0.9
# Expected standard deviation of cosines, as a share of their distance from 1, and its weight in
# candidates: with few candidates, their own deviation says little.
USUAL, USUAL_WEIGHT = 0.1, 8


def set_evidence(
    candidates: Sequence[Candidate],
    words: Sequence[ContentWord],
    *,
    question: Vector,
    meanings: Sequence[Vector],
    count_unknown: bool = True,
) -> None:
    """Set the evidence of each candidate; there is none without a word that counts.

    `question` and `meanings`: vectors of the question and of its words, empty if meaning does not
    count. `count_unknown`: words that no candidate has count, too.
    """
    if not words or not candidates:
        return
    texts = [_terms_of(candidate) for candidate in candidates]
    vocabulary = set().union(*texts)
    close = _closeness(candidates, question, meanings)
    total, evidence = 0.0, np.zeros(len(candidates))
    for number, word in enumerate(words):
        rarity, share = _in_text(word, texts, vocabulary)
        if word.is_time:
            share = np.maximum(share, [candidate.signals.date for candidate in candidates])
        if not count_unknown and not share.any():
            continue
        if close is not None:
            share = np.maximum(share, close[number])
        total += rarity
        evidence += rarity * share
    if not total:
        return
    for candidate, value in zip(candidates, (evidence / total).tolist(), strict=True):
        candidate.score = candidate.score._replace(evidence=value)


def set_closeness(candidates: Sequence[Candidate]) -> None:
    """Set how far each candidate is nearer to the query than the other candidates, 0..1."""
    if not candidates:
        return
    cosines = np.array([candidate.score.signals.semantic for candidate in candidates])
    nearest = np.argsort(-cosines)[:BACKGROUND]
    shares = _standing_out(cosines, nearest).tolist()
    for candidate, share in zip(candidates, shares, strict=True):
        candidate.score = candidate.score._replace(closeness=share)


def _terms_of(candidate: Candidate) -> frozenset[str]:
    """Terms of the text and of the speaker's name."""
    return frozenset(candidate.terms).union(terms.terms(candidate.speaker or ""))


def _in_text(
    word: ContentWord, texts: Sequence[Collection[str]], vocabulary: Collection[str]
) -> tuple[float, Array]:
    """Return the rarity of a word, and the share of it in each text.

    A Chinese word is a run of pairs. A pair that no text has, next to a pair that some text has,
    is the boundary of two words and does not count.
    """
    shares = [_shares(matches(term, vocabulary), texts) for term in word.terms]
    present = [bool(share.any()) for share in shares]
    around = [False, *present, False]
    rarity, evidence = 0.0, np.zeros(len(texts))
    for number, share in enumerate(shares):
        if present[number] or not (around[number] or around[number + 2]):
            rarity += _rarity(share)
            evidence += _rarity(share) * share
    return rarity, evidence / rarity


def _shares(weights: Mapping[str, float], texts: Sequence[Collection[str]]) -> Array:
    """Return the best weight among the terms of each text."""
    return np.array(
        [
            max((weight for term, weight in weights.items() if term in of_text), default=0.0)
            for of_text in texts
        ]
    )


def _rarity(share: Array) -> float:
    """Inverse document frequency, as in BM25."""
    holding = float(share.sum())
    return math.log(1 + (len(share) - holding + 0.5) / (holding + 0.5))


def matches(term: str, vocabulary: Collection[str]) -> dict[str, float]:
    """Return the terms of a vocabulary that are the term, or a form or a compound of it."""
    weights = {
        other: weight for other in vocabulary if other != term and (weight := _alike(term, other))
    }
    return weights | ({term: 1.0} if term in vocabulary else {})


def _alike(term: str, other: str) -> float:
    """Weight of another term as a form, a part or a compound of the term; 0 if it is none."""
    if not term.isalpha() or not other.isalpha():
        return 0.0
    if not term.isascii():
        return CHARACTER if len(term) == 1 and term in other else 0.0
    root = terms.root(term)
    part = root if len(root) >= PART else term
    if len(other) >= COMPOUND and len(part) >= PART and part in other:
        return HELD_IN
    if len(other) >= PART and len(term) >= COMPOUND and other in term:
        return HELD_BY
    longest = max(len(term), len(other))
    start = max(SAME_START, math.ceil(SAME_SHARE * longest))
    return OTHER_FORM if term[:start] == other[:start] and len(term) >= start else 0.0


def _closeness(
    candidates: Sequence[Candidate], question: Vector, meanings: Sequence[Vector]
) -> list[Array] | None:
    """Return the part of closeness for each word; None if meaning does not count."""
    embedded = [number for number, each in enumerate(candidates) if each.embedding]
    if not question.size or not meanings or not embedded:
        return None
    packed = b"".join(candidates[number].embedding or b"" for number in embedded)
    vectors = np.frombuffer(packed, np.float32).reshape(len(embedded), -1)
    compared = np.asarray([question, *meanings], np.float32)
    cosines = (vectors @ compared.T).astype(np.float64).T
    nearest = np.argsort(-cosines[0])[:BACKGROUND]
    near, *to_words = (_standing_out(row, nearest) for row in cosines)
    closeness = []
    for to_word in to_words:
        of_all = np.zeros(len(candidates))
        of_all[embedded] = MEANING * near * to_word
        closeness.append(of_all)
    return closeness


def _standing_out(cosines: Array, nearest: npt.NDArray[np.intp]) -> Array:
    """Return how far each cosine is above those of the other candidates of the background, 0..1."""
    background = cosines[nearest]
    own = np.zeros(len(cosines))
    own[nearest] = 1.0
    others = np.maximum(len(background) - own, 1)
    mean = (background.sum() - own * cosines) / others
    squares = ((background**2).sum() - own * cosines**2) / others
    variance = np.maximum(squares - mean**2, 0.0)
    usual = USUAL * (1 - mean)
    spread = np.sqrt((others * variance + USUAL_WEIGHT * usual**2) / (others + USUAL_WEIGHT))
    deviations = (cosines - mean) / np.maximum(spread, 1e-6)
    share: Array = np.clip((deviations - FROM) / (TO - FROM), 0.0, 1.0)
    return share
