"""Dense channel: the passages nearest to a query in meaning.

    ids only        few memories ──► compare all of them from the ledger, exactly
                    └─► more: index ──► 200 nearest ──► enough of them match? ──► done
    further filter  ledger: count the matches ──► ≤ 5,000: compare all of them, exactly
                                              └─► more: index, 200 ► 1,000 ► 5,000 nearest
    much not yet in the index                    ≤ 5,000: compare all of them, exactly
                                             └─► more: the index and its newest changes, partial
    at a time       ledger: count the states ──► ≤ 5,000: compare all of them, exactly
                                             └─► more: words alone, incomplete

The index filters by ids alone. With another condition, or many expired memories, few of its nearest
would match, so the matches are compared from the ledger's vectors. If these are too many, and the
widest query still returns too few, the result is marked incomplete. The index has no past states.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import structlog

from pipeline import telemetry
from pipeline.domain.errors import StoreUnavailable, TransientError
from pipeline.domain.filters import Filter, covers, of_pins_only
from pipeline.domain.passages import PassageKey
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import NO_VECTOR, Vector
from pipeline.events.progress import FEW
from pipeline.ports import Embedder, VectorHit
from pipeline.search.candidates import Candidate
from pipeline.search.ports import SearchStores
from pipeline.search.where import Where
from pipeline.vector_index.index import VectorIndex, compared

log = structlog.get_logger()

# Passages compared exactly: 8 MB of vectors of 384 dimensions, some 50 ms.
MOST_EXACT = 5_000
# Factor by which each further query of the index is wider, up to the same number.
WIDER = 5
# If the index takes longer, words alone are compared. Its store may answer writes for longer.
INDEX_TIMEOUT_S = 5.0
# Below every cosine.
NOTHING_CUT = -2.0


@dataclass(frozen=True, slots=True)
class DenseStores:
    """Stores that the channel reads. Without `turns`, turns have no vectors."""

    ledger: SearchStores
    embedder: Embedder
    index: VectorIndex
    turns: VectorIndex | None

    def has_vector(self, key: PassageKey) -> bool:
        """Tell if passages of this kind have vectors."""
        return self.turns is not None or not key.is_turn


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """Query of the channel.

    `least`: lowest cosine that counts. `enough`: number of such passages needed. `stale`: the index
    may lack the latest vector of a memory. `few`: the ids of the filter have few memories.
    """

    project_id: ProjectId
    filter: Filter
    where: Where
    vector: Vector
    least: float
    enough: int
    stale: bool = True
    few: bool = False


@dataclass(frozen=True, slots=True)
class DenseHits:
    """Cosines of the nearest passages.

    `cut`: highest cosine that a passage left out by the index can have. `exact`: all matches were
    compared. `incomplete`: too few were found. `partial`: memories that the index lacks so far were
    not all compared. Without a vector the channel did not answer.
    """

    vector: Vector = field(default_factory=lambda: NO_VECTOR)
    cosines: Mapping[PassageKey, float] = field(default_factory=dict)
    cut: float = NOTHING_CUT
    exact: bool = False
    incomplete: bool = False
    partial: bool = False

    @property
    def degraded(self) -> bool:
        """True if the channel did not answer."""
        return not self.vector.size


async def nearest(query: DenseQuery, stores: DenseStores, *, limit: int) -> DenseHits:
    """Return the first hits.

    Filters beyond ids are compared exactly if few enough passages match.
    """
    if not query.vector.size:
        return DenseHits()
    try:
        if query.where.is_current:
            return await _current(query, stores, limit=limit)
        exact = await _exact(query, stores, limit=limit, most=MOST_EXACT)
        return exact or DenseHits(query.vector, exact=True, incomplete=True)
    except TransientError as error:
        log.warning("search_degraded", code=error.code)
        telemetry.searches_without_vectors.inc()
        return DenseHits()


async def _current(query: DenseQuery, stores: DenseStores, *, limit: int) -> DenseHits:
    """Return the first hits among current passages: exactly, or those of the index."""
    by_ids = of_pins_only(query.filter)
    most = FEW if by_ids else MOST_EXACT
    exact = None
    if query.few or not by_ids:
        exact = await _exact(query, stores, limit=limit, most=most)
    hits = exact or await _indexed(query, stores, limit=limit)
    if hits.partial and by_ids:
        return await _exact(query, stores, limit=limit, most=MOST_EXACT) or hits
    return hits


def is_short(hits: DenseHits, candidates: Sequence[Candidate], query: DenseQuery) -> bool:
    """Tell if fewer passages matched the filter than needed, although the index has more."""
    if hits.degraded or hits.exact or hits.cut < query.least:
        return False
    near = (
        candidate
        for candidate in candidates
        if hits.cosines.get(candidate.key, -1.0) >= query.least
    )
    return sum(1 for _ in islice(near, query.enough)) < query.enough


async def widened(
    hits: DenseHits, query: DenseQuery, stores: DenseStores, *, limit: int
) -> DenseHits:
    """Query more of the index, after first hits that are short."""
    try:
        if of_pins_only(query.filter):
            exact = await _exact(query, stores, limit=limit, most=MOST_EXACT)
            if exact is not None:
                return exact
        return await _wider(hits, query, stores, limit=limit)
    except TransientError as error:
        log.warning("search_degraded", code=error.code)
        telemetry.searches_without_vectors.inc()
        return replace(hits, incomplete=True)


async def _wider(
    hits: DenseHits, query: DenseQuery, stores: DenseStores, *, limit: int
) -> DenseHits:
    """Widen the query of the index until enough of its nearest match."""
    width = limit
    while width < MOST_EXACT:
        width = min(WIDER * width, MOST_EXACT)
        hits = await _indexed(query, stores, limit=width)
        matching = await stores.ledger.passages.matching(query.where, list(hits.cosines))
        cosines = {key: hits.cosines[key] for key in matching}
        hits = replace(hits, cosines=_best(cosines, limit))
        above = sum(cosine >= query.least for cosine in cosines.values())
        if above >= query.enough or hits.cut < query.least:
            return hits
    return replace(hits, incomplete=True)


async def _exact(
    query: DenseQuery, stores: DenseStores, *, limit: int, most: int
) -> DenseHits | None:
    """Compare all matches with the ledger's vectors; None if they are more than `most`."""
    passages, embedder = stores.ledger.passages, stores.embedder.name
    where = query.where.with_vectors(turns=stores.turns is not None)
    if where is None:
        return DenseHits(query.vector, exact=True)
    packed = await passages.vectors(where, embedder=embedder, most=most)
    if packed is None:
        return None
    [cosines] = compared(packed, [query.vector])
    return DenseHits(query.vector, _best(cosines, limit), exact=True)


async def _indexed(query: DenseQuery, stores: DenseStores, *, limit: int) -> DenseHits:
    """Return the nearest in the index, which filters by ids alone.

    Errors: StoreUnavailable, also if the index does not answer in time.
    """
    shape, project = query.where.shape, {"project_id": str(query.project_id)}
    scopes = [project | pins for pins in covers(query.filter)]
    kinds = [_facts] * shape.facts + [_turns] * (shape.turns and stores.turns is not None)
    try:
        async with asyncio.timeout(INDEX_TIMEOUT_S):
            looks = await asyncio.gather(
                *(kind(stores, ids, query, limit=limit) for kind in kinds for ids in scopes)
            )
    except TimeoutError:
        raise StoreUnavailable("The index did not answer a search in time.") from None
    cosines = {key: cosine for look in looks for key, cosine in look.cosines.items()}
    cut = max((look.cut for look in looks), default=NOTHING_CUT)
    return DenseHits(query.vector, cosines, cut, partial=any(look.partial for look in looks))


async def _facts(
    stores: DenseStores, ids: Mapping[str, str], query: DenseQuery, *, limit: int
) -> DenseHits:
    near = await stores.index.nearest(ids, query.vector, limit=limit, stale=query.stale)
    cosines = {PassageKey(hit.id): hit.similarity for hit in near.hits}
    cut = _cut(near.hits, limit)
    return DenseHits(query.vector, cosines, cut, partial=not near.complete)


async def _turns(
    stores: DenseStores, ids: Mapping[str, str], query: DenseQuery, *, limit: int
) -> DenseHits:
    assert stores.turns is not None
    near = await stores.turns.nearest(ids, query.vector, limit=limit)
    keys = await stores.ledger.turn_vectors.keys([hit.id for hit in near.hits])
    cosines = {keys[hit.id]: hit.similarity for hit in near.hits if hit.id in keys}
    cut = _cut(near.hits, limit)
    return DenseHits(query.vector, cosines, cut, partial=not near.complete)


def _cut(hits: Sequence[VectorHit], limit: int) -> float:
    """Return the highest cosine that a passage beyond the limit can have."""
    return hits[-1].similarity if len(hits) >= limit else NOTHING_CUT


def _best(cosines: Mapping[PassageKey, float], limit: int) -> dict[PassageKey, float]:
    nearest_first = sorted(cosines, key=lambda key: (-cosines[key], key))
    return {key: cosines[key] for key in nearest_first[:limit]}
