"""The graph: the model's answer as entities and relations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel

from pipeline.domain.graph import Entity, GraphChanges, Relation, StoredRelation
from pipeline.models.json_answers import (
    check_number,
    parsed,
)
from pipeline.models.questions.rows import Text


def parse_relations(text: str, fact_count: int, current: Sequence[StoredRelation]) -> GraphChanges:
    """The new edges, each once, and the ids of the current relations that ended."""
    answer = parsed(text, RelationsAnswer)
    for at, row in enumerate(answer.relations):
        check_number(f"relations.{at}.fact", row.fact, fact_count, "facts")
    for at, number in enumerate(answer.ended):
        check_number(f"ended.{at}", number, len(current), "current relations")
    relations = dict.fromkeys(_relation(row) for row in answer.relations)
    ended = dict.fromkeys(current[number - 1].relation_id for number in answer.ended)
    return GraphChanges(tuple(relations), tuple(ended))


def _snake(text: str) -> str:
    name = re.sub(r"\W+", "_", text.casefold()).strip("_")
    if not name:
        raise ValueError("a name needs at least one letter")
    return name


Snake = Annotated[str, AfterValidator(_snake)]


class RelationRow(BaseModel):
    fact: int
    source: Text
    source_kind: Snake
    relation: Snake
    target: Text
    target_kind: Snake


class RelationsAnswer(BaseModel):
    relations: list[RelationRow]
    ended: list[int]


def _relation(row: RelationRow) -> Relation:
    return Relation(
        source=Entity(row.source, row.source_kind),
        relation=row.relation,
        destination=Entity(row.target, row.target_kind),
        fact=row.fact - 1,
    )
