"""Passages: what search reads. Facts are memories, turns are messages as they were said.

Words are compared by BM25 over the scope of the question: how rare a term is and how long a text is
are counted where the question looks, so a tenant's rare word is rare, whatever others talk about,
and the cost grows with that scope alone.
Source: tests/bench/search; ts_rank_cd of PostgreSQL knows no rarity and finds far less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    Row,
    Select,
    and_,
    any_,
    case,
    cast,
    exists,
    func,
    literal,
    select,
    true,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain import Role
from pipeline.filters import Filter
from pipeline.ledger.bm25 import ranking
from pipeline.ledger.changes import Memory
from pipeline.ledger.filtering import matches, unexpired
from pipeline.ledger.graph import names_any
from pipeline.ledger.memory_rows import as_memory
from pipeline.ledger.schema import (
    entities,
    events,
    memories,
    messages,
    relations,
    turn_vectors,
)
from pipeline.ledger.turns import (
    PassageKey,
    Turn,
    among,
    as_turn,
    beside,
    forgotten,
    just_before,
    said,
    uuids,
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate as ranking sees it: who said it when, and after which turn.

    `turn` and `before` are (seq, ordinal) in the lane. `embedding`, packed, only where it was asked
    for.
    """

    key: PassageKey
    lane_id: UUID
    speaker: str | None
    at: datetime
    turn: tuple[int, int] | None
    before: tuple[int, int] | None
    embedding: bytes | None
    related: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions on facts and on turns; None where these are not asked for."""

    facts: ColumnElement[bool] | None
    turns: ColumnElement[bool] | None

    @classmethod
    def of(
        cls, project_id: UUID, tree: Filter, *, facts: bool, turns: bool, expired: bool
    ) -> Where:
        def matching(table: FromClause) -> ColumnElement[bool]:
            found = matches(project_id, tree, table)
            return found if expired else and_(found, unexpired(table))

        return cls(
            and_(memories.c.state == "ACTIVE", matching(memories)) if facts else None,
            matching(said) if turns else None,
        )


class Passages:
    def __init__(self, engine: AsyncEngine) -> None:
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def by_words(
        self, where: Where, asked: Sequence[str], *, limit: int
    ) -> dict[PassageKey, float]:
        """Passages that hold any of the terms, best first, with how much of the question they hold.

        0..1: the BM25 score as a share of what a text of average length gets that holds each term
        once. Terms that nothing in the scope holds do not count.
        """
        if not asked:
            return {}
        rows = await self._rows(ranking(_scope(where), asked, limit=limit))
        return {PassageKey(row.id, row.ordinal): min(1.0, row.share) for row in rows}

    async def placed(
        self,
        where: Where,
        keys: Sequence[PassageKey],
        *,
        embedded: Sequence[PassageKey],
        embedder: str,
        related_to: str | None = None,
    ) -> list[Placed]:
        """Those of the keys that exist and match; those in `embedded` with their vectors, where
        this embedder made them. `related_to`: also whether a fact came with a relation that has an
        end named in this text.
        """
        parts = []
        if where.facts is not None and (ids := [key.id for key in keys if not key.is_turn]):
            lacking = [key.id for key in embedded if not key.is_turn]
            parts.append(_placed_facts(where.facts, ids, lacking, embedder, related_to))
        if where.turns is not None and (turns := [key for key in keys if key.is_turn]):
            lacking_turns = [key for key in embedded if key.is_turn]
            parts.append(_placed_turns(where.turns, turns, lacking_turns, embedder))
        if not parts:
            return []
        rows = await self._rows(union_all(*parts))
        return [_placed(row) for row in rows]

    async def read(self, keys: Sequence[PassageKey]) -> dict[PassageKey, Memory | Turn]:
        """The passages themselves; those of the keys that have gone meanwhile are left out."""
        found: dict[PassageKey, Memory | Turn] = {}
        if ids := [key.id for key in keys if not key.is_turn]:
            kept = and_(memories.c.id == any_(uuids(ids)), memories.c.state == "ACTIVE")
            for row in await self._rows(select(*_READ).where(kept)):
                found[PassageKey(row.id)] = as_memory(row)
        if turns := [key for key in keys if key.is_turn]:
            for row in await self._rows(select(said).where(among(said, turns))):
                found[PassageKey(row.event_id, row.ordinal)] = as_turn(row)
        return found

    async def around(
        self, keys: Sequence[PassageKey], *, turns: int
    ) -> dict[PassageKey, list[Turn]]:
        """So many turns before and after each, oldest first, in its own lane."""
        if not turns or not keys:
            return {}
        found: dict[PassageKey, list[Turn]] = defaultdict(list)
        for row in await self._rows(beside(keys, turns)):
            found[PassageKey(row.of_id, row.of_ordinal)].append(as_turn(row))
        return found

    async def _rows(self, query: Any) -> Sequence[Row[Any]]:
        async with self._single.connect() as connection:
            rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
            return rows


# A vector is a kilobyte and more: it is read only where it is needed.
_READ = [column for column in memories.c if column.name not in ("embedding", "terms")]


def _scope(where: Where) -> CTE:
    """Every passage the question looks through, facts and turns as one body of texts."""
    parts: list[Select[Any]] = []
    if where.facts is not None:
        fact = cast(literal(PassageKey.FACT), Integer).label("ordinal")
        parts.append(select(memories.c.id, fact, memories.c.terms).where(where.facts))
    if where.turns is not None:
        turn = (said.c.event_id.label("id"), said.c.ordinal, said.c.terms)
        parts.append(select(*turn).where(where.turns))
    return union_all(*parts).cte("scope")


def _placed_facts(
    where: ColumnElement[bool],
    ids: Sequence[UUID],
    lacking: Sequence[UUID],
    embedder: str,
    related_to: str | None,
) -> Select[Any]:
    source = and_(
        messages.c.lane_id == memories.c.lane_id,
        messages.c.seq == events.c.seq,
        messages.c.ordinal == memories.c.message_ordinal,
    )
    before = just_before(messages)
    by_user = case(
        (memories.c.attributed_to == Role.ASSISTANT, memories.c.agent_id), else_=memories.c.user_id
    )
    wanted = and_(memories.c.id == any_(uuids(lacking)), memories.c.embedder == embedder)
    embedding = case((wanted, memories.c.embedding))
    return (
        select(
            memories.c.id,
            cast(literal(PassageKey.FACT), Integer).label("ordinal"),
            memories.c.lane_id,
            func.coalesce(messages.c.name, by_user).label("speaker"),
            memories.c.valid_from.label("at"),
            messages.c.seq.label("turn_seq"),
            messages.c.ordinal.label("turn_ordinal"),
            before.c.seq.label("before_seq"),
            before.c.ordinal.label("before_ordinal"),
            embedding.label("embedding"),
            (literal(False) if related_to is None else _related(related_to)).label("related"),
        )
        .select_from(memories)
        .outerjoin(events, events.c.id == memories.c.event_id)
        .outerjoin(messages, source)
        .outerjoin(before, true())
        .where(memories.c.id == any_(uuids(ids)), where)
    )


def _related(text: str) -> ColumnElement[bool]:
    """The fact's event stated a current relation with an end named in the text."""
    source, destination = entities.alias("source"), entities.alias("destination")
    return exists().where(
        relations.c.event_id == memories.c.event_id,
        relations.c.expired_at.is_(None),
        source.c.id == relations.c.source_id,
        destination.c.id == relations.c.destination_id,
        names_any(text, source, destination),
    )


def _placed_turns(
    where: ColumnElement[bool],
    keys: Sequence[PassageKey],
    lacking: Sequence[PassageKey],
    embedder: str,
) -> Select[Any]:
    before = just_before(said)
    its_vector = and_(
        turn_vectors.c.event_id == said.c.event_id,
        turn_vectors.c.ordinal == said.c.ordinal,
        turn_vectors.c.embedder == embedder,
        among(turn_vectors, lacking),
    )
    by_role = case((said.c.role == Role.ASSISTANT, said.c.agent_id), else_=said.c.user_id)
    return (
        select(
            said.c.event_id.label("id"),
            said.c.ordinal,
            said.c.lane_id,
            func.coalesce(said.c.name, by_role).label("speaker"),
            said.c.said_at.label("at"),
            said.c.seq.label("turn_seq"),
            said.c.ordinal.label("turn_ordinal"),
            before.c.seq.label("before_seq"),
            before.c.ordinal.label("before_ordinal"),
            turn_vectors.c.embedding,
            literal(False).label("related"),
        )
        .select_from(said)
        .outerjoin(before, true())
        .outerjoin(turn_vectors, its_vector)
        .where(among(said, keys), where, ~forgotten(said))
    )


def _placed(row: Row[Any]) -> Placed:
    return Placed(
        key=PassageKey(row.id, row.ordinal),
        lane_id=row.lane_id,
        speaker=row.speaker,
        at=row.at,
        turn=None if row.turn_seq is None else (row.turn_seq, row.turn_ordinal),
        before=None if row.before_seq is None else (row.before_seq, row.before_ordinal),
        embedding=row.embedding,
        related=row.related,
    )
