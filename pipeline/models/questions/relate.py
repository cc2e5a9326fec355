"""The graph: prompt that asks for entities and relations, and the parser of its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, BaseModel

from pipeline.domain.graph import Entity, GraphChanges, Relation, StoredRelation
from pipeline.models import prompts
from pipeline.models.json_answers import (
    check_number,
    parsed,
)
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.rows import Text


def relate_prompt(facts: Sequence[str], current: Sequence[StoredRelation]) -> Prompt[GraphChanges]:
    """The prompt for the relations in the facts, and the current relations that they end."""
    text = prompts.render("relate", relations=prompts.edges(current), facts=prompts.numbered(facts))
    parse = partial(parse_relations, fact_count=len(facts), current=current)
    return Prompt("relate", text, RelationsAnswer, parse)


def parse_relations(text: str, fact_count: int, current: Sequence[StoredRelation]) -> GraphChanges:
    """The new relations without duplicates, and the ids of the current relations that ended.

    Errors: MalformedAnswer.
    """
    answer = parsed(text, RelationsAnswer)
    for at, row in enumerate(answer.relations):
        check_number(f"relations.{at}.fact", row.fact, fact_count, "facts")
    for at, number in enumerate(answer.ended):
        check_number(f"ended.{at}", number, len(current), "current relations")
    relations = dict.fromkeys(_relation(row) for row in answer.relations)
    ended = dict.fromkeys(current[number - 1].relation_id for number in answer.ended)
    return GraphChanges(tuple(relations), tuple(ended))


def _snake(text: str) -> str:
    """The text in snake_case. Errors: ValueError if it has no letter or digit."""
    name = re.sub(r"\W+", "_", text.casefold()).strip("_")
    if not name:
        raise ValueError("a name needs at least one letter")
    return name


Snake = Annotated[str, AfterValidator(_snake)]


class RelationRow(BaseModel):
    """One relation of the answer. `fact` is a number from the prompt, starting at 1."""

    fact: int
    source: Text
    source_kind: Snake
    relation: Snake
    target: Text
    target_kind: Snake


class RelationsAnswer(BaseModel):
    """The answer to the question "relate". `ended`: numbers of current relations."""

    relations: list[RelationRow]
    ended: list[int]


def _relation(row: RelationRow) -> Relation:
    return Relation(
        source=Entity(row.source, row.source_kind),
        relation=row.relation,
        destination=Entity(row.target, row.target_kind),
        fact=row.fact - 1,
    )
