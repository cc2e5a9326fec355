"""Evidence: the share of a question that one candidate accounts for by itself, 0..1.

    in the text        =   1 for the word, less for a part of a compound, another form, a typing
                           error
    in meaning         =   0.9 · closeness to the word · closeness to the question
    evidence           =   mean of the larger one over the words of a topic, weighted by rarity;
                           the best of the question's topics (see pipeline/text/question_topics)

A name that no candidate has weighs most, so a question about an unknown person, thing or event
finds little evidence. Another word that no candidate has weighs less: people rarely ask in the
words of the text. The candidate's neighbours and session do not count.

Closeness is measured against the other candidates, in standard deviations of their cosines, so no
constant depends on the scale of the embedder. Rarity is counted among the candidates.

Source: tests/eval/precision. The constants were chosen on its tuning half, in scopes of 3 to 160
memories; each is in the middle of a range with about the same result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from pipeline.domain.vectors import NO_VECTOR, Vector
from pipeline.search.candidates import Candidate
from pipeline.search.ranking.vocabulary import Vocabulary
from pipeline.text import terms
from pipeline.text.question_topics import Topics
from pipeline.text.questions import ContentWord

Array = npt.NDArray[np.float64]
Terms = tuple[str, ...]
NO_MEANINGS: Mapping[Terms, Vector] = MappingProxyType({})

# Most terms of all candidates that are compared, but of each one at least LEAST_TERMS; and most
# pairs of a word in a script without spaces.
MOST_TERMS, LEAST_TERMS, MOST_PAIRS = 200_000, 100, 32
# Weight of a word that no candidate has and that is no name, as a share of its rarity.
UNKNOWN = 0.6
# Least share of an excluded word in a text: the word itself, not another form of it.
EXCLUDING = 0.7
# Share of a topic's words with which a text is about that topic.
ENOUGH_WORDS = 0.4
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
    topics: Topics,
    *,
    question: Vector = NO_VECTOR,
    meanings: Mapping[Terms, Vector] = NO_MEANINGS,
    by_closeness: bool = False,
    count_unknown: bool = True,
) -> None:
    """Set the evidence of each candidate; there is none without a word that counts.

    `question` and `meanings`: vectors of the question, and of its words by their terms; empty if
    meaning does not count. `by_closeness`: the closeness of each candidate to the question, which
    is already set, counts for each word instead: this needs no further vectors. `count_unknown`:
    words that no candidate has count, too. A candidate with a name that the question excludes is
    marked.
    """
    if not candidates or not topics.words:
        return
    most = max(LEAST_TERMS, MOST_TERMS // len(candidates))
    # The speaker's name counts, and of a long text the first terms.
    vocabulary = Vocabulary([(*terms.terms(c.speaker or ""), *c.terms[:most]) for c in candidates])
    _exclude(candidates, topics.excluded, vocabulary)
    words = list(dict.fromkeys(word for topic in topics.words for word in topic))
    if by_closeness:
        near = np.array([candidate.score.closeness or 0.0 for candidate in candidates])
        close = {word.terms: MEANING * near**2 for word in words}
    else:
        close = _closeness(candidates, question, meanings)
    in_text = _in_texts(candidates, words, vocabulary, count_unknown=count_unknown)
    with_meaning = {
        key: (rarity, np.maximum(share, close.get(key, share)))
        for key, (rarity, share) in in_text.items()
    }
    by_topic = [_mean([with_meaning[word.terms] for word in topic]) for topic in topics.words]
    if by_closeness and len(topics.words) > 1:
        by_words = [_mean([in_text[word.terms] for word in topic]) for topic in topics.words]
        by_topic = _of_one_topic(by_topic, by_words)
    values = [value for value in by_topic if value is not None]
    for candidate, of_topics in zip(candidates, zip(*values, strict=True), strict=values != []):
        shares = tuple(map(float, of_topics))
        candidate.score = candidate.score._replace(evidence=max(shares), by_topic=shares)


def _in_texts(
    candidates: Sequence[Candidate],
    words: Sequence[ContentWord],
    vocabulary: Vocabulary,
    *,
    count_unknown: bool,
) -> dict[Terms, tuple[float, Array]]:
    """Return the rarity of each word, and its share in the text of each candidate."""
    measured = {}
    for word in words:
        rarity, share = _in_text(word, vocabulary)
        if word.is_time:
            share = np.maximum(share, [candidate.signals.date for candidate in candidates])
        if not share.any():
            rarity *= float(count_unknown) if word.is_name else UNKNOWN * count_unknown
        measured[word.terms] = rarity, share
    return measured


def _of_one_topic(
    by_topic: Sequence[Array | None], by_words: Sequence[Array | None]
) -> list[Array | None]:
    """The evidence for each topic, without the closeness of texts that another topic explains.

    A text is near to a question of two topics because of one of them, if its words say so.
    """
    most = np.max([share for share in by_words if share is not None] or [np.zeros(1)], axis=0)
    return [
        near
        if near is None or share is None
        else np.where((share == 0) & (most >= ENOUGH_WORDS), 0.0, near)
        for near, share in zip(by_topic, by_words, strict=True)
    ]


def _mean(words: Sequence[tuple[float, Array]]) -> Array | None:
    """Return the mean share of a topic's words, weighted by rarity; None if no word counts."""
    total = sum(rarity for rarity, _ in words)
    return sum((rarity * share for rarity, share in words), np.zeros(1)) / total if total else None


def _exclude(
    candidates: Sequence[Candidate],
    excluded: Sequence[ContentWord],
    vocabulary: Vocabulary,
) -> None:
    """Mark the candidates that have an excluded word."""
    for word in excluded:
        _, share = _in_text(word, vocabulary)
        for candidate, value in zip(candidates, share.tolist(), strict=True):
            if value >= EXCLUDING:
                candidate.score = candidate.score._replace(excluded=True)


def set_closeness(candidates: Sequence[Candidate]) -> None:
    """Set how far each candidate is nearer to the query than the other candidates, 0..1."""
    if not candidates:
        return
    cosines = np.array([candidate.score.signals.semantic for candidate in candidates])
    nearest = np.argsort(-cosines)[:BACKGROUND]
    shares = _standing_out(cosines, nearest).tolist()
    for candidate, share in zip(candidates, shares, strict=True):
        candidate.score = candidate.score._replace(closeness=share)


def _in_text(word: ContentWord, vocabulary: Vocabulary) -> tuple[float, Array]:
    """Return the rarity of a word, and the share of it in each text.

    A Chinese word is a run of pairs. A pair that no text has, next to a pair that some text has,
    is the boundary of two words and does not count.
    """
    shares = [vocabulary.shares(term) for term in word.terms[:MOST_PAIRS]]
    present = [bool(share.any()) for share in shares]
    around = [False, *present, False]
    rarity, evidence = 0.0, np.zeros(len(shares[0]))
    for number, share in enumerate(shares):
        if present[number] or not (around[number] or around[number + 2]):
            rarity += _rarity(share)
            evidence += _rarity(share) * share
    return rarity, evidence / rarity


def _rarity(share: Array) -> float:
    """Inverse document frequency, as in BM25."""
    holding = float(share.sum())
    return math.log(1 + (len(share) - holding + 0.5) / (holding + 0.5))


def _closeness(
    candidates: Sequence[Candidate], question: Vector, meanings: Mapping[Terms, Vector]
) -> dict[Terms, Array]:
    """Return the part of closeness for each word; none if meaning does not count."""
    embedded = [number for number, each in enumerate(candidates) if each.embedding]
    if not question.size or not meanings or not embedded:
        return {}
    packed = b"".join(candidates[number].embedding or b"" for number in embedded)
    vectors = np.frombuffer(packed, np.float32).reshape(len(embedded), -1)
    compared = np.asarray([question, *meanings.values()], np.float32)
    cosines = (vectors @ compared.T).astype(np.float64).T
    nearest = np.argsort(-cosines[0])[:BACKGROUND]
    near, *to_words = (_standing_out(row, nearest) for row in cosines)
    closeness = {terms_of: np.zeros(len(candidates)) for terms_of in meanings}
    for of_all, to_word in zip(closeness.values(), to_words, strict=True):
        of_all[embedded] = MEANING * near * to_word
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
