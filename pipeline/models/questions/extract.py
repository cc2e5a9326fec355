"""Extraction: prompt that asks for facts, and the parser of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated

from annotated_types import MinLen
from pydantic import BaseModel, BeforeValidator

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Fact, FactKind, memory_type
from pipeline.domain.messages import SourcedMessage
from pipeline.domain.usage import Answer
from pipeline.models import prompts
from pipeline.models.background import within_budget
from pipeline.models.categories import chosen
from pipeline.models.json_answers import SHOWN_ERRORS, json_object, valid_rows
from pipeline.models.questions import integer_ids
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.text_field import NO_WORDS, FactText
from pipeline.ports import ExtractionRequest
from pipeline.text.statements import slots
from pipeline.text.times.when import dated

# Maximum length of a subject, an attribute and the words of a time.
LONGEST_WORDS = 120
# Maximum number of facts in an answer: all facts of a batch are compared with each other.
MOST_FACTS = 1_000
LEFT_OUT = "Facts of the model's answer that are left out as invalid, also after a repair: {}. {}"


def extract_prompt(request: ExtractionRequest) -> Prompt[Answer[tuple[Fact, ...]]] | None:
    """The prompt for the facts of the messages; None if no message can hold one.

    Invalid facts of a repaired answer are left out only if the messages are those of one event: a
    batch of several is halved instead, and so the event with the invalid fact gets the note.
    """
    shown = [message for message in request.messages if prompts.is_shown(message.message)]
    messages = [message for message in shown if prompts.is_numbered(message.message)]
    if not messages:
        return None
    summary, turns = within_budget(request.summary, request.context)
    text = prompts.render(
        "extract",
        wishes=prompts.wishes(request.instructions),
        categories=prompts.categories(request.instructions),
        summary=prompts.quoted(summary) if summary else prompts.NOTHING,
        context=prompts.turns(turns),
        messages=prompts.transcript(shown),
    )
    parse = partial(parse_facts, messages=messages, instructions=request.instructions)
    one_event = len({sourced.source.event for sourced in messages}) == 1
    return Prompt("extract", text, FactsAnswer, parse, partial(parse, mend=one_event))


def parse_facts(
    text: str,
    messages: Sequence[SourcedMessage],
    instructions: Instructions,
    *,
    mend: bool = False,
) -> Answer[tuple[Fact, ...]]:
    """The facts of the answer, ordered by event and message. None is a valid answer.

    Statements that the speaker does not assert are dropped, and categories that were not offered,
    and texts without a letter or digit: models copy the "..." of the prompt's example. A fact that
    several events state is returned once for each of them, because each event has its own receipt.
    Times are computed here: see `pipeline.text.times.when`.

    `mend` is for the repaired answer of one event, after which there is no further call: its valid
    facts are kept, and the note has the faults of the others.

    Errors: MalformedAnswer; with `mend` only if no fact is valid.
    """
    faults: list[str] = []

    def check(place: str, row: FactRow) -> None:
        for number in row.messages:
            integer_ids.check(f"{place}.messages", number, len(messages), "messages")

    answer = json_object(text)
    stated = answer.get("facts")
    count = len(stated) if isinstance(stated, list) else 0
    if count > MOST_FACTS:
        faults.append(f"facts: {count} are too many; give the {MOST_FACTS} most important ones")
        answer["facts"] = answer["facts"][:MOST_FACTS]
    rows = valid_rows(answer, "facts", FactRow, faults, check)
    if faults and not (mend and rows):
        raise MalformedAnswer("; ".join(faults[:SHOWN_ERRORS]))
    facts = [
        _fact(row, sourced, instructions)
        for row in rows
        if row.modality in ASSERTED and any(map(str.isalnum, row.text))
        for sourced in _first_of_each_event(
            [integer_ids.item(messages, number) for number in sorted(set(row.messages))]
        )
    ]
    in_order = tuple(sorted(facts, key=lambda fact: (fact.source.event, fact.source.message)))
    if not faults:
        return Answer(in_order)
    note = LEFT_OUT.format(count - len(rows), "; ".join(faults[:SHOWN_ERRORS]))
    return Answer(in_order, note=note, left_out=(messages[0].source.event,))


def _fact(row: FactRow, sourced: SourcedMessage, instructions: Instructions) -> Fact:
    """Build a fact, stated by the message, from a row of the answer."""
    message = sourced.message
    planned = row.modality is Modality.PLANNED
    text, valid_from = dated(
        row.text, sourced.said_at, when=row.when, ahead=planned, source=message.content
    )
    generic = row.subject is not None and slots.is_the_user(row.subject)
    return Fact(
        text,
        sourced.source,
        message.role,
        chosen(row.categories, instructions),
        speaker=message.name,
        kind=row.kind,
        memory_type=memory_type(row.kind, valid_from),
        subject=(message.name or row.subject) if generic else row.subject,
        attribute=row.attribute and slots.attribute_name(row.attribute),
        valid_from=valid_from,
        confidence=row.confidence,
        cardinality=row.values,
    )


def _first_of_each_event(stated: Sequence[SourcedMessage]) -> list[SourcedMessage]:
    """The first message of each event among `stated`."""
    return list({sourced.source.event: sourced for sourced in reversed(stated)}.values())


def _names(value: object) -> list[str]:
    """The strings of a list; anything else is dropped, so a bad category does not lose the fact."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


class Modality(StrEnum):
    """Modality of a statement: the speaker asserts only what is STATED or PLANNED."""

    STATED = "stated"
    PLANNED = "planned"
    HYPOTHETICAL = "hypothetical"
    QUOTED = "quoted"
    SARCASTIC = "sarcastic"
    QUESTION = "question"


ASSERTED = (Modality.STATED, Modality.PLANNED)


def _one_of(values: type[StrEnum], default: StrEnum | None) -> BeforeValidator:
    """A validator that accepts a member's value in any case; other values are the default."""
    members = {str(value): value for value in values}
    return BeforeValidator(lambda value: members.get(str(value).strip().lower(), default))


def _words(value: object) -> str | None:
    """A short text without characters that PostgreSQL rejects; None for anything else."""
    if not isinstance(value, str):
        return None
    words = " ".join(value.replace("\x00", "").encode(errors="ignore").decode().split())
    return words[:LONGEST_WORDS] if words.casefold() not in NO_WORDS else None


def _share(value: object) -> float | None:
    """A number from 0 to 1; None for anything else."""
    sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if sound else None  # type: ignore[arg-type]


Words = Annotated[str | None, BeforeValidator(_words)]


class FactRow(BaseModel):
    """One fact of the answer. `messages` are numbers from the prompt, starting at 1.

    Only messages and text are required: a weaker model may leave out or spoil the other values.
    """

    messages: Annotated[list[int], MinLen(1)]
    text: FactText
    kind: Annotated[FactKind, _one_of(FactKind, FactKind.OTHER)] = FactKind.OTHER
    subject: Words = None
    attribute: Words = None
    values: Annotated[slots.Cardinality | None, _one_of(slots.Cardinality, None)] = None
    when: Words = None
    modality: Annotated[Modality, _one_of(Modality, Modality.STATED)] = Modality.STATED
    confidence: Annotated[float | None, BeforeValidator(_share)] = None
    categories: Annotated[list[str], BeforeValidator(_names)] = []


class FactsAnswer(BaseModel):
    """The answer to the question "extract"."""

    facts: list[FactRow]
