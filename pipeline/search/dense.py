"""The dense channel: which passages are near a query in meaning.

    ids only        index ──► 200 nearest ──► enough of them match? ──► done
    further filter  ledger: count what matches ──► ≤ 5,000: compare all of it, exactly
                                               └─► more: index, 200 ► 1,000 ► 5,000 nearest

The index filters by ids alone. A further condition, or many expired memories, would leave few of
its nearest, so what matches is compared from the ledger's own vectors. Where that is too much and
the widest look still finds too few, the result is marked incomplete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from pipeline.domain.errors import TransientError
from pipeline.domain.filters import Filter, covers, of_pins_only
from pipeline.domain.passages import PassageKey
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import NO_VECTOR, Vector
from pipeline.ports import Embedder, VectorHit
from pipeline.search.ports import SearchStores
from pipeline.search.store import Placed, Where
from pipeline.vector_index.index import VectorIndex, compared

log = structlog.get_logger()

# Passages compared exactly: 8 MB of vectors of 384 dimensions, some 50 ms.
MOST_EXACT = 5_000
# How much wider each further look at the index is, up to the same figure.
WIDER = 5
# Below every cosine.
NOTHING_CUT = -2.0


@dataclass(frozen=True, slots=True)
class Near:
    """Where to look for what is near in meaning. Without `turns`, turns have no vectors."""

    ledger: SearchStores
    embedder: Embedder
    index: VectorIndex
    turns: VectorIndex | None

    def compares(self, key: PassageKey) -> bool:
        return self.turns is not None or not key.is_turn


@dataclass(frozen=True, slots=True)
class Asked:
    """`least`: cosines below it do not count; `enough`: how many above it are needed."""

    project_id: ProjectId
    tree: Filter
    where: Where
    vector: Vector
    least: float
    enough: int


@dataclass(frozen=True, slots=True)
class Meaning:
    """Cosines of the nearest passages. `cut`: the index holds more, and how near they may be.

    No vector: the channel could not be asked. `exact`: all that matches was compared.
    """

    vector: Vector = field(default_factory=lambda: NO_VECTOR)
    cosines: Mapping[PassageKey, float] = field(default_factory=dict)
    cut: float = NOTHING_CUT
    exact: bool = False
    incomplete: bool = False

    @property
    def degraded(self) -> bool:
        return not self.vector.size


async def nearest(asked: Asked, near: Near, *, limit: int) -> Meaning:
    """The first look. Filters beyond ids are compared exactly where that is affordable."""
    if not asked.vector.size:
        return Meaning()
    try:
        exact = None if of_pins_only(asked.tree) else await _exact(asked, near, limit=limit)
        return exact or await _indexed(asked, near, limit=limit)
    except TransientError as error:
        log.warning("search_degraded", code=error.code)
        return Meaning()


def is_short(meaning: Meaning, candidates: Sequence[Placed], asked: Asked) -> bool:
    """Whether the look ended before enough of the passages it found matched the filter."""
    if meaning.degraded or meaning.exact or meaning.cut < asked.least:
        return False
    matching = sum(meaning.cosines.get(one.key, -1.0) >= asked.least for one in candidates)
    return matching < asked.enough


async def widened(meaning: Meaning, asked: Asked, near: Near, *, limit: int) -> Meaning:
    """The further looks, for a first one that is short."""
    try:
        if of_pins_only(asked.tree) and (exact := await _exact(asked, near, limit=limit)):
            return exact
        return await _wider(meaning, asked, near, limit=limit)
    except TransientError as error:
        log.warning("search_degraded", code=error.code)
        return replace(meaning, incomplete=True)


async def _wider(meaning: Meaning, asked: Asked, near: Near, *, limit: int) -> Meaning:
    width = limit
    while width < MOST_EXACT:
        width = min(WIDER * width, MOST_EXACT)
        meaning = await _indexed(asked, near, limit=width)
        matching = await near.ledger.passages.matching(asked.where, list(meaning.cosines))
        cosines = {key: meaning.cosines[key] for key in matching}
        meaning = replace(meaning, cosines=_best(cosines, limit))
        above = sum(cosine >= asked.least for cosine in cosines.values())
        if above >= asked.enough or meaning.cut < asked.least:
            return meaning
    return replace(meaning, incomplete=True)


async def _exact(asked: Asked, near: Near, *, limit: int) -> Meaning | None:
    """All that matches, compared from the ledger's vectors; None where that is too much."""
    passages, embedder = near.ledger.passages, near.embedder.name
    where = asked.where.with_vectors(turns=near.turns is not None)
    if where is None:
        return Meaning(asked.vector, exact=True)
    if await passages.count(where, embedder=embedder, stop=MOST_EXACT + 1) > MOST_EXACT:
        return None
    packed = await passages.vectors(where, embedder=embedder)
    [cosines] = compared(packed, [asked.vector])
    return Meaning(asked.vector, _best(cosines, limit), exact=True)


async def _indexed(asked: Asked, near: Near, *, limit: int) -> Meaning:
    """The nearest by the index, which knows ids alone."""
    shape, project = asked.where.shape, {"project_id": str(asked.project_id)}
    places = [project | pins for pins in covers(asked.tree)]
    kinds = [_facts] * shape.facts + [_turns] * (shape.turns and near.turns is not None)
    looks = await asyncio.gather(
        *(kind(near, place, asked.vector, limit=limit) for kind in kinds for place in places)
    )
    cosines = {key: cosine for look, _ in looks for key, cosine in look.items()}
    return Meaning(asked.vector, cosines, cut=max((cut for _, cut in looks), default=NOTHING_CUT))


async def _facts(
    near: Near, where: Mapping[str, str], vector: Vector, *, limit: int
) -> tuple[dict[PassageKey, float], float]:
    hits = await near.index.nearest(where, vector, limit=limit)
    return {PassageKey(hit.id): hit.similarity for hit in hits}, _cut(hits, limit)


async def _turns(
    near: Near, where: Mapping[str, str], vector: Vector, *, limit: int
) -> tuple[dict[PassageKey, float], float]:
    assert near.turns is not None
    hits = await near.turns.nearest(where, vector, limit=limit)
    keys = await near.ledger.turn_vectors.keys([hit.id for hit in hits])
    return {keys[hit.id]: hit.similarity for hit in hits if hit.id in keys}, _cut(hits, limit)


def _cut(hits: Sequence[VectorHit], limit: int) -> float:
    """How near what was left out may be."""
    return hits[-1].similarity if len(hits) >= limit else NOTHING_CUT


def _best(cosines: Mapping[PassageKey, float], limit: int) -> dict[PassageKey, float]:
    nearest_first = sorted(cosines, key=lambda key: (-cosines[key], key))
    return {key: cosines[key] for key in nearest_first[:limit]}
