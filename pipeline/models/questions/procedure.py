"""Procedural memory: prompt that asks for the summary of an agent's work, and its parser."""

from __future__ import annotations

from functools import partial

from pydantic import BaseModel

from pipeline.domain.facts import Fact, MemoryType
from pipeline.domain.messages import SourcedMessage
from pipeline.models import prompts
from pipeline.models.json_answers import parsed
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.text_field import Text
from pipeline.ports import ExtractionRequest


def procedure_prompt(request: ExtractionRequest) -> Prompt[tuple[Fact, ...]] | None:
    """The prompt for one summary of all messages; None if there is no message with text."""
    shown = [sourced for sourced in request.messages if prompts.is_shown(sourced.message)]
    if not shown:
        return None
    text = prompts.render(
        "procedure",
        wishes=prompts.wishes(request.instructions),
        log=prompts.turns(sourced.message for sourced in shown),
    )
    return Prompt("procedure", text, ProcedureAnswer, partial(parse_procedure, first=shown[0]))


def parse_procedure(text: str, first: SourcedMessage) -> tuple[Fact, ...]:
    """The summary as one fact of the first message. Errors: MalformedAnswer."""
    fact = Fact(
        parsed(text, ProcedureAnswer).summary,
        first.source,
        first.message.role,
        speaker=first.message.name,
        memory_type=MemoryType.PROCEDURAL,
    )
    return (fact,)


class ProcedureAnswer(BaseModel):
    """The answer to the question "procedure"."""

    summary: Text
