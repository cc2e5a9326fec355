"""Order of the paths that a search finds in the graph: by words, then by the ranked memories.

A path is a short text: the names and relations along it. It is compared with the query by BM25, in
which the words of a relation's synonyms count too: "employer" finds works_at. A relation that a
result of the search states comes before an equal one that none does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from uuid import UUID

from pipeline.graph.views import GraphPath, RelationView, Walk
from pipeline.text.relations.names import words_about
from pipeline.text.terms import query_terms, terms

# BM25: saturation of repeats, and weight of the length. Paths are short and of about equal length.
K, B = 1.2, 0.3
# Weight of a relation that the first result states; the others count less by their rank.
STATED = 0.5
# Factor of a path's share for each relation after the first: on long ways everything is related.
LONGER = 0.5


def ranked(
    paths: Sequence[GraphPath], query: str, memory_ids: Sequence[UUID], *, limit: int
) -> list[GraphPath]:
    """The best relations, each with the shortest path to it, best first."""
    paths = _shortest(paths)
    wanted = query_terms(query)
    texts = [Counter(_words(path)) for path in paths]
    rank = {memory_id: place for place, memory_id in enumerate(memory_ids)}
    rarity = _rarity(texts, wanted)
    usual = sum(text.total() for text in texts) / len(texts) if texts else 1.0

    def score(place: int) -> tuple[float, int]:
        path = paths[place]
        memory_id = path.relation.memory_id
        stated = STATED / (1 + rank[memory_id]) if memory_id in rank else 0.0
        return -(_bm25(texts[place], rarity, usual) + stated), len(path.via)

    return [paths[place] for place in sorted(range(len(paths)), key=score)[:limit]]


def shares(walk: Walk) -> dict[UUID, float]:
    """The share of the query that the best path with a relation of each memory accounts for, 0..1.

    A word counts by its rarity among the paths; so a word that no path has counts most, and paths
    that have only the name at which they start account for little. Longer paths account for less,
    and those whose last relation adds no word of the query for nothing: "Ines" names a sister, but
    not what else the user has.
    """
    paths = _shortest(walk.paths)
    texts = [Counter(_words(path)) for path in paths]
    rarity = _rarity(texts, query_terms(walk.query), absent=True)
    whole = sum(rarity.values())
    best: dict[UUID, float] = {}
    for path, text in zip(paths, texts, strict=True):
        added = set(_terms([path.relation])) - set(_terms(path.via))
        if path.via and not added & rarity.keys():
            continue
        share = sum(weight for word, weight in rarity.items() if word in text) / (whole or 1.0)
        share *= LONGER ** len(path.via)
        for memory_id in path.memory_ids if share else ():
            best[memory_id] = max(share, best.get(memory_id, 0.0))
    return best


def _shortest(paths: Sequence[GraphPath]) -> list[GraphPath]:
    """One path to each relation: the shortest from an entity of the query, else none."""
    best: dict[UUID, GraphPath] = {}
    for path in sorted(paths, key=lambda path: (not path.walked, len(path.via))):
        best.setdefault(path.relation.id, path)
    return list(best.values())


def _words(path: GraphPath) -> list[str]:
    """The terms of a path: its names, and the words of its relations."""
    return _terms([*path.via, path.relation])


def _terms(relations: Sequence[RelationView]) -> list[str]:
    names = " ".join(f"{r.source} {r.destination}" for r in relations)
    return [*terms(names), *(word for r in relations for word in words_about(r.relation))]


def _rarity(
    texts: Sequence[Counter[str]], wanted: Sequence[str], *, absent: bool = False
) -> Mapping[str, float]:
    """The rarity of the wanted words among the texts; with `absent` also of those in none."""
    count = len(texts)
    holding = {word: sum(word in text for text in texts) for word in wanted}
    return {
        word: log(1 + (count - number + 0.5) / (number + 0.5))
        for word, number in holding.items()
        if number or absent
    }


def _bm25(text: Counter[str], rarity: Mapping[str, float], usual: float) -> float:
    length = K * (1 - B + B * text.total() / usual)
    return sum(
        weight * text[word] * (K + 1) / (text[word] + length)
        for word, weight in rarity.items()
        if word in text
    )
