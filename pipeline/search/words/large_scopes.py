"""Words of a large scope: which passages to read for a query, and how rare its words are.

    query terms ──► forms in the scope's vocabulary ──► lookups, rarest first ──► passages to score

A small scope is compared whole, see ranking.sql. In a larger one a lookup reads the passages that
have one term, or two terms that are both frequent, from an inverted index. All words count in the
score of the passages that were read. So the work is bounded for a scope of any size, and a
passage is missed only if all of its words of the query are frequent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice

from pipeline.search.words.bm25 import COMPOUND, HELD_BY, HELD_IN, MOST_COMPOUND, PART, part_inside

# Most passages that the lookups of a query read, and most lookups.
MOST_READ, MOST_LOOKUPS = 1_000, 32
# Most forms of one query term: compounds with it, and parts of it.
MOST_FORMS = 32
# Most frequent terms of which pairs are read.
MOST_PAIRED = 6
# Most passages with all terms of a lookup: the index finds all before the first one is read.
MOST_MATCHED = 20_000
# A lookup reads a little more than the statistics expect, because they may be a minute old.
MORE, SOME_MORE = 1.5, 50


@dataclass(frozen=True, slots=True)
class Form:
    """A term of the scope's texts that stands for the query term at position `position`."""

    term: str
    position: int
    weight: float


@dataclass(frozen=True, slots=True)
class Lookup:
    """A read of at most `most` passages that have all of the terms."""

    terms: tuple[str, ...]
    most: int


@dataclass(frozen=True, slots=True)
class QueryLookups:
    """The lookups of a query, and what its score needs.

    `holding`: number of passages with each query term; None if the statistics do not know the term.
    `cut`: a query term is too frequent for a lookup of its own.
    """

    lookups: Sequence[Lookup]
    forms: Sequence[Form]
    holding: Sequence[float | None]
    cut: bool


@dataclass(frozen=True)
class WordStatistics:
    """Number of texts of a scope, their average length, and the number that have each term.

    They need not be exact: rarity is a logarithm. In a very large scope, `counted` of its texts,
    the newest, are counted, and the numbers are scaled. A scope without texts has no statistics.
    """

    texts: int
    length: float
    holding: Mapping[str, float]
    counted: int

    @cached_property
    def _lines(self) -> str:
        """One line for each term: see `words_with`."""
        return "\n" + "\n".join(self.holding) + "\n"

    @property
    def size_bytes(self) -> int:
        """Bytes of memory, as an estimate: a term is in a dictionary and in the lines."""
        return 200 * len(self.holding) + 1_000

    def lookups(self, terms: Sequence[str]) -> QueryLookups:
        """Choose the lookups for a query."""
        longest = set(sorted(terms, key=len, reverse=True)[:MOST_COMPOUND])
        forms = [
            form
            for at, term in enumerate(terms)
            for form in islice(self._forms(at, term, compounds=term in longest), MOST_FORMS)
        ]
        singles, frequent = self._singles(forms)
        left = MOST_READ - sum(lookup.most for lookup in singles)
        terms_left = sorted({form.term for form in frequent}, key=lambda t: (self._holding(t), t))
        joint = self._joint(terms_left, left)
        alone = {lookup.terms[0] for lookup in singles}
        cut = any(form.term not in alone for form in frequent if form.weight == 1)
        holding = [self._holding_of(at, forms) for at in range(len(terms))]
        return QueryLookups([*singles, *joint], forms, holding, cut)

    def _forms(self, at: int, term: str, *, compounds: bool) -> Iterator[Form]:
        """The term itself, and terms of the scope that contain it or are contained in it."""
        yield Form(term, at, 1.0)
        part = part_inside(term) if compounds else None
        if part is not None:
            for other in words_with(self._lines, part):
                if other != term and len(other) >= COMPOUND:
                    yield Form(other, at, HELD_IN)
        if compounds and term.isalpha() and len(term) >= COMPOUND:
            for other in sorted(parts_of(term) - {term}):
                contains = part is not None and part in other
                if other in self.holding and not (contains and len(other) >= COMPOUND):
                    yield Form(other, at, HELD_IN if contains else HELD_BY)

    def _singles(self, forms: Sequence[Form]) -> tuple[list[Lookup], list[Form]]:
        """Look-ups of single terms, rarest first, while they fit; and the forms that do not."""
        singles: dict[str, Lookup] = {}
        left, frequent = MOST_READ, []
        for form in sorted(forms, key=lambda form: self._holding(form.term) / form.weight):
            most = _limit(self._expected((form.term,)))
            if form.term in singles:
                continue
            if most <= left and len(singles) < MOST_LOOKUPS:
                singles[form.term] = Lookup((form.term,), most)
                left -= most
            else:
                frequent.append(form)
        return list(singles.values()), frequent

    def _joint(self, terms: Sequence[str], left: int) -> list[Lookup]:
        """Lookups of passages with several of these frequent terms, rarest first, while they fit.

        If no pair is rare enough, one of the passages with all of them, unless these are very many:
        then the words say too little to be worth a read of the index in proportion to the scope.
        """
        joint: list[Lookup] = []
        pairs = list(combinations(terms[:MOST_PAIRED], 2))
        for pair in sorted(pairs, key=self._expected):
            most = _limit(self._expected(pair))
            if most <= left:
                joint.append(Lookup(pair, most))
                left -= most
        every = tuple(terms[:MOST_PAIRED])
        if not joint and every and left > 0 and self._expected(every) <= MOST_MATCHED:
            joint.append(Lookup(every, left))
        return joint

    def _expected(self, terms: Sequence[str]) -> float:
        """Number of passages that have all of the terms, if the terms were independent."""
        unseen = self.texts / self.counted
        return self.texts * math.prod((self._holding(t) or unseen) / self.texts for t in terms)

    def _holding(self, term: str) -> float:
        return self.holding.get(term, 0.0)

    def _holding_of(self, at: int, forms: Sequence[Form]) -> float | None:
        """Number of passages with a query term, where a compound counts in part."""
        own = [form for form in forms if form.position == at]
        holding = sum(form.weight * self._holding(form.term) for form in own)
        return min(holding, float(self.texts)) or None


def _limit(expected: float) -> int:
    return int(MORE * expected) + SOME_MORE


def words_with(lines: str, part: str) -> Iterator[str]:
    """The words with this part, of a text with a line for each word and a line break at both ends.

    A line break before the part stands for the beginning of a word. They are found in C.
    """
    at = lines.find(part)
    while at >= 0:
        start = at + 1 if part[0] == "\n" else lines.rfind("\n", 0, at) + 1
        end = lines.find("\n", start)
        yield lines[start:end]
        at = lines.find(part, end)


def parts_of(word: str) -> set[str]:
    """The parts of a compound that may be words: those of at least PART letters, and itself."""
    starts = range(len(word) - PART + 1)
    return {word[start:end] for start in starts for end in range(start + PART, len(word) + 1)}
