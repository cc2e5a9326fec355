"""Chains: questions that name a thing by its relations, and the paths of the graph they describe.

    "Where does the brother of Ana's manager live?"

    words     where  brother  <Ana>  manager  live
    distance    2       1       0       1       2
    path      Ana --has_boss--> Ivo --has_brother--> Max --lives_in--> Graz

A path of two relations or more answers such a question if a word of its own asks for each of them.
Its score is the share of the question's words that it accounts
for, reduced for each step against the direction of a relation, for each relation after the second,
and if the words stand in another order around the name than the relations on the path: the nearest
word asks for the first one. All memories of a path have its score, because the answer needs them
all. If one relation accounts for as many words, the question describes no chain.

A word asks for a relation if it is one of its names (pipeline/text/relations/names). For a word
that names none, `Near` says what it means: see pipeline/graph/meanings. A word without a known
meaning may ask for a relation that no other word asks for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import prod, sqrt
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from pipeline.graph.views import GraphPath, Walk
from pipeline.text.names import is_self, plain_name, words_in
from pipeline.text.questions import is_asking
from pipeline.text.relations.names import is_symmetric, leads_to_place, words_about
from pipeline.text.terms import fold, root, terms

# By the name of a relation and a word: the degree to which the word means the relation, 0..1.
Near = Mapping[tuple[str, str], float]
# By the name of a relation and the thing that it leads to.
Sources = Mapping[tuple[str, UUID], int]
NOTHING_NEAR: Near = MappingProxyType({})
# Maximum number of words of a question, of names of relations, and of words that may ask for one.
MOST_WORDS, MOST_NAMES, MOST_ASKING = 40, 64, 4
# Distance from a name that words behind it have in addition; with a possessive those before it.
OTHER_SIDE = 0.5
# Factors for a step against a relation's direction, for two relations whose words stand in the
# other order, and for each relation after the second.
BACKWARD, DISORDER, LONGER = 0.75, 0.75, 0.9
# Weights of words that may only fill the sentence, and of "where"; others have 1.
FILLER, WHERE = 0.3, 0.3
# Degree to which a word without a known meaning asks for a relation that no other word asks for.
UNKNOWN = 0.05
# Least score of a chain, and least distance from what a relation alone accounts for. Steepness: of
# two paths the one with a lower score counts much less.
LEAST, BEYOND, STEEP = 0.45, 0.1, 4
_WHERE = frozenset(["where", "wo", "woher", "wohin", "donde", "adonde"])
_AUXILIARIES = frozenset(["have", "has", "had", "mit", "hat", "haben", "tiene", "con"])
_ANYONE = frozenset(
    [
        "person",
        "people",
        "man",
        "woman",
        "someone",
        "one",
        "guy",
        "mensch",
        "mann",
        "persona",
        "gente",
    ]
)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question. `at`: its place among the words that mean something."""

    text: str
    terms: frozenset[str]
    at: int
    weight: float


@dataclass(frozen=True, slots=True)
class PathStep:
    """A relation as a path walks it.

    `sources`: number of relations of this name that the path could follow back instead, if it walks
    from the destination to the source; else 0.
    """

    name: str
    sources: int = 0


class QuestionWords:
    """The words of a question, and the relations among these that they ask for."""

    def __init__(self, walk: Walk, near: Near = NOTHING_NEAR) -> None:
        """`near`: what words mean that are no names of relations."""
        self.words = _words(walk.query)
        relations = [path.relation for path in walk.paths]
        self._relations = list(dict.fromkeys(r.relation for r in relations))[:MOST_NAMES]
        things = dict.fromkeys(name for r in relations for name in (r.source, r.destination))
        self._naming = {name: self._words_naming(name) for name in things}
        self._names = frozenset[int]().union(*self._naming.values())
        self._asks = {
            (name, n): value
            for name in self._relations
            for n, word in enumerate(self.words)
            if (value := _asks_for(word, name))
        }
        self.text = fold(walk.query)
        known = {n for _, n in self._asks} | self._names
        # The words that name no relation, and might mean one.
        self.unknown = [
            n for n, word in enumerate(self.words) if word.weight == 1.0 and n not in known
        ]
        self._let_near_words_ask(near)

    def _let_near_words_ask(self, near: Near) -> None:
        named = {name for name, n in self._asks if self.words[n].text not in _WHERE}
        for name in self._relations:
            least = 0.0 if name in named else UNKNOWN
            for n in self.unknown:
                if value := max(least, near.get((name, self.words[n].text), 0.0)):
                    self._asks[name, n] = value

    def asks(self, name: str, word: int) -> float:
        """The degree to which a word asks for a relation, 0..1."""
        return self._asks.get((name, word), 0.0)

    def words_for(self, name: str) -> list[int]:
        """The words that ask most for a relation."""
        words = [n for n in range(len(self.words)) if (name, n) in self._asks]
        return sorted(words, key=lambda n: -self._asks[name, n])[:MOST_ASKING]

    def weight(self, word: int) -> float:
        """The weight of a word; 0 for one that may only fill the sentence, and asks for nothing."""
        weight = self.words[word].weight
        if weight == FILLER and not any((name, word) in self._asks for name in self._relations):
            return 0.0
        return weight

    def possesses(self, name: str) -> bool:
        """Tell if the words for what a thing has stand behind its name: "Ana's", "my"."""
        if is_self(name):
            return True
        return bool(re.search(rf"\b{re.escape(plain_name(name))}(?:['’]|s\b)", self.text))

    def naming(self, name: str) -> frozenset[int]:
        """The words that name a thing of the walk."""
        return self._naming.get(name, frozenset())

    def _words_naming(self, name: str) -> frozenset[int]:
        if is_self(name):
            return frozenset(n for n, word in enumerate(self.words) if is_self(word.text))
        # Each word of the name, or its German genitive.
        wanted = [(word, f"{word}s") for word in plain_name(name).split()]
        size = len(wanted)
        return frozenset(
            n + offset
            for n in range(len(self.words) - size + 1)
            if all(self.words[n + at].text in wanted[at] for at in range(size))
            for offset in range(size)
        )


def _asks_for(word: Word, name: str) -> float:
    if word.text in _WHERE:
        return float(leads_to_place(name))
    if not word.weight:
        return 0.0
    return float(not _with_roots(word.terms).isdisjoint(_with_roots(words_about(name))))


@lru_cache(maxsize=1_000)
def _with_roots(of_word: frozenset[str]) -> frozenset[str]:
    """The terms, and these without German endings: Nachbarn, Nachbar."""
    return of_word | {root(term) for term in of_word}


def _words(text: str) -> list[Word]:
    """The words of a question in their order; those that mean nothing have no weight."""
    words: list[Word] = []
    at = 0
    for spoken in _spoken(text):
        of_word = frozenset(terms(spoken))
        weight = _weight(spoken, of_word)
        at += bool(weight) or is_self(spoken) or spoken in _ANYONE
        words.append(Word(spoken, of_word, at, weight))
        if len(words) == MOST_WORDS:
            break
    return words


def _weight(spoken: str, of_word: frozenset[str]) -> float:
    if spoken in _WHERE:
        return WHERE
    if not of_word or spoken in _ANYONE or spoken in _AUXILIARIES:
        return 0.0
    return FILLER if is_asking(of_word) or _UNSPACED.match(spoken) else 1.0


def _spoken(text: str) -> Iterator[str]:
    """The words of a text; of a run without spaces the pairs of characters."""
    for word in words_in(text):
        if _UNSPACED.match(word) and len(word) > 1:
            yield from (word[n : n + 2] for n in range(len(word) - 1))
        else:
            yield word


# -- paths -----------------------------------------------------------------------------------------


class Scored(NamedTuple):
    """The score of a path, 0..1, and the share of the words that it accounts for."""

    score: float
    share: float


NO_CHAIN = Scored(0.0, 0.0)


class Chains:
    """Scores of the paths of one walk. Paths of the same relations are scored once."""

    def __init__(self, question: QuestionWords, sources: Sources) -> None:
        self._question = question
        self._sources = sources
        self._known: dict[tuple[str, tuple[PathStep, ...], frozenset[int]], Scored] = {}
        self._asking: dict[str, list[int]] = {}

    def score(self, path: GraphPath) -> Scored:
        """The score of a walked path of two relations or more; 0 if it answers nothing."""
        if not all(self._words_for(r.relation) for r in (*path.via, path.relation)):
            return NO_CHAIN
        start, steps, met = _walked(path, self._sources)
        named = self._question.naming(start)
        others = frozenset[int]().union(*map(self._question.naming, met)) - named
        key = (start, steps, others)
        if key not in self._known:
            order = self._order(steps, named, possessive=self._question.possesses(start))
            direction = prod(BACKWARD / sqrt(step.sources) for step in steps if step.sources)
            length = LONGER ** (len(steps) - 2)
            share = self._share(steps, named, others)
            self._known[key] = Scored(order * direction * length * share, share)
        return self._known[key]

    def alone(self, path: GraphPath) -> float:
        """The share of the words that a path of one relation accounts for."""
        relation = path.relation
        source, destination = map(self._question.naming, (relation.source, relation.destination))
        named, others = (source, destination) if source else (destination, source)
        return self._share([PathStep(relation.relation)], named, others)

    def _words_for(self, name: str) -> list[int]:
        if name not in self._asking:
            self._asking[name] = self._question.words_for(name)
        return self._asking[name]

    def _share(
        self, steps: Sequence[PathStep], named: frozenset[int], others: frozenset[int]
    ) -> float:
        """The share of the words besides those for the start that the path accounts for.

        `named` and `others`: the words that name the start, and the things that the path meets.
        """
        question = self._question
        words = [(n, question.weight(n)) for n in range(len(question.words)) if n not in named]
        accounted = sum(
            weight * (1.0 if n in others else max(question.asks(step.name, n) for step in steps))
            for n, weight in words
            if weight
        )
        whole = sum(weight for _, weight in words)
        return accounted / whole if whole else 0.0

    def _order(
        self, steps: Sequence[PathStep], named: frozenset[int], *, possessive: bool
    ) -> float:
        """1 if each relation has a word of its own, in the order of the path; 0 without words."""
        places = [self._question.words[n].at for n in named]
        names = [step.name for step in steps]
        asking = [[n for n in self._words_for(name) if n not in named] for name in names]
        best = 0.0
        for words in product(*asking):
            if len(set(words)) == len(words) and self._repeated(names, words):
                away = [self._distance(n, places, possessive=possessive) for n in words]
                disorder = sum(first > second for first, second in pairwise(away))
                best = max(best, DISORDER**disorder)
        return best

    def _repeated(self, names: Sequence[str], words: Sequence[int]) -> bool:
        """Tell if a relation that occurs twice is asked for by the same word, twice."""
        spoken = {name: self._question.words[n].terms for name, n in zip(names, words, strict=True)}
        return all(
            spoken[name] == self._question.words[n].terms
            for name, n in zip(names, words, strict=True)
        )

    def _distance(self, word: int, places: Sequence[int], *, possessive: bool) -> float:
        """The distance of a word from the name: "the boss of Ana's son", "whom Ana's son likes"."""
        away = (self._question.words[word].at - place for place in places)
        other_side = -OTHER_SIDE if possessive else OTHER_SIDE
        return min((abs(d) + (other_side if d > 0 else 0.0) for d in away), default=0.0)


def sources_of(walk: Walk) -> Sources:
    """The number of things from which each relation leads to a thing, by its name and the thing."""
    relations = {path.relation.id: path.relation for path in walk.paths}.values()
    return Counter((relation.relation, relation.destination_id) for relation in relations)


def _walked(path: GraphPath, sources: Sources) -> tuple[str, tuple[PathStep, ...], list[str]]:
    """The thing at which a path of two relations or more starts, its steps, what it meets."""
    relations = (*path.via, path.relation)
    first, second = relations[0], relations[1]
    forward = first.destination_id in (second.source_id, second.destination_id)
    at, start = (first.source_id, first.source) if forward else (
        first.destination_id, first.destination
    )  # fmt: skip
    steps, met = [], []
    for relation in relations:
        backward = relation.source_id != at
        name = relation.relation
        back = backward and not is_symmetric(name)
        steps.append(PathStep(name, sources[name, relation.destination_id] if back else 0))
        at = relation.source_id if backward else relation.destination_id
        met.append(relation.source if backward else relation.destination)
    return start, tuple(steps), met


def unknown_phrases(walk: Walk, near: Near = NOTHING_NEAR) -> list[list[Word]]:
    """The words of the question that ask for no relation of the walk, neighbours together.

    Empty if no path has two relations.
    """
    if not any(path.via for path in walk.paths):
        return []
    question = QuestionWords(walk)
    meant = {word for _, word in near}
    phrases: list[list[Word]] = []
    last = -1
    for n in question.unknown:
        if question.words[n].text not in meant:
            if n != last + 1 or not phrases:
                phrases.append([])
            phrases[-1].append(question.words[n])
            last = n
    return phrases


def chains(walk: Walk, near: Near = NOTHING_NEAR) -> dict[UUID, float]:
    """For each memory the score of the best chain with a relation of it, 0..1.

    Of two chains, the one with a lower score counts much less. Empty if the question describes no
    chain.
    """
    scored = Chains(QuestionWords(walk, near), sources_of(walk))
    scores = [(scored.score(path), path) for path in walk.paths if path.via]
    best, share = max((score for score, _ in scores), default=NO_CHAIN)
    alone = max((scored.alone(path) for path in walk.paths if not path.via), default=0.0)
    if best < LEAST or share < alone + BEYOND:
        return {}
    by_memory: dict[UUID, float] = {}
    for (score, _), path in scores:
        value = best * (score / best) ** STEEP
        for memory_id in path.memory_ids if value else ():
            by_memory[memory_id] = max(value, by_memory.get(memory_id, 0.0))
    return by_memory
