"""Passages: the rows that search reads. Facts are memories, turns are messages.

Words are compared by BM25 over the scope of the query: rarity and length are counted in it, so a
word that is rare for a tenant is rare regardless of other tenants' texts. Source:
tests/bench/search.py; ts_rank_cd of PostgreSQL ignores rarity and finds far less. A scope of more
than MOST_WHOLE memories is not read: an inverted index selects the memories to score, see
pipeline/search/words/large_scopes. Of very many turns the newest are read: see newest_turns there.

Statements depend on the shape of a query, not on its values, so a shape is not compiled each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    ClauseElement,
    ColumnElement,
    CompoundSelect,
    FromClause,
    Integer,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.filters import ENTITY_IDS, size
from pipeline.domain.memories import Memory
from pipeline.domain.passages import FACT, PassageKey, Turn
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.versions import SnapshotKind
from pipeline.ledger.filter_conditions import IN_PROJECT
from pipeline.ledger.statements import SHAPES
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import memories, turn_vectors
from pipeline.memories.rows import as_memory
from pipeline.memories.superseded import readable_columns
from pipeline.search.candidate_columns import (
    WITH_TERMS,
    as_candidate,
    best_first,
    fact_columns,
    placed_facts,
    placed_turns,
    turn_columns,
)
from pipeline.search.candidates import Candidate
from pipeline.search.sql import statement
from pipeline.search.where import Shape, Where
from pipeline.search.words.bm25 import asking, found_words, ranking
from pipeline.search.words.large_scopes import WordStatistics
from pipeline.search.words.lookups import (
    MOST_COUNTED,
    by_lookups,
    looking,
    owner_names,
    word_counts,
)
from pipeline.search.words.newest_turns import large_scope, newest_turns
from pipeline.search.words.statistics import Count, StatisticsCache
from pipeline.text.terms import MOST_ASKED
from pipeline.turns.store import (
    among,
    as_turn,
    beside,
    forgotten,
    listed,
    listed_turns,
    turn_passages,
    uuids,
)
from pipeline.versions.states import COLUMNS, states

# Number of messages read per requested turn around a hit, because some messages are not turns.
REACH = 8
# Number of turns around hits that are read in one statement, about 15 ms of CPU.
AROUND_AT_ONCE = 1_000
# Number of turns around the hits of a search after which none are read for further hits: they do
# not fit into an answer.
MOST_AROUND = 4_000
# Largest scope of which all memories are compared with the words of a query.
MOST_WHOLE = 2_000


@dataclass(frozen=True, slots=True)
class WordHits:
    """Passages with words of the query, best first, by lexical score, 0..1.

    `candidates`: the same passages; those of a small scope also without a word of the query.
    `degraded`: the words were not compared. `cut`: not all passages with a word were compared.
    `texts`: number of texts in the scope.
    """

    shares: Mapping[PassageKey, float]
    candidates: Mapping[PassageKey, Candidate]
    degraded: bool = False
    cut: bool = False
    texts: int = 0


NO_WORDS = WordHits({}, {})


class Passages(LedgerStore):
    """Reads of a search: candidates by words, their places, vectors and texts."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self._statistics = StatisticsCache()

    async def by_words(
        self, where: Where, query_terms: Sequence[str], *, limit: int, with_terms: bool = False
    ) -> WordHits:
        """Return the first passages with any of the terms, at most `limit`.

        The score is BM25 divided by that of a text of average length with each term once. Terms
        that no passage in the scope has do not count.

        A scope of at most `limit` passages is read whole: then the candidates of the other channels
        need no statement of their own. `with_terms`: also read their terms.
        """
        if not query_terms:
            return NO_WORDS
        compare = partial(self._compare, query_terms, limit=limit, with_terms=with_terms)
        scope = None
        if where.is_current and where.shape.turns:
            scope = await large_scope(self._direct, where)
        if scope is None:
            return await compare(where)
        alone = replace(where, shape=replace(where.shape, turns=False))
        facts = await compare(alone) if where.shape.facts else NO_WORDS
        values = {**asking(query_terms, limit=limit), "with_terms": with_terms}
        values |= {**where.values, "lanes": scope.lane_ids}
        build = _by_words_of_project if scope.lane_ids is None else _by_words_of_lanes
        rows = await self._rows(build, replace(where.shape, facts=False), values)
        return _best_of(facts, _word_hits(rows), limit=limit, cut=True)

    async def _compare(
        self, query_terms: Sequence[str], where: Where, *, limit: int, with_terms: bool
    ) -> WordHits:
        """Compare the passages of a scope: all of them, or many memories by lookups."""
        values = {**where.values, **asking(query_terms, limit=limit), "with_terms": with_terms}
        may_be_large = where.of_pins_only and where.is_current and where.shape.facts
        statistics = self._statistics.get(*self._counting(where)) if may_be_large else None
        if statistics is None:
            rows = await self._rows(_by_words, where.shape, values)
            if not where.is_current or rows[0]["facts"] <= MOST_WHOLE:
                return _word_hits(rows)
            statistics = await self._statistics.counted(*self._counting(where))
            if statistics is None:
                return replace(_word_hits(rows), cut=True)
        facts = await self._by_lookups(query_terms, where, statistics, values)
        if not where.shape.turns:
            return facts
        rows = await self._rows(_by_words, replace(where.shape, facts=False), values)
        return _best_of(facts, _word_hits(rows), limit=limit, cut=facts.cut)

    async def _by_lookups(
        self,
        query_terms: Sequence[str],
        where: Where,
        statistics: WordStatistics,
        values: Mapping[str, Any],
    ) -> WordHits:
        """Compare the memories of a large scope that the words of a query select."""
        lookups = statistics.lookups(query_terms)
        values = {**values, **looking(lookups, statistics, where.pins)}
        rows = await self._rows(by_lookups, replace(where.shape, turns=False), values)
        hits = _word_hits(rows)
        for candidate in hits.candidates.values():  # as words of the turns, which are terms
            candidate.words = [query_terms[int(position)] for position in candidate.words]
        cut = lookups.cut or rows[0]["limited"]
        return replace(hits, cut=cut, texts=statistics.texts)

    async def in_scope(
        self, scope: Scope, query_terms: Sequence[str], *, limit: int
    ) -> tuple[list[UUID], int]:
        """Return ids of memories with the most and the rarest of the terms, best first.

        Also the number of memories. Some ids may be of other scopes with the same entity ids.
        """
        pins = {name: value for name in ENTITY_IDS if (value := getattr(scope, name)) is not None}
        where = Where.of_ids(scope.project_id, pins)
        hits = await self.by_words(where, query_terms[:MOST_ASKED], limit=limit)
        return [key.id for key in hits.shares], hits.texts

    def _counting(self, where: Where) -> tuple[Hashable, Count]:
        """The key of the statistics of a scope, and the function that counts them."""
        scope = (where.project_id, tuple(sorted(where.pins.items())))
        return scope, partial(self._count_words, Where.of_ids(where.project_id, where.pins))

    async def _count_words(self, where: Where) -> WordStatistics | None:
        """Count the words of the newest texts, and the texts; the books have the number of many.

        None if the scope has few texts, and needs no lookups.
        """
        [row] = await self._rows(word_counts, where.shape, where.values)
        texts = row["counted"]
        if texts <= MOST_WHOLE:
            return None
        if texts == MOST_COUNTED:
            values = {"in_project": where.project_id, **owner_names(where.pins)}
            [(memories,)] = await self._direct.rows(statement("memory_number"), values)
            texts = max(texts, memories or 0)
        scale = texts / row["counted"]
        holding = {
            term: min(count * scale, texts)
            for term, count in zip(row["terms"] or (), row["counts"] or (), strict=True)
        }
        return WordStatistics(texts, max(row["length"] or 1, 1), holding, row["counted"])

    async def vectors(
        self, where: Where, *, embedder: str, most: int
    ) -> list[tuple[PassageKey, bytes]] | None:
        """Return the packed vectors of all matching passages; None if there are more than `most`.

        Passages without a vector of this embedder are left out.
        """
        values = {**where.values, "embedder": embedder, "most": most}
        rows = await self._rows(_vectors, where.shape, values)
        if any(row.id is None for row in rows):
            return None
        return [(PassageKey(id_, ordinal), embedding) for id_, ordinal, embedding in rows]

    async def matching(self, where: Where, keys: Sequence[PassageKey]) -> list[PassageKey]:
        """Return those of the keys that match."""
        if not keys:
            return []
        facts = [key.id for key in keys if not key.is_turn]
        values = {**where.values, **listed("turns", keys), "facts": facts}
        rows = await self._rows(_matching, where.shape, values)
        return [PassageKey(id_, ordinal) for id_, ordinal in rows]

    async def candidates(
        self,
        where: Where,
        keys: Sequence[PassageKey],
        *,
        embedded: Sequence[PassageKey],
        embedder: str,
        with_terms: bool = False,
    ) -> list[Candidate]:
        """Return the passages with these keys that exist and match.

        `embedded`: keys to read with their vectors, if this embedder computed them.
        `with_terms`: also read their terms.
        """
        if not keys:
            return []
        values = {
            **where.values,
            **listed("turns", keys),
            **listed("lacking", embedded),
            "facts": [key.id for key in keys if not key.is_turn],
            "lacking": [key.id for key in embedded if not key.is_turn],
            "embedder": embedder,
            "with_terms": with_terms,
        }
        return [as_candidate(row) for row in await self._rows(_candidates, where.shape, values)]

    async def read(
        self, where: Where, keys: Sequence[PassageKey]
    ) -> dict[PassageKey, Memory | Turn]:
        """Return the project's passages with these keys; deleted ones are left out.

        Memories are read as they were at the time of the search.
        """
        passages: dict[PassageKey, Memory | Turn] = {}
        if facts := [key.id for key in keys if not key.is_turn]:
            past = where.shape
            query = _FACTS if where.is_current else _past_facts(past.snapshot, past.pins)
            for row in await self._direct.rows(query, {**where.values, "facts": facts}):
                passages[PassageKey(row.id)] = as_memory(row)
        if any(key.is_turn for key in keys):
            for row in await self._direct.rows(_TURNS, {**where.values, **listed("turns", keys)}):
                passages[PassageKey(row.event_id, row.ordinal)] = as_turn(row)
        return passages

    async def around(
        self,
        project_id: ProjectId,
        keys: Sequence[PassageKey],
        *,
        turns: int,
        most: int = MOST_AROUND,
    ) -> dict[PassageKey, list[Turn]]:
        """Return up to `turns` turns before and after each passage of the project, oldest first.

        Those of the first passages, if there are more than `most` in all.
        """
        if not turns:
            return {}
        around: dict[PassageKey, list[Turn]] = defaultdict(list)
        at_once, number = max(1, AROUND_AT_ONCE // (2 * turns)), 0
        for start in range(0, len(keys), at_once):
            if number >= most:
                break
            some = keys[start : start + at_once]
            values = {
                **listed("turns", some),
                "in_project": project_id,
                "facts": [key.id for key in some if not key.is_turn],
                "count": turns,
                "reach": REACH * turns,
            }
            rows = await self._direct.rows(beside(), values)
            for row in rows:
                around[PassageKey(row.of_id, row.of_ordinal)].append(as_turn(row))
            number += len(rows)
        return around

    async def _rows(
        self, build: Callable[[Shape], ClauseElement], shape: Shape, values: Mapping[str, Any]
    ) -> Sequence[Any]:
        compiled = await SHAPES.of(build, shape, conditions=size(shape.tree))
        return await self._direct.rows(compiled, values)


# All columns of a memory without the vector, which has a kilobyte or more.
_READ = [column for column in readable_columns() if column.name not in ("embedding", "terms")]
_FACTS = select(*_READ).where(
    memories.c.project_id == IN_PROJECT,
    memories.c.id == any_(uuids("facts")),
    memories.c.state == "ACTIVE",
)


@cache
def _past_facts(snapshot: SnapshotKind, pins: tuple[str, ...]) -> Select[Any]:
    """Select memories by id, as they were at a time."""
    past = states(snapshot, pins)
    columns = [past.c.id, *(past.c[column.name] for column in _READ if column.name in COLUMNS)]
    return select(*columns).where(past.c.id == any_(uuids("facts")))


_LISTED_TURNS = listed_turns("turns")
_TURNS = select(_LISTED_TURNS).where(
    _LISTED_TURNS.c.project_id == IN_PROJECT, ~forgotten(_LISTED_TURNS)
)
_EMBEDDER = bindparam("embedder", type_=Text)


def _by_words(shape: Shape) -> ClauseElement:
    """Select the ranked passages as candidates; all passages, if they are at most `limit`.

    Of current memories, the newest MOST_WHOLE are compared, and one more tells that there are
    others. At least one row: without passages, it has only `texts`, the number of passages read,
    and `facts`, that of memories.
    """
    return _ranked_first(shape, _scope(shape))


def _by_words_of_lanes(shape: Shape) -> ClauseElement:
    """Like `_by_words`, for the newest turns of the lanes `lanes`."""
    return _ranked_first(shape, newest_turns(shape, of_lanes=True).cte("scope"))


def _by_words_of_project(shape: Shape) -> ClauseElement:
    """Like `_by_words`, for the newest turns of the project."""
    return _ranked_first(shape, newest_turns(shape, of_lanes=False).cte("scope"))


def _ranked_first(shape: Shape, scope: CTE) -> ClauseElement:
    """Select the ranked passages of `scope` as candidates; all of them, if they are few."""
    ranked = ranking(scope).cte("ranked")
    texts = select(func.count()).select_from(scope).scalar_subquery()
    few = texts <= bindparam("limit", type_=Integer)
    # A full join is a hash join; all ranked passages are in the scope. The planner expects a few
    # rows of a left one, and compares each passage with each ranked one.
    is_ranked = and_(ranked.c.id == scope.c.id, ranked.c.ordinal == scope.c.ordinal)
    first = (
        select(scope, *found_words(ranked))
        .join(ranked, is_ranked, full=True)
        .where(or_(ranked.c.share.is_not(None), few))
        .cte("first")
    )
    its_terms = case((WITH_TERMS, first.c.terms)).label("terms")
    facts = placed_facts(first, *found_words(first), its_terms)
    turns = placed_turns(first, *found_words(first), its_terms)
    if not shape.turns:
        placed: Select[Any] | CompoundSelect[Any] = facts
    elif not shape.facts:
        placed = turns
    else:
        is_fact = first.c.ordinal == FACT
        placed = union_all(facts.where(is_fact), turns.where(~is_fact))
    facts_read = select(func.count()).where(scope.c.ordinal == FACT).scalar_subquery()
    return best_first(placed, texts=texts, facts=facts_read)


def _word_hits(rows: Sequence[Any]) -> WordHits:
    """The hits of `_by_words` or `by_lookups`."""
    some = [row for row in rows if row["id"] is not None]
    candidates = [as_candidate(row) for row in some]
    shares = {
        candidate.key: min(1.0, row["share"])
        for candidate, row in zip(candidates, some, strict=True)
        if row["share"] is not None
    }
    by_key = {candidate.key: candidate for candidate in candidates}
    return WordHits(shares, by_key, texts=rows[0]["texts"])


def _best_of(facts: WordHits, turns: WordHits, *, limit: int, cut: bool) -> WordHits:
    """The hits of a large scope, whose memories and turns were compared apart, best first."""
    shares = sorted({**facts.shares, **turns.shares}.items(), key=lambda hit: -hit[1])[:limit]
    candidates = {**facts.candidates, **turns.candidates}
    return WordHits(dict(shares), candidates, cut=cut, texts=facts.texts + turns.texts)


def _scope(shape: Shape) -> CTE:
    """CTE of all passages of the query, facts and turns together."""
    parts: list[Select[Any]] = []
    if shape.facts:
        facts = shape.memories
        rows = select(*fact_columns(facts), facts.c.terms).where(shape.on_facts)
        if shape.is_current:
            newest = rows.order_by(memories.c.created_at.desc())
            rows = select(newest.limit(literal_column(str(MOST_WHOLE + 1))).subquery("facts"))
        parts.append(rows)
    if shape.turns:
        parts.append(select(*turn_columns(), turn_passages.c.terms).where(shape.on_turns()))
    return union_all(*parts).cte("scope")


def _vectors(shape: Shape) -> ClauseElement:
    """Select (id, ordinal, embedding) of all matching passages.

    If more than `most` match, select one row without an id instead, and read no vector.
    """
    most = bindparam("most", type_=Integer)
    keys, embedded = zip(*_embedded(shape), strict=True)
    some = union_all(*(part.limit(most + 1) for part in keys))
    counted = select(func.count().label("passages")).select_from(some.subquery()).cte("counted")
    passages = select(counted.c.passages).scalar_subquery()
    more = select(null(), null(), null()).where(passages > most)
    return union_all(*(part.where(passages <= most) for part in embedded), more)


def _embedded(shape: Shape) -> list[tuple[Select[Any], Select[Any]]]:
    """Of each kind: keys of matching passages, and (id, ordinal, embedding) by this embedder."""
    parts: list[tuple[Select[Any], Select[Any]]] = []
    if shape.facts:
        fact = cast(literal(FACT), Integer).label("ordinal")
        table = shape.memories
        key = select(table.c.id).where(shape.on_facts, table.c.embedder == _EMBEDDER)
        parts.append((key, key.with_only_columns(table.c.id, fact, table.c.embedding)))
    if shape.turns:
        passage = turn_passages.c
        key = select(passage.event_id.label("id"), passage.ordinal).where(shape.on_turns())
        turns = key.subquery("turns")
        vector = _vector_of(turns)
        embedded = select(turns.c.id, turns.c.ordinal, vector.c.embedding)
        only_key = key.with_only_columns(passage.event_id.label("id"))
        parts.append((only_key, embedded.select_from(turns.join(vector, true()))))
    return parts


def _vector_of(turns: FromClause, *where: ColumnElement[bool]) -> FromClause:
    """The vector of each turn by this embedder, looked up by its key.

    A join by the plan of a small table would read all.
    """
    its = turn_vectors.c
    key = (its.event_id == turns.c.id, its.ordinal == turns.c.ordinal)
    query = select(its.embedding).where(*where, *key, its.embedder == _EMBEDDER)
    return query.limit(literal_column("1")).lateral("vector")


def _matching(shape: Shape) -> ClauseElement:
    parts: list[Select[Any]] = []
    if shape.facts:
        fact = cast(literal(FACT), Integer).label("ordinal")
        facts, condition = _by_ids(shape)
        parts.append(select(facts.c.id, fact).where(condition))
    if shape.turns:
        turns = _LISTED_TURNS
        turn = select(turns.c.event_id.label("id"), turns.c.ordinal)
        parts.append(turn.where(shape.on_turns(turns)))
    return union_all(*parts)


def _by_ids(shape: Shape) -> tuple[FromClause, ColumnElement[bool]]:
    """Memories with the ids `facts`, and the condition that those of the search meet.

    OFFSET 0 keeps the planner from reading an owner's whole index beside that of the ids.
    """
    if not shape.is_current:
        return shape.memories, and_(shape.memories.c.id == any_(uuids("facts")), shape.on_facts)
    by_id = select(memories).where(memories.c.id == any_(uuids("facts")))
    read = by_id.offset(literal_column("0")).subquery("read")
    return read, shape.on_current(read)


def _candidates(shape: Shape) -> ClauseElement:
    """Select the passages with the given keys as candidates."""
    parts = []
    if shape.facts:
        facts, condition = _by_ids(shape)
        wanted = and_(facts.c.id == any_(uuids("lacking")), facts.c.embedder == _EMBEDDER)
        chosen = (
            select(
                *fact_columns(facts),
                case((wanted, facts.c.embedding)).label("embedding"),
                case((WITH_TERMS, facts.c.terms)).label("terms"),
            )
            .where(condition)
            .subquery("facts")
        )
        parts.append(placed_facts(chosen, chosen.c.embedding, chosen.c.terms))
    if shape.turns:
        turns = _LISTED_TURNS
        turn = select(
            *turn_columns(turns),
            case((WITH_TERMS, turns.c.terms)).label("terms"),
            among(turns, "lacking").label("lacks_vector"),
        )
        chosen = turn.where(shape.on_turns(turns)).subquery("turns")
        vector = _vector_of(chosen, chosen.c.lacks_vector)
        placed = placed_turns(chosen, vector.c.embedding, chosen.c.terms)
        parts.append(placed.outerjoin(vector, true()))
    return union_all(*parts)
