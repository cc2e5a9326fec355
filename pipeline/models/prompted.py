"""The four questions of the pipeline, put to any LLM in our words, and the answers read back.

A question has three parts: its prompt, `parse_…` (the model's text -> values, or MalformedAnswer in
words the model can act on), and its answer model. A bad answer is shown to the model once more with
the error; after that it is a MalformedAnswer.

Nothing a user or a model wrote is quoted in an error: messages name places and numbers only.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from annotated_types import MinLen
from pydantic import AfterValidator, BaseModel, BeforeValidator

from pipeline.domain.errors import MalformedAnswer, paid
from pipeline.domain.events import Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.graph import Entity, GraphChanges, Relation, StoredRelation
from pipeline.domain.messages import Message, Role, SourcedMessage
from pipeline.domain.usage import Answer
from pipeline.models import prompts
from pipeline.models.categories import chosen
from pipeline.models.json_answers import (
    SHOWN_ERRORS,
    answer_schema,
    check_number,
    filled,
    nullable,
    parsed,
)
from pipeline.ports import LLM, ChatTurn, Completion, ExtractionRequest
from pipeline.text.marks import bounded

T = TypeVar("T")

# How much of a bad answer is shown again: enough to see the fault, whatever ran away.
REPAIR_CHARS = 4_000


def _clean(text: str) -> str:
    """Without what PostgreSQL refuses (NUL, half an emoji), and never empty."""
    cleaned = text.replace("\x00", "").encode(errors="ignore").decode().strip()
    if not cleaned:
        raise ValueError("must not be empty")
    return cleaned


Text = Annotated[str, AfterValidator(_clean)]


class PromptedModel:
    """A MemoryModel made of prompts and an LLM: one call a question, two if the first is unusable.

    No call is made where no question is left: nothing said, no facts, nothing to compare with.
    """

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self) -> str:
        return self._llm.name

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        shown = [m for m in request.messages if _is_shown(m.message)]
        messages = [m for m in shown if prompts.is_numbered(m.message)]
        if not messages:
            return Answer(())
        prompt = prompts.render(
            "extract",
            wishes=prompts.wishes(request.instructions),
            categories=prompts.categories(request.instructions),
            context=prompts.earlier_turns(request.context),
            messages=prompts.transcript(shown),
        )
        parse = partial(parse_facts, messages=messages, instructions=request.instructions)
        return await self._ask(prompt, FactsAnswer, parse)

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        one_turn = len({fact.source.event for fact in facts}) == 1
        if not facts or (one_turn and not neighbours):  # a turn does not contradict itself
            return Answer(settled(facts))
        prompt = prompts.render(
            "decide",
            wishes=prompts.wishes(instructions),
            memories=prompts.numbered(neighbour.text for neighbour in neighbours),
            facts=prompts.numbered(fact.text for fact in facts),
        )
        parse = partial(parse_decisions, facts=facts, neighbours=neighbours)
        return await self._ask(prompt, DecisionsAnswer, parse, partial(parse, mend=True))

    async def relate(
        self, facts: Sequence[str], current: Sequence[StoredRelation]
    ) -> Answer[GraphChanges]:
        if not facts:
            return Answer(GraphChanges())
        prompt = prompts.render(
            "relate", relations=prompts.edges(current), facts=prompts.numbered(facts)
        )
        parse = partial(parse_relations, fact_count=len(facts), current=current)
        return await self._ask(prompt, RelationsAnswer, parse)

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        shape = nullable(question.shape)
        prompt = prompts.render(
            "distil",
            wishes=prompts.wishes(Instructions(question.instructions)),
            form=prompts.form(shape),
            memories=prompts.numbered(memories),
        )
        return await self._ask(prompt, shape, partial(filled, shape=shape))

    async def close(self) -> None:
        await self._llm.close()

    async def _ask(
        self,
        prompt: str,
        shape: type[BaseModel] | Mapping[str, Any],
        parse: Callable[[str], T],
        parse_repaired: Callable[[str], T] | None = None,
    ) -> Answer[T]:
        system, user = prompt.split(prompts.DIVIDER, 1)
        first = await self._complete(system, user, shape)
        try:
            return Answer(parse(first.text), first.usage)
        except MalformedAnswer as error:
            shown = prompts.quoted(first.text[:REPAIR_CHARS])
            repair = prompts.render("repair", error=str(error), answer=shown)
        with paid(first.usage):
            second = await self._complete(system, f"{user}\n\n{repair}", shape)
            with paid(second.usage):
                value = (parse_repaired or parse)(second.text)
        return Answer(value, first.usage + second.usage)

    async def _complete(
        self, system: str, user: str, shape: type[BaseModel] | Mapping[str, Any]
    ) -> Completion:
        turns = (ChatTurn("system", system), ChatTurn("user", user))
        if isinstance(shape, Mapping):
            return await self._llm.complete(turns, schema_name="object", schema=shape)
        name = shape.__name__.removesuffix("Answer").lower()
        return await self._llm.complete(turns, schema_name=name, schema=answer_schema(shape))


# ── extract ──────────────────────────────────────────────────────────────────────────────────────


def parse_facts(
    text: str, messages: Sequence[SourcedMessage], instructions: Instructions
) -> tuple[Fact, ...]:
    """The facts of an extraction answer; none is a valid answer: nothing was worth keeping.

    A fact that several events state is a fact of each of them, for each has a receipt of its own.
    Categories that were not offered are left out.
    """
    rows = parsed(text, FactsAnswer).facts
    for at, row in enumerate(rows):
        for number in row.messages:
            check_number(f"facts.{at}.messages", number, len(messages), "messages")
    found = [
        Fact(row.text, said.source, said.message.role, chosen(row.categories, instructions))
        for row in rows
        for said in _first_of_each_event([messages[n - 1] for n in sorted(set(row.messages))])
    ]
    return tuple(sorted(found, key=lambda fact: (fact.source.event, fact.source.message)))


def _first_of_each_event(stated: Sequence[SourcedMessage]) -> list[SourcedMessage]:
    return list({said.source.event: said for said in reversed(stated)}.values())


def _names(value: object) -> list[str]:
    """A fact is not lost for a category that is none."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


class FactRow(BaseModel):
    messages: Annotated[list[int], MinLen(1)]
    text: Text
    categories: Annotated[list[str], BeforeValidator(_names)] = []


class FactsAnswer(BaseModel):
    facts: list[FactRow]


def _is_shown(message: Message) -> bool:
    return message.role is not Role.SYSTEM and bool(message.content.strip())


# ── decide ───────────────────────────────────────────────────────────────────────────────────────


def settled(facts: Sequence[Fact]) -> tuple[Decision, ...]:
    """The decisions where no memory is similar: every text is added, equal ones once."""
    seen: set[str] = set()
    decisions = []
    for at, fact in enumerate(facts):
        if same_text(fact.text) in seen:
            decisions.append(Decision(at, Outcome.NOOP, "An earlier fact says the same."))
        else:
            decisions.append(Decision(at, Outcome.ADD, "No memory is similar.", fact.text))
        seen.add(same_text(fact.text))
    return tuple(decisions)


def same_text(text: str) -> str:
    """What two texts have in common that differ only in case, spacing, or the final full stop."""
    folded = unicodedata.normalize("NFKC", bounded(text)).casefold()
    return " ".join(folded.split()).rstrip(".!。 ")


def parse_decisions(
    text: str, facts: Sequence[Fact], neighbours: Sequence[Neighbour], *, mend: bool = False
) -> tuple[Decision, ...]:
    """One decision a fact, in the facts' order.

    `mend` is for the repaired answer, when there is no further call: a decision that still does not
    fit the offered memories is weakened instead of all being lost, and its reason says so.

    - UPDATE of a memory that was not offered becomes ADD of its text;
    - DELETE of or NOOP on a memory that was not offered becomes NOOP without a target;
    - of several changes to one memory the last holds, the earlier become NOOP on it.
    """
    rows = _one_a_fact(parsed(text, DecisionsAnswer).decisions, len(facts))
    if mend:
        rows = _changed_once([_mended(row, len(neighbours)) for row in rows])
    _check_targets(rows, len(neighbours))
    return tuple(_decision(row, fact, neighbours) for row, fact in zip(rows, facts, strict=True))


class DecisionRow(BaseModel):
    fact: int
    action: Outcome
    target: int | None = None
    text: Text | None = None
    reason: Text

    @property
    def changes(self) -> int | None:
        """The number of the memory this decision alters, where it alters one."""
        return self.target if self.action in (Outcome.UPDATE, Outcome.DELETE) else None


class DecisionsAnswer(BaseModel):
    decisions: list[DecisionRow]


def _one_a_fact(rows: Sequence[DecisionRow], count: int) -> list[DecisionRow]:
    numbers = sorted(row.fact for row in rows)
    if numbers != list(range(1, count + 1)):
        given = ", ".join(map(str, numbers[: count + SHOWN_ERRORS])) or "none"
        raise MalformedAnswer(
            f"each of the facts 1 to {count} needs exactly one decision; decided were: {given}"
        )
    return sorted(rows, key=lambda row: row.fact)


def _check_targets(rows: Sequence[DecisionRow], offered: int) -> None:
    for row in rows:
        _check_target(row, offered)
    changes = Counter(row.changes for row in rows if row.changes is not None)
    for number, times in changes.items():
        if times > 1:
            raise MalformedAnswer(
                f"{times} decisions change memory {number}; merge them into the last of them"
                " and make the others NOOP"
            )


def _check_target(row: DecisionRow, offered: int) -> None:
    where = f"the decision on fact {row.fact}"
    if row.changes is None and row.action in (Outcome.UPDATE, Outcome.DELETE):
        raise MalformedAnswer(f"{where} is {row.action} without a target")
    if row.action is Outcome.UPDATE and row.text is None:
        raise MalformedAnswer(f"{where} is UPDATE without a text")
    if row.action is not Outcome.ADD and row.target is not None:
        check_number(f"{where}: target", row.target, offered, "memories")


def _mended(row: DecisionRow, offered: int) -> DecisionRow:
    named = row.target is not None and 1 <= row.target <= offered
    untargeted = row.target is None and row.action is Outcome.NOOP
    if named or untargeted or row.action is Outcome.ADD:
        return row
    action = Outcome.ADD if row.action is Outcome.UPDATE else Outcome.NOOP
    return _weakened(row.model_copy(update={"target": None}), action, "named no offered memory")


def _changed_once(rows: Sequence[DecisionRow]) -> list[DecisionRow]:
    last = {row.changes: row.fact for row in rows}
    return [
        row
        if row.changes is None or last[row.changes] == row.fact
        else _weakened(row, Outcome.NOOP, "is overtaken by a later change of the same memory")
        for row in rows
    ]


def _weakened(row: DecisionRow, action: Outcome, why: str) -> DecisionRow:
    reason = f"{row.reason} (Made {action}: the {row.action} {why}.)"
    return row.model_copy(update={"action": action, "reason": reason})


def _decision(row: DecisionRow, fact: Fact, neighbours: Sequence[Neighbour]) -> Decision:
    aimed = row.target is not None and row.action is not Outcome.ADD
    target = neighbours[row.target - 1].memory_id if aimed and row.target else None
    text = {Outcome.ADD: row.text or fact.text, Outcome.UPDATE: row.text}.get(row.action)
    return Decision(row.fact - 1, row.action, row.reason, text, target)


# ── relate ───────────────────────────────────────────────────────────────────────────────────────


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
