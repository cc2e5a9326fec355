"""Vocabulary: the words of some texts, and which of them a word of a question may stand for.

    the word itself                      1
    another form of it, a compound       less: see `weight_of`
    a word it may be a typing error of   only if there is none of these

Work is bounded: a word is looked up in one string of all words, and only what is found there is
compared by rule; see the limits below.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from pipeline.search.words.bm25 import COMPOUND, HELD_BY, HELD_IN, PART, part_inside
from pipeline.search.words.large_scopes import parts_of, words_with
from pipeline.text.edit_distance import distance

Array = npt.NDArray[np.float64]

# Weight of another form of a word, and of a single Chinese character inside a pair.
OTHER_FORM, CHARACTER = 0.5, 0.7
# Another form has the same first letters: at least five, and this share of the longer word.
SAME_START, SAME_SHARE = 5, 0.7
# Weight of a word that the question's word is a typing error of; least letters of such a word, and
# letters from which it may have two errors.
MISTYPED, SHORTEST_MISTYPED, LONG_MISTYPED = 0.8, 5, 8
# Most errors in a word, and letters of a word that is compared letter by letter.
MOST_ERRORS, LONGEST_MISTYPED = 2, 24
# Most words that a word is compared with letter by letter, and that all words of a question are;
# and most words that are tried for that. A question takes half a second at most.
MOST_MISTYPED, MOST_MISTYPED_IN_ALL, MOST_LOOKED_AT = 200, 400, 400_000
# Most words of a vocabulary that contain a word, or begin like it, that are compared with it.
MOST_ALIKE = 2_000


class Vocabulary:
    """The words of texts, for the comparison with the words of one question.

    `texts`: the words of each text, in order: with too many words alike, the first ones count.
    """

    def __init__(self, texts: Sequence[Collection[str]]) -> None:
        self._size = len(texts)
        self._texts: defaultdict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for word in dict.fromkeys(text):
                self._texts[word].append(number)
        self._lines = "\n" + "\n".join(self._texts) + "\n"
        self._by_first: dict[str, list[str]] | None = None
        self._looks = MOST_LOOKED_AT
        self._comparisons = MOST_MISTYPED_IN_ALL

    def shares(self, term: str) -> Array:
        """The best weight of a term among the words of each text."""
        shares = np.zeros(self._size)
        for word, weight in self.matches(term).items():
            for number in self._texts[word]:
                shares[number] = max(shares[number], weight)
        return shares

    def matches(self, term: str) -> dict[str, float]:
        """The words that are the term, or a form or a compound of it, with their weights.

        If there are none, those that it may be a typing error of.
        """
        alike = self._alike(term)
        weights = {other: weight for other in alike if (weight := weight_of(term, other))}
        weights.pop(term, None)
        if term in self._texts:
            weights[term] = 1.0
        return weights or dict.fromkeys(self._mistyped(term), MISTYPED)

    def _alike(self, term: str) -> set[str]:
        """The words for which `weight_of` may be more than 0."""
        if not term.isalpha():
            return set()
        if not term.isascii():
            return set(self._with(term)) if len(term) == 1 else set()
        part = part_inside(term)
        alike = set(self._with(part)) if part else set()
        if len(term) >= SAME_START:
            alike.update(self._with("\n" + term[:SAME_START]))
        if len(term) >= COMPOUND:
            alike |= parts_of(term) & self._texts.keys()
        return alike

    def _with(self, part: str) -> Iterator[str]:
        """The first words with this part; see `words_with`."""
        return islice(words_with(self._lines, part), MOST_ALIKE)

    def _mistyped(self, term: str) -> list[str]:
        """The words that the term may be a typing error of."""
        if not SHORTEST_MISTYPED <= len(term) <= LONGEST_MISTYPED:
            return []
        if not term.isalpha() or not term.isascii():
            return []
        if self._by_first is None:
            self._by_first = defaultdict(list)
            for word in self._texts:
                self._by_first[word[:1]].append(word)
        tried = self._by_first.get(term[0], [])[: self._looks]
        self._looks -= len(tried)
        near = sorted(other for other in tried if may_be_mistyped(term, other))
        near = near[: min(MOST_MISTYPED, self._comparisons)]
        self._comparisons -= len(near)
        return [other for other in near if is_mistyped(term, other)]


def may_be_mistyped(term: str, other: str) -> bool:
    """Tell if a comparison letter by letter is worth its time: it takes the square of the length.

    Most of the first letters are those of the term, apart from their order.
    """
    if other[:1] != term[0] or len(other) < len(term) - 1:
        return False
    return len(set(term) - set(other[: len(term) + 2])) <= MOST_ERRORS


def is_mistyped(term: str, other: str) -> bool:
    """Tell if a term is another one, or the beginning of it, with a typing error.

    The first letter is right; a short word has no wrong letter, because "house" is no "horse".
    """
    if other[:1] != term[0] or len(other) < len(term) - 1 or not other.isalpha():
        return False
    most = MOST_ERRORS if len(term) >= LONG_MISTYPED else 1
    beginnings = {len(other), *range(len(term) - 1, len(term) + 2)}
    return any(
        0 < distance(term, other[:size], swaps_only=len(term) == SHORTEST_MISTYPED) <= most
        for size in beginnings
        if abs(size - len(term)) <= most
        and (size == len(other) or (size < len(other) and len(term) > SHORTEST_MISTYPED))
    )


def weight_of(term: str, other: str) -> float:
    """Weight of another term as a form, a part or a compound of the term; 0 if it is none."""
    if not term.isalpha() or not other.isalpha():
        return 0.0
    if not term.isascii():
        return CHARACTER if len(term) == 1 and term in other else 0.0
    part = part_inside(term)
    if part and len(other) >= COMPOUND and part in other:
        return HELD_IN
    if len(other) >= PART and len(term) >= COMPOUND and other in term:
        return HELD_BY
    longest = max(len(term), len(other))
    start = max(SAME_START, math.ceil(SAME_SHARE * longest))
    return OTHER_FORM if term[:start] == other[:start] and len(term) >= start else 0.0
