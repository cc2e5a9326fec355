"""The graph: prompt that asks for entities and relations, and the parser of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, model_validator

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.graph.values import (
    EdgeEnding,
    Entity,
    GraphChanges,
    Relation,
    RelationRequest,
    StoredRelation,
    name_key,
)
from pipeline.models import prompts
from pipeline.models.json_answers import SHOWN_ERRORS, json_object, valid_rows
from pipeline.models.questions import integer_ids
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.text_field import Text
from pipeline.text.names import is_self
from pipeline.text.relations.names import snake

UNTYPED = "concept"


def relate_prompt(request: RelationRequest) -> Prompt[GraphChanges]:
    """The prompt for the relations in the facts, and the current relations that they end."""
    text = prompts.render(
        "relate",
        entity_types=prompts.entity_types(request.types),
        relation_names=prompts.relation_names(request),
        relations=integer_ids.relations(request.current),
        facts=integer_ids.numbered(request.texts),
    )
    count = len(request.facts)
    parse = partial(parse_relations, fact_count=count, current=request.current)
    return Prompt("relate", text, RelationsAnswer, parse, partial(parse, mend=True))


def parse_relations(
    text: str, fact_count: int, current: Sequence[StoredRelation], *, mend: bool = False
) -> GraphChanges:
    """The new relations without duplicates, and the current relations that ended.

    A relation is invalid if its ends are not among the entities, or a number was not offered.
    `mend` is for the repaired answer, after which there is no further call: its valid rows are
    kept, and `left_out` has the fault of each other row.

    Errors: MalformedAnswer; with `mend` only if no relation and no ending is valid.
    """
    answer = json_object(text)
    faults: list[str] = []

    def check_relation(place: str, row: RelationRow) -> None:
        integer_ids.check(f"{place}.fact", row.fact, fact_count, "facts")
        _check_listed(f"{place}.source", row.source, kinds)
        _check_listed(f"{place}.target", row.target, kinds)

    def check_ending(place: str, row: EndedRow) -> None:
        integer_ids.check(f"{place}.relation", row.relation, len(current), "current relations")
        integer_ids.check(f"{place}.fact", row.fact, fact_count, "facts")

    entities = valid_rows({"entities": []} | answer, "entities", EntityRow, faults)
    kinds = {name_key(row.name): row.type for row in entities}
    related = valid_rows(answer, "relations", RelationRow, faults, check_relation)
    ended = valid_rows(answer, "ended", EndedRow, faults, check_ending)
    if faults and not (mend and (related or ended)):
        raise MalformedAnswer("; ".join(faults[:SHOWN_ERRORS]))
    relations = dict.fromkeys(_relation(row, kinds) for row in related)
    endings = dict.fromkeys(
        EdgeEnding(integer_ids.item(current, row.relation).relation_id, row.fact - 1)
        for row in ended
    )
    return GraphChanges(tuple(relations), endings=tuple(endings), left_out=tuple(faults))


def _check_listed(where: str, name: str, kinds: Mapping[str, str]) -> None:
    """Check that an end of a relation is among the entities. Errors: MalformedAnswer."""
    if name_key(name) not in kinds and not is_self(name):
        raise MalformedAnswer(f"{where} is not among the entities: list it there, or leave it out")


def _snake(text: str) -> str:
    """The text in snake_case. Errors: ValueError if it has no letter or digit."""
    name = snake(text)
    if not name:
        raise ValueError("a name needs at least one letter")
    return name


def _type(value: object) -> object:
    """The type in snake_case; UNTYPED for null or a text without a letter."""
    if value is None:
        return UNTYPED
    return (snake(value) or UNTYPED) if isinstance(value, str) else value


Snake = Annotated[str, AfterValidator(_snake)]


class EntityRow(BaseModel):
    """One entity of the answer. Without a type it is a concept: its relations count."""

    name: Text
    type: Annotated[str, BeforeValidator(_type)] = UNTYPED


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

    @model_validator(mode="before")
    @classmethod
    def _of_number(cls, value: object) -> object:
        """The row; a number alone is a relation that the first fact ends."""
        return {"relation": value, "fact": 1} if isinstance(value, int) else value


class RelationsAnswer(BaseModel):
    """The answer to the question "relate": entities first, then relations between them."""

    entities: list[EntityRow] = []
    relations: list[RelationRow]
    ended: list[EndedRow]


def _relation(row: RelationRow, kinds: dict[str, str]) -> Relation:
    names = (row.source, row.target)
    source, destination = (Entity(name, kinds.get(name_key(name), "person")) for name in names)
    return Relation(source, row.relation, destination, row.fact - 1)
