"""Passages: the rows that search reads. Facts are memories, turns are messages.

Words are compared by BM25 over the scope of the query: rarity and length are counted in it, so a
word that is rare for a tenant is rare regardless of other tenants' texts. Source:
tests/bench/search.py; ts_rank_cd of PostgreSQL ignores rarity and finds far less. A scope of more
than MOST_WHOLE memories is not read: an inverted index selects the memories to score, see
pipeline/search/words.py.

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
    BigInteger,
    Boolean,
    ClauseElement,
    ColumnElement,
    CompoundSelect,
    Float,
    FromClause,
    Integer,
    ScalarSelect,
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
    nulls_last,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.filters import ENTITY_IDS, AllOf, Filter, Test, of_pins_only, pinned, size
from pipeline.domain.memories import Memory
from pipeline.domain.messages import Role
from pipeline.domain.passages import FACT, PassageKey, Turn
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.versions import CURRENT, Snapshot, SnapshotKind
from pipeline.ledger.filter_conditions import IN_PROJECT, matching, shape
from pipeline.ledger.statements import SHAPES, Direct
from pipeline.ledger.tables import events, memories, messages, turn_vectors
from pipeline.memories.expiration import unexpired
from pipeline.memories.rows import as_memory
from pipeline.memories.superseded import readable_columns, superseded
from pipeline.search.bm25 import asking, ranking, ranking_by_forms
from pipeline.search.candidates import Candidate
from pipeline.search.sql import statement
from pipeline.search.statistics import Count, StatisticsCache
from pipeline.search.words import QueryLookups, WordStatistics
from pipeline.text.terms import MOST_ASKED
from pipeline.turns.store import (
    among,
    as_turn,
    beside,
    forgotten,
    just_before,
    listed,
    turn_passages,
    uuids,
)
from pipeline.versions.states import (
    AS_OF,
    COLUMNS,
    VALID_AT,
    is_older,
    pin_values,
    reference_time,
    states,
)

# Number of messages read per requested turn around a hit, because some messages are not turns.
REACH = 8
# Number of turns around hits that are read in one statement, about 15 ms of CPU.
AROUND_AT_ONCE = 1_000
# Number of turns around the hits of a search after which none are read for further hits: they do
# not fit into an answer.
MOST_AROUND = 4_000
# Largest scope of which all memories are compared with the words of a query.
MOST_WHOLE = 2_000
# Texts of a scope, the newest ones, in which words are counted; most different words; and the
# number up to which the texts themselves are counted.
MOST_COUNTED, MOST_WORDS, MOST_TEXTS = 20_000, 50_000, 300_000


@dataclass(frozen=True, slots=True)
class Shape:
    """The part of a query that its statements depend on; `tree` has parameter names as values."""

    tree: Filter
    facts: bool
    turns: bool
    expired: bool
    older: bool
    snapshot: SnapshotKind = CURRENT.kind
    pins: tuple[str, ...] = ()

    def on(self, table: FromClause) -> ColumnElement[bool]:
        """The condition on the rows of this table."""
        matches = matching(self.tree, table)
        at = reference_time(self.snapshot)
        return matches if self.expired else and_(matches, unexpired(table, at))

    @property
    def is_current(self) -> bool:
        """True for a search of the current memories."""
        return self.snapshot == CURRENT.kind

    @property
    def memories(self) -> FromClause:
        """The memories to search: the table itself, or their states at a time."""
        return memories if self.is_current else states(self.snapshot, self.pins)

    @property
    def on_facts(self) -> ColumnElement[bool]:
        """The condition on rows of `memories`; with `older`, also on superseded ones."""
        if self.is_current:
            return self.on_current(memories)
        here = self.on(self.memories)
        return here if self.older else and_(here, ~is_older(self.memories))

    def on_current(self, table: FromClause) -> ColumnElement[bool]:
        """The condition on rows of `memories`, or of a subquery with its columns."""
        active = and_(table.c.state == "ACTIVE", self.on(table))
        return active if self.older else and_(active, ~superseded(table))

    @property
    def of_memories(self) -> bool:
        """True for a search of current memories alone: an inverted index has their words."""
        return self.is_current and not self.turns

    @property
    def on_turns(self) -> ColumnElement[bool]:
        """The condition on turns: those accepted, and said, by the times of the snapshot."""
        times = [turn_passages.c.created_at <= AS_OF] * self.snapshot.as_of
        times += [turn_passages.c.said_at <= VALID_AT] * self.snapshot.valid_at
        return and_(self.on(turn_passages), *times)


@dataclass(frozen=True, slots=True)
class Where:
    """The passages that a query compares: facts, turns or both, of one project.

    `pins`: the entity ids that every match has; `of_pins_only`: there is no other condition.
    """

    shape: Shape
    values: Mapping[str, Any]
    pins: Mapping[str, str]
    of_pins_only: bool

    @classmethod
    def of(
        cls,
        project_id: ProjectId,
        tree: Filter,
        *,
        facts: bool,
        turns: bool,
        expired: bool,
        older: bool = False,
        snapshot: Snapshot = CURRENT,
    ) -> Where:
        """Select the passages of a project that match the filter, at the time of the snapshot."""
        shaped, values = shape(tree)
        values |= {"in_project": project_id}
        pins, only = pinned(tree), of_pins_only(tree)
        if snapshot.is_current:
            return cls(Shape(shaped, facts, turns, expired, older), values, pins, only)
        values |= pin_values(pins) | snapshot.values
        names, older = tuple(sorted(pins)), older or snapshot.superseded
        shaped_past = Shape(shaped, facts, turns, expired, older, snapshot.kind, names)
        return cls(shaped_past, values, pins, only)

    @classmethod
    def of_ids(cls, project_id: ProjectId, ids: Mapping[str, str]) -> Where:
        """Select all current memories with these entity ids, also expired and superseded ones."""
        tree = AllOf(tuple(Test(name, "eq", value) for name, value in ids.items()))
        return cls.of(project_id, tree, facts=True, turns=False, expired=True, older=True)

    @property
    def is_current(self) -> bool:
        """True for a search of the current memories."""
        return self.shape.is_current

    @property
    def project_id(self) -> ProjectId:
        """The project that is searched."""
        return ProjectId(self.values["in_project"])

    @property
    def of_pins(self) -> Where:
        """All current memories with the pinned ids."""
        return Where.of_ids(self.project_id, self.pins)

    def with_vectors(self, *, turns: bool) -> Where | None:
        """Select the passages with vectors: no turns unless `turns`. None if none are left."""
        if turns or not self.shape.turns:
            return self
        return replace(self, shape=replace(self.shape, turns=False)) if self.shape.facts else None


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


class Passages:
    """Reads of a search: candidates by words, their places, vectors and texts."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._direct = Direct(engine)
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
        statistics = self._kept_statistics(where) if where.of_pins_only else None
        if statistics is None:
            values = {**where.values, **asking(query_terms, limit=limit), "with_terms": with_terms}
            rows = await self._rows(_by_words, where.shape, values)
            if not where.shape.of_memories or rows[0]["texts"] <= MOST_WHOLE:
                return _word_hits(rows)
            statistics = await self._statistics.counted(*self._counting(where))
        lookups = statistics.lookups(query_terms)
        values = {**where.values, **_looking(lookups, statistics, where.pins)}
        values |= {"limit": limit, "with_terms": with_terms}
        rows = await self._rows(_by_lookups, where.shape, values)
        return replace(_word_hits(rows), cut=lookups.cut, texts=statistics.texts)

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

    def _kept_statistics(self, where: Where) -> WordStatistics | None:
        """Statistics of a large scope that was counted before."""
        if not where.shape.of_memories:
            return None
        return self._statistics.get(*self._counting(where))

    def _counting(self, where: Where) -> tuple[Hashable, Count]:
        """The key of the statistics of a scope, and the function that counts them."""
        scope = (where.project_id, tuple(sorted(where.pins.items())))
        return scope, partial(self._count_words, where.of_pins)

    async def _count_words(self, where: Where) -> WordStatistics:
        """Count the words of the newest texts, and all texts."""
        [row] = await self._rows(_word_counts, where.shape, where.values)
        texts = row["counted"]
        if texts == MOST_COUNTED:
            [(texts,)] = await self._rows(_text_count, where.shape, where.values)
        scale = texts / max(row["counted"], 1)
        holding = {
            term: min(count * scale, texts)
            for term, count in zip(row["terms"] or (), row["counts"] or (), strict=True)
        }
        return WordStatistics(texts, max(row["length"] or 1, 1), holding, row["counted"])

    async def count(self, where: Where, *, embedder: str, stop: int) -> int:
        """Count the matching passages with a vector of this embedder, up to `stop`."""
        values = {**where.values, "embedder": embedder, "stop": stop}
        [(count,)] = await self._rows(_counted, where.shape, values)
        return int(count)

    async def vectors(self, where: Where, *, embedder: str) -> list[tuple[PassageKey, bytes]]:
        """Return the packed vectors of all matching passages."""
        values = {**where.values, "embedder": embedder}
        rows = await self._rows(_vectors, where.shape, values)
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
        return [_as_candidate(row) for row in await self._rows(_candidates, where.shape, values)]

    async def read(
        self, where: Where, keys: Sequence[PassageKey]
    ) -> dict[PassageKey, Memory | Turn]:
        """Return the project's passages with these keys; deleted ones are left out.

        Memories are read as they were at the time of the search.
        """
        project_id = where.project_id
        passages: dict[PassageKey, Memory | Turn] = {}
        if facts := [key.id for key in keys if not key.is_turn]:
            past = where.shape
            query = _FACTS if where.is_current else _past_facts(past.snapshot, past.pins)
            values = {"in_project": project_id, "facts": facts}
            for row in await self._direct.rows(query, {**where.values, **values}):
                passages[PassageKey(row.id)] = as_memory(row)
        if any(key.is_turn for key in keys):
            values = {"in_project": project_id, **listed("turns", keys)}
            for row in await self._direct.rows(_TURNS, values):
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


_TURNS = select(turn_passages).where(
    turn_passages.c.project_id == IN_PROJECT, among(turn_passages, "turns")
)
# Parameters of the function word_keys.
WORD_KEYS_OF = ("project_id", "lane_id", *ENTITY_IDS, "terms")
_EMBEDDER = bindparam("embedder", type_=Text)
_WITH_TERMS = bindparam("with_terms", type_=Boolean)


def _by_words(shape: Shape) -> ClauseElement:
    """Select the ranked passages as candidates; all passages, if they are at most `limit`.

    Of memories alone, the newest MOST_WHOLE are compared, and one more tells that there are others.
    At least one row: without passages, it has only `texts`, the number of passages read.
    """
    scope = _scope(shape)
    ranked = ranking(scope).cte("ranked")
    texts = select(func.count()).select_from(scope).scalar_subquery()
    few = texts <= bindparam("limit", type_=Integer)
    is_ranked = and_(ranked.c.id == scope.c.id, ranked.c.ordinal == scope.c.ordinal)
    first = (
        select(scope, ranked.c.share)
        .outerjoin(ranked, is_ranked)
        .where(or_(ranked.c.share.is_not(None), few))
        .cte("first")
    )
    its_terms = case((_WITH_TERMS, first.c.terms)).label("terms")
    facts = _placed_facts(first, first.c.share, its_terms)
    turns = _placed_turns(first, first.c.share, its_terms)
    if not shape.turns:
        placed: Select[Any] | CompoundSelect[Any] = facts
    elif not shape.facts:
        placed = turns
    else:
        is_fact = first.c.ordinal == FACT
        placed = union_all(facts.where(is_fact), turns.where(~is_fact))
    return _best_first(placed, texts)


def _best_first(placed: Select[Any] | CompoundSelect[Any], texts: ScalarSelect[int]) -> Select[Any]:
    """Select candidates, best first, each with `texts`; without candidates, one row of NULLs."""
    rows, size = placed.subquery("rows"), select(texts.label("texts")).subquery("size")
    query = select(size.c.texts, *rows.c).select_from(size.outerjoin(rows, true()))
    return query.order_by(nulls_last(rows.c.share.desc()), rows.c.id, rows.c.ordinal)


def _by_lookups(shape: Shape) -> ClauseElement:
    """Select the ranked ones of the memories that the lookups of a query read, as candidates."""
    lookup = statement("lookups").columns(most=Integer, wanted=ARRAY(BigInteger)).subquery("lookup")
    rows = memories.alias("rows")
    keys = func.word_keys(*(rows.c[name] for name in WORD_KEYS_OF), type_=ARRAY(BigInteger))
    # With this condition alone, no plan can read the memories of the scope by another index.
    read = (
        select(rows)
        .where(keys.contains(lookup.c.wanted), rows.c.state == literal_column("'ACTIVE'"))
        .limit(lookup.c.most)
        .lateral("read")
    )
    scope = (
        select(*_fact_columns(read), read.c.terms)
        .select_from(lookup.join(read, true()))
        .where(shape.on_current(read))
        .ext(distinct_on(read.c.id))
        .cte("scope")
    )
    ranked = ranking_by_forms(scope).cte("ranked")
    first = select(scope, ranked.c.share).join(ranked, ranked.c.id == scope.c.id).cte("first")
    its_terms = case((_WITH_TERMS, first.c.terms)).label("terms")
    texts = select(func.count()).select_from(scope).scalar_subquery()
    return _best_first(_placed_facts(first, first.c.share, its_terms), texts)


def _looking(
    lookups: QueryLookups, statistics: WordStatistics, pins: Mapping[str, str]
) -> dict[str, Any]:
    """Parameters of `_by_lookups`."""
    owners = [f"{name}/{value}" for name, value in pins.items()]
    keys = [
        (number, lookup.most, key)
        for number, lookup in enumerate(lookups.lookups)
        for key in (*owners, *(f"term/{term}" for term in lookup.terms))
    ]
    return {
        "lookups": [number for number, _, _ in keys],
        "mosts": [most for _, most, _ in keys],
        "keys": [key for _, _, key in keys],
        "forms": [form.term for form in lookups.forms],
        "asked": [form.position for form in lookups.forms],
        "weights": [form.weight for form in lookups.forms],
        "holding": list(lookups.holding),
        "texts": float(statistics.texts),
        "length": float(statistics.length),
    }


def _word_hits(rows: Sequence[Any]) -> WordHits:
    """The hits of `_by_words` or `_by_lookups`."""
    some = [row for row in rows if row["id"] is not None]
    candidates = [_as_candidate(row) for row in some]
    shares = {
        candidate.key: min(1.0, row["share"])
        for candidate, row in zip(candidates, some, strict=True)
        if row["share"] is not None
    }
    by_key = {candidate.key: candidate for candidate in candidates}
    return WordHits(shares, by_key, texts=rows[0]["texts"])


def _word_counts(shape: Shape) -> ClauseElement:
    """Select the words of the newest memories, the most frequent ones first, and their counts."""
    newest = (
        select(memories.c.terms)
        .where(shape.on_facts)
        .order_by(memories.c.created_at.desc())
        .limit(literal_column(str(MOST_COUNTED)))
        .cte("newest")
    )
    each = select(func.unnest(newest.c.terms, type_=Text()).label("term")).subquery("each")
    count = func.count().label("count")
    words = (
        select(each.c.term, count)
        .group_by(each.c.term)
        .order_by(count.desc(), each.c.term)
        .limit(literal_column(str(MOST_WORDS)))
        .subquery("words")
    )
    length = func.avg(func.cardinality(newest.c.terms), type_=Float())
    return select(
        select(func.count()).select_from(newest).scalar_subquery().label("counted"),
        select(cast(length, Float)).select_from(newest).scalar_subquery().label("length"),
        func.array_agg(words.c.term).label("terms"),
        func.array_agg(words.c["count"]).label("counts"),
    )


def _text_count(shape: Shape) -> ClauseElement:
    """Count the memories, up to MOST_TEXTS."""
    some = select(memories.c.id).where(shape.on_facts).limit(literal_column(str(MOST_TEXTS)))
    return select(func.count()).select_from(some.subquery("some"))


def _scope(shape: Shape) -> CTE:
    """CTE of all passages of the query, facts and turns together."""
    parts: list[Select[Any]] = []
    if shape.facts:
        facts = shape.memories
        rows = select(*_fact_columns(facts), facts.c.terms).where(shape.on_facts)
        if shape.of_memories:
            newest = rows.order_by(memories.c.created_at.desc())
            rows = select(newest.limit(literal_column(str(MOST_WHOLE + 1))).subquery("facts"))
        parts.append(rows)
    if shape.turns:
        parts.append(select(*_turn_columns(), turn_passages.c.terms).where(shape.on_turns))
    return union_all(*parts).cte("scope")


def _fact_columns(facts: FromClause) -> list[ColumnElement[Any]]:
    """Columns of memories as passages; the same as those of turns."""
    by_user = case(
        (facts.c.attributed_to == Role.ASSISTANT, facts.c.agent_id), else_=facts.c.user_id
    )
    return [
        facts.c.id,
        cast(literal(FACT), Integer).label("ordinal"),
        facts.c.lane_id,
        facts.c.event_id,
        facts.c.message_ordinal,
        cast(null(), BigInteger).label("seq"),
        by_user.label("speaker"),
        facts.c.said_at,
        facts.c.subject.is_not(None).label("has_subject"),
        func.cardinality(facts.c.terms).label("length"),
    ]


def _turn_columns() -> list[ColumnElement[Any]]:
    """Columns of turns as passages; the same as those of memories."""
    turns = turn_passages
    by_role = case((turns.c.role == Role.ASSISTANT, turns.c.agent_id), else_=turns.c.user_id)
    return [
        turns.c.event_id.label("id"),
        turns.c.ordinal,
        turns.c.lane_id,
        turns.c.event_id,
        turns.c.ordinal.label("message_ordinal"),
        turns.c.seq,
        func.coalesce(turns.c.name, by_role).label("speaker"),
        turns.c.said_at,
        literal(False).label("has_subject"),
        func.cardinality(turns.c.terms).label("length"),
    ]


def _counted(shape: Shape) -> ClauseElement:
    some = union_all(*(part.limit(bindparam("stop", type_=Integer)) for part in _embedded(shape)))
    return select(func.least(func.count(), bindparam("stop", type_=Integer))).select_from(
        some.subquery()
    )


def _vectors(shape: Shape) -> ClauseElement:
    return union_all(*_embedded(shape))


def _embedded(shape: Shape) -> list[Select[Any]]:
    """Select (id, ordinal, embedding) of matching passages with a vector of the embedder."""
    parts: list[Select[Any]] = []
    if shape.facts:
        fact = cast(literal(FACT), Integer).label("ordinal")
        table = shape.memories
        facts = select(table.c.id, fact, table.c.embedding)
        parts.append(facts.where(shape.on_facts, table.c.embedder == _EMBEDDER))
    if shape.turns:
        turns = select(
            turn_passages.c.event_id.label("id"), turn_passages.c.ordinal, turn_vectors.c.embedding
        )
        its_vector = and_(
            turn_vectors.c.event_id == turn_passages.c.event_id,
            turn_vectors.c.ordinal == turn_passages.c.ordinal,
            turn_vectors.c.embedder == _EMBEDDER,
        )
        parts.append(turns.join(turn_vectors, its_vector).where(shape.on_turns))
    return parts


def _matching(shape: Shape) -> ClauseElement:
    parts: list[Select[Any]] = []
    if shape.facts:
        fact = cast(literal(FACT), Integer).label("ordinal")
        facts = shape.memories
        mine = facts.c.id == any_(uuids("facts"))
        parts.append(select(facts.c.id, fact).where(mine, shape.on_facts))
    if shape.turns:
        turn = select(turn_passages.c.event_id.label("id"), turn_passages.c.ordinal)
        parts.append(turn.where(among(turn_passages, "turns"), shape.on_turns))
    return union_all(*parts)


def _candidates(shape: Shape) -> ClauseElement:
    """Select the passages with the given keys as candidates."""
    parts = []
    if shape.facts:
        facts = shape.memories
        wanted = and_(facts.c.id == any_(uuids("lacking")), facts.c.embedder == _EMBEDDER)
        chosen = (
            select(
                *_fact_columns(facts),
                case((wanted, facts.c.embedding)).label("embedding"),
                case((_WITH_TERMS, facts.c.terms)).label("terms"),
            )
            .where(facts.c.id == any_(uuids("facts")), shape.on_facts)
            .subquery("facts")
        )
        parts.append(_placed_facts(chosen, chosen.c.embedding, chosen.c.terms))
    if shape.turns:
        its_vector = and_(
            turn_vectors.c.event_id == turn_passages.c.event_id,
            turn_vectors.c.ordinal == turn_passages.c.ordinal,
            turn_vectors.c.embedder == _EMBEDDER,
            among(turn_vectors, "lacking"),
        )
        chosen = (
            select(
                *_turn_columns(),
                turn_vectors.c.embedding,
                case((_WITH_TERMS, turn_passages.c.terms)).label("terms"),
            )
            .select_from(turn_passages)
            .outerjoin(turn_vectors, its_vector)
            .where(among(turn_passages, "turns"), shape.on_turns)
            .subquery("turns")
        )
        parts.append(_placed_turns(chosen, chosen.c.embedding, chosen.c.terms))
    return union_all(*parts)


def _placed_facts(facts: FromClause, *more: ColumnElement[Any]) -> Select[Any]:
    """Select memories as candidates, each with its turn and the turn before that."""
    turn = (
        select(messages)
        .select_from(events)
        .join(messages, messages.c.seq == events.c.seq)
        .where(
            events.c.id == facts.c.event_id,
            messages.c.lane_id == facts.c.lane_id,
            messages.c.ordinal == facts.c.message_ordinal,
        )
        .limit(1)  # so the planner looks up one message for each fact
        .lateral("turn")
    )
    before = just_before(turn)
    speaker = func.coalesce(turn.c.name, facts.c.speaker)
    return (
        select(*_candidate_columns(facts, turn, before, speaker, turn.c.content), *more)
        .select_from(facts)
        .outerjoin(turn, true())
        .outerjoin(before, true())
    )


def _placed_turns(turns: FromClause, *more: ColumnElement[Any]) -> Select[Any]:
    """Select turns as candidates, each with the turn before it."""
    before = just_before(turns)
    its_message = and_(
        messages.c.lane_id == turns.c.lane_id,
        messages.c.seq == turns.c.seq,
        messages.c.ordinal == turns.c.ordinal,
    )
    content = messages.c.content
    return (
        select(*_candidate_columns(turns, turns, before, turns.c.speaker, content), *more)
        .select_from(turns)
        .join(messages, its_message)
        .outerjoin(before, true())
        .where(~forgotten(turns))
    )


def _candidate_columns(
    passages: FromClause,
    turn: FromClause,
    before: FromClause,
    speaker: ColumnElement[Any],
    content: ColumnElement[Any],
) -> list[ColumnElement[Any]]:
    """Columns of a candidate; see `_as_candidate`."""
    last = func.right(func.rtrim(content), 1)
    return [
        passages.c.id,
        passages.c.ordinal,
        passages.c.lane_id,
        speaker.label("speaker"),
        passages.c.said_at.label("at"),
        turn.c.seq.label("turn_seq"),
        turn.c.ordinal.label("turn_ordinal"),
        before.c.seq.label("before_seq"),
        before.c.ordinal.label("before_ordinal"),
        passages.c.has_subject,
        passages.c.length,
        func.coalesce(or_(last == "?", last == "？"), literal(False)).label("is_question"),
    ]


def _as_candidate(row: Mapping[str, Any]) -> Candidate:
    """Build a candidate. Columns are read by key, in C, because there may be hundreds of rows."""
    turn, before = row["turn_seq"], row["before_seq"]
    return Candidate(
        PassageKey(row["id"], row["ordinal"]),
        row["lane_id"],
        row["speaker"],
        row["at"],
        None if turn is None else (turn, row["turn_ordinal"]),
        None if before is None else (before, row["before_ordinal"]),
        row.get("embedding"),
        row.get("terms") or (),
        row["has_subject"],
        row["length"] or 0,
        row["is_question"],
    )
