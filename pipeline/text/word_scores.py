"""Okapi BM25 over a few hundred short texts in memory."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

# Source: Robertson & Zaragoza 2009, The Probabilistic Relevance Framework, and Lucene's defaults.
K1, B = 1.2, 0.75
# Letters of a word that are compared, so that trinkt and trinken, opositar and oposiciones match.
# Source: tests/eval/candidates.py.
PREFIX = 5


def prefixes(terms: Sequence[str]) -> list[str]:
    """The terms, each cut to its first letters."""
    return [term[:PREFIX] for term in terms]


class WordIndex:
    """Texts whose terms are counted once, for any number of questions.

    `texts`: terms or their prefixes. `rows`: number of texts that rarity is counted among, if these
    are only the ones with a term. `words`: the terms of all questions; None for any.
    """

    def __init__(
        self, texts: Sequence[Sequence[str]], *, rows: int = 0, words: Collection[str] | None = None
    ) -> None:
        """Count the terms of each text."""
        lengths = [len(text) for text in texts]
        mean = max(sum(lengths) / len(lengths) if lengths else 1.0, 1.0)
        self._number = max(rows, len(texts))
        self._saturation = [K1 * (1 - B + B * length / mean) for length in lengths]
        # Of each term, the texts that have it, with the number of times.
        self._times: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for place, text in enumerate(texts):
            known = text if words is None else [term for term in text if term in words]
            for term, times in Counter(known).items() if known else ():
                self._times[term][place] = times

    def shares(self, question: Sequence[str]) -> list[float]:
        """BM25 of each text divided by that of a text of average length with each term once, 0..1.

        Terms that no text has do not count. Time follows the texts with a term, not their length.
        """
        scores = [0.0] * len(self._saturation)
        full = 0.0
        for term in sorted(set(question)):
            places = self._times.get(term)
            if not places:
                continue
            weight = math.log(1 + (self._number - len(places) + 0.5) / (len(places) + 0.5))
            full += weight
            for place, times in places.items():
                scores[place] += weight * times * (K1 + 1) / (times + self._saturation[place])
        return [min(1.0, score / full) if score else 0.0 for score in scores]
