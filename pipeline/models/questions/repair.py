"""Calls of the language model: one for each prompt, and one more to repair a malformed answer.

Errors never quote what a user or a model wrote; they name positions and numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from pipeline.cpu_thread import beside_loop
from pipeline.domain.errors import MalformedAnswer, paid
from pipeline.domain.usage import Answer, Usage
from pipeline.models import prompts
from pipeline.models.json_answers import answer_schema
from pipeline.ports import LLM, ChatTurn, Completion

T = TypeVar("T")

# Maximum length of a malformed answer in the repair prompt.
REPAIR_CHARS = 4_000
# Length of an answer that is parsed on the event loop, in up to about 10 ms: some 20 facts.
INLINE_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class Prompt(Generic[T]):
    """A rendered prompt, with the form and the parser of its answer.

    `name`: its file in pipeline/models/prompts. `form`: pydantic model or JSON schema. `parse`:
    raises MalformedAnswer. `parse_repaired`: parser of the repaired answer, default `parse`.
    """

    name: str
    text: str
    form: type[BaseModel] | Mapping[str, Any]
    parse: Callable[[str], T]
    parse_repaired: Callable[[str], T] | None = None


async def ask(llm: LLM, prompt: Prompt[T]) -> Answer[T]:
    """Ask the LLM, parse its answer, and ask for a repair once if the answer is malformed.

    Usage covers both calls, in errors too, and names the prompt and its version.
    Errors: MalformedAnswer, and those of the LLM.
    """
    with paid(Usage(prompt=f"{prompt.name}@{prompts.version(prompt.name)}")) as named:
        answer = await _ask(llm, prompt)
    return replace(answer, usage=named + answer.usage)


async def _ask(llm: LLM, prompt: Prompt[T]) -> Answer[T]:
    """Ask the LLM, and once more if its answer is malformed; the usage covers both calls."""
    system, user = prompt.text.rsplit(prompts.DIVIDER, 1)
    first = await _complete(llm, system, user, prompt.form)
    try:
        return Answer(await _parsed(prompt.parse, first.text), first.usage)
    except MalformedAnswer as error:
        shown = prompts.quoted(first.text[:REPAIR_CHARS])
        hint = f" {prompts.quoted(error.hint)}" if error.hint else ""
        repair = prompts.render("repair", error=f"{error}{hint}", answer=shown)
    with paid(first.usage):
        second = await _complete(llm, system, f"{user}\n\n{repair}", prompt.form)
        with paid(second.usage):
            value = await _parsed(prompt.parse_repaired or prompt.parse, second.text)
    return Answer(value, first.usage + second.usage)


async def _parsed(parse: Callable[[str], T], text: str) -> T:
    """The parsed answer; a long one is parsed beside the event loop."""
    return await beside_loop(lambda: parse(text), inline=len(text) <= INLINE_CHARS)


async def _complete(
    llm: LLM, system: str, user: str, form: type[BaseModel] | Mapping[str, Any]
) -> Completion:
    """Call the LLM once, with the JSON schema of the form."""
    turns = (ChatTurn("system", system), ChatTurn("user", user))
    if isinstance(form, Mapping):
        return await llm.complete(turns, schema_name="object", schema=form)
    name = form.__name__.removesuffix("Answer").lower()
    return await llm.complete(turns, schema_name=name, schema=answer_schema(form))
