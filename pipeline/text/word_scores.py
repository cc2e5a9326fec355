"""Okapi BM25 over a few hundred short texts in memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

# Source: Robertson & Zaragoza 2009, The Probabilistic Relevance Framework, and Lucene's defaults.
K1, B = 1.2, 0.75
# Letters of a word that are compared, so that trinkt and trinken, opositar and oposiciones match.
# Source: tests/eval/candidates.py.
PREFIX = 5


def prefixes(terms: Sequence[str]) -> list[str]:
    """The terms, each cut to its first letters."""
    return [term[:PREFIX] for term in terms]


def shares(query: Sequence[str], texts: Sequence[Sequence[str]], *, rows: int = 0) -> list[float]:
    """BM25 of each text divided by that of a text of average length with each term once, 0..1.

    `query` and `texts` are terms or their prefixes. `rows`: number of texts that rarity is counted
    among, if these are only the ones with a term. Terms that no text has do not count.
    """
    wanted = set(query)
    counts = [Counter(term for term in text if term in wanted) for text in texts]
    number = max(rows, len(texts))
    length = sum(map(len, texts)) / len(texts) if texts else 1.0
    holding = Counter(term for count in counts for term in count)
    weight = {
        term: math.log(1 + (number - texts_with + 0.5) / (texts_with + 0.5))
        for term, texts_with in holding.items()
    }
    full = sum(weight.values())
    if not full:
        return [0.0] * len(texts)
    return [
        min(1.0, _score(count, len(text) / max(length, 1.0), weight) / full) if count else 0.0
        for count, text in zip(counts, texts, strict=True)
    ]


def _score(count: Counter[str], relative_length: float, weight: dict[str, float]) -> float:
    saturation = K1 * (1 - B + B * relative_length)
    return sum(
        weight[term] * times * (K1 + 1) / (times + saturation) for term, times in count.items()
    )
