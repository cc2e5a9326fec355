"""The MemoryModel port on top of any LLM: renders prompts and parses answers.

Each question has three parts: its prompt, its answer model, and `parse_…`, which turns the model's
text into values. A malformed answer is sent back once with the error; if the second answer is
malformed too, the call fails with MalformedAnswer.

Errors never quote what a user or a model wrote; they name positions and numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from pipeline.domain.errors import MalformedAnswer, paid
from pipeline.domain.events import Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph import GraphChanges, StoredRelation
from pipeline.domain.messages import Message, Role
from pipeline.domain.usage import Answer
from pipeline.models import prompts
from pipeline.models.json_answers import (
    answer_schema,
    filled,
    nullable,
)
from pipeline.models.questions.decide import DecisionsAnswer, parse_decisions, settled
from pipeline.models.questions.extract import FactsAnswer, parse_facts
from pipeline.models.questions.relate import RelationsAnswer, parse_relations
from pipeline.ports import LLM, ChatTurn, Completion, ExtractionRequest

T = TypeVar("T")

# Maximum length of a malformed answer in the repair prompt.
REPAIR_CHARS = 4_000


class PromptedModel:
    """The MemoryModel port over an LLM: one call for each question, two if the answer is malformed.

    No call is made if there is nothing to ask: no messages, no facts, or nothing to compare with.
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
        """Ask the LLM, parse its answer, and ask for a repair once if the answer is malformed.

        `shape`: pydantic model or JSON schema of the answer. `parse_repaired`: parser of the second
        answer, default `parse`. Usage covers both calls, in errors too.
        Errors: MalformedAnswer, and those of the LLM.
        """
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
        """One call of the LLM with the schema that belongs to `shape`."""
        turns = (ChatTurn("system", system), ChatTurn("user", user))
        if isinstance(shape, Mapping):
            return await self._llm.complete(turns, schema_name="object", schema=shape)
        name = shape.__name__.removesuffix("Answer").lower()
        return await self._llm.complete(turns, schema_name=name, schema=answer_schema(shape))


def _is_shown(message: Message) -> bool:
    return message.role is not Role.SYSTEM and bool(message.content.strip())
