"""The graph: prompt that asks for entities and relations, and the parser of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.graph import (
    EdgeEnding,
    Entity,
    GraphChanges,
    Relation,
    RelationRequest,
    StoredRelation,
    name_key,
)
from pipeline.models import prompts
from pipeline.models.json_answers import (
    check_number,
    parsed,
)
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.rows import Text
from pipeline.text.names import is_self
from pipeline.text.relation_names import snake


def relate_prompt(request: RelationRequest) -> Prompt[GraphChanges]:
    """The prompt for the relations in the facts, and the current relations that they end."""
    text = prompts.render(
        "relate",
        entity_types=prompts.entity_types(request.types),
        relation_names=prompts.relation_names(request),
        relations=prompts.edges(request.current),
        facts=prompts.numbered(request.texts),
    )
    count = len(request.facts)
    parse = partial(parse_relations, fact_count=count, current=request.current)
    return Prompt("relate", text, RelationsAnswer, parse)


def parse_relations(text: str, fact_count: int, current: Sequence[StoredRelation]) -> GraphChanges:
    """The new relations without duplicates, and the current relations that ended.

    Errors: MalformedAnswer, also for a relation whose ends are not among the entities.
    """
    answer = parsed(text, RelationsAnswer)
    kinds = {name_key(row.name): row.type for row in answer.entities}
    for at, row in enumerate(answer.relations):
        check_number(f"relations.{at}.fact", row.fact, fact_count, "facts")
        for side in ("source", "target"):
            _check_listed(f"relations.{at}.{side}", getattr(row, side), kinds)
    for at, ending in enumerate(answer.ended):
        check_number(f"ended.{at}.relation", ending.relation, len(current), "current relations")
        check_number(f"ended.{at}.fact", ending.fact, fact_count, "facts")
    relations = dict.fromkeys(_relation(row, kinds) for row in answer.relations)
    endings = dict.fromkeys(
        EdgeEnding(current[ending.relation - 1].relation_id, ending.fact - 1)
        for ending in answer.ended
    )
    return GraphChanges(tuple(relations), endings=tuple(endings))


def _check_listed(where: str, name: str, kinds: dict[str, str]) -> None:
    """Check that an end of a relation is among the entities. Errors: MalformedAnswer."""
    if name_key(name) not in kinds and not is_self(name):
        raise MalformedAnswer(f"{where} is not among the entities: list it there, or leave it out")


def _snake(text: str) -> str:
    """The text in snake_case. Errors: ValueError if it has no letter or digit."""
    name = snake(text)
    if not name:
        raise ValueError("a name needs at least one letter")
    return name


def _numbers(value: object) -> object:
    """Rows of `ended`; a number alone is a relation that the first fact ends."""
    if not isinstance(value, list):
        return value
    return [{"relation": row, "fact": 1} if isinstance(row, int) else row for row in value]


Snake = Annotated[str, AfterValidator(_snake)]


class EntityRow(BaseModel):
    """One entity of the answer."""

    name: Text
    type: Snake


class RelationRow(BaseModel):
    """One relation of the answer. `fact` is a number from the prompt, starting at 1."""

    fact: int
    source: Text
    relation: Snake
    target: Text


class EndedRow(BaseModel):
    """A current relation that a fact ends, by their numbers."""

    relation: int
    fact: int


class RelationsAnswer(BaseModel):
    """The answer to the question "relate": entities first, then relations between them."""

    entities: list[EntityRow] = []
    relations: list[RelationRow]
    ended: Annotated[list[EndedRow], BeforeValidator(_numbers)]


def _relation(row: RelationRow, kinds: dict[str, str]) -> Relation:
    def entity(name: str) -> Entity:
        return Entity(name, kinds.get(name_key(name), "person"))

    return Relation(
        source=entity(row.source),
        relation=row.relation,
        destination=entity(row.target),
        fact=row.fact - 1,
    )
