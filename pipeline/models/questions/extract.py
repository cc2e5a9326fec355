"""Extraction: prompt that asks for facts, and the parser of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from annotated_types import MinLen
from pydantic import BaseModel, BeforeValidator

from pipeline.domain.events import Instructions
from pipeline.domain.facts import Fact
from pipeline.domain.messages import Message, Role, SourcedMessage
from pipeline.models import prompts
from pipeline.models.categories import chosen
from pipeline.models.json_answers import (
    check_number,
    parsed,
)
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.rows import Text
from pipeline.ports import ExtractionRequest


def extract_prompt(request: ExtractionRequest) -> Prompt[tuple[Fact, ...]] | None:
    """The prompt for the facts of the messages; None if no message can hold one."""
    shown = [message for message in request.messages if _is_shown(message.message)]
    messages = [message for message in shown if prompts.is_numbered(message.message)]
    if not messages:
        return None
    text = prompts.render(
        "extract",
        wishes=prompts.wishes(request.instructions),
        categories=prompts.categories(request.instructions),
        context=prompts.earlier_turns(request.context),
        messages=prompts.transcript(shown),
    )
    parse = partial(parse_facts, messages=messages, instructions=request.instructions)
    return Prompt(text, FactsAnswer, parse)


def _is_shown(message: Message) -> bool:
    return message.role is not Role.SYSTEM and bool(message.content.strip())


def parse_facts(
    text: str, messages: Sequence[SourcedMessage], instructions: Instructions
) -> tuple[Fact, ...]:
    """The facts of the answer, ordered by event and message. None is a valid answer.

    A fact that several events state is returned once for each of them, because each event has its
    own receipt. Categories that were not offered are dropped.

    Errors: MalformedAnswer.
    """
    rows = parsed(text, FactsAnswer).facts
    for at, row in enumerate(rows):
        for number in row.messages:
            check_number(f"facts.{at}.messages", number, len(messages), "messages")
    facts = [
        Fact(row.text, sourced.source, sourced.message.role, chosen(row.categories, instructions))
        for row in rows
        for sourced in _first_of_each_event([messages[n - 1] for n in sorted(set(row.messages))])
    ]
    return tuple(sorted(facts, key=lambda fact: (fact.source.event, fact.source.message)))


def _first_of_each_event(stated: Sequence[SourcedMessage]) -> list[SourcedMessage]:
    """The first message of each event among `stated`."""
    return list({sourced.source.event: sourced for sourced in reversed(stated)}.values())


def _names(value: object) -> list[str]:
    """The strings of a list; anything else is dropped, so a bad category does not lose the fact."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


class FactRow(BaseModel):
    """One fact of the answer. `messages` are numbers from the prompt, starting at 1."""

    messages: Annotated[list[int], MinLen(1)]
    text: Text
    categories: Annotated[list[str], BeforeValidator(_names)] = []


class FactsAnswer(BaseModel):
    """The answer to the question "extract"."""

    facts: list[FactRow]
