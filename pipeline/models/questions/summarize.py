"""Rolling summary: prompt that merges messages into the summary so far, and its parser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pydantic import BaseModel

from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.messages import SourcedMessage
from pipeline.domain.summaries import SummaryUpdate
from pipeline.models import prompts
from pipeline.models.json_answers import parsed
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.text_field import Text
from pipeline.text.statements.values import Value
from pipeline.text.times.kept_times import missing_times, times_to_keep
from pipeline.text.times.when import dated
from pipeline.text.tokens import tokens

# Maximum length of a summary, in estimated tokens: it is a part of every extraction prompt.
LONGEST_TOKENS = 600
# Number of times that a summary must keep; the latest statements come first.
MOST_TIMES = 24


def summary_prompt(request: SummaryUpdate) -> Prompt[str]:
    """The prompt for the next version of a summary. Relative times get their dates here."""
    messages = [_dated(sourced) for sourced in request.messages]
    text = prompts.render(
        "summary",
        wishes=prompts.wishes(request.instructions),
        summary=prompts.quoted(request.previous) if request.previous else prompts.NOTHING,
        messages=prompts.transcript(messages),
    )
    sources = [sourced.message.content for sourced in reversed(messages)]
    wanted = times_to_keep([*sources, request.previous or ""], most=MOST_TIMES)
    return Prompt("summary", text, SummaryAnswer, partial(parse_summary, wanted=wanted))


def parse_summary(text: str, wanted: Sequence[Value]) -> str:
    """The summary of the answer, if it keeps the wanted times and is not too long.

    Errors: MalformedAnswer; its hint names the missing times, for the repair.
    """
    summary = parsed(text, SummaryAnswer).summary
    if (length := tokens(summary)) > LONGEST_TOKENS:
        raise MalformedAnswer(f"it has about {length} tokens; at most {LONGEST_TOKENS} are allowed")
    if missing := missing_times(wanted, summary):
        raise MalformedAnswer(
            f"the summary lacks {len(missing)} dates or times of its sources; write them all",
            hint=", ".join(missing),
        )
    return summary


def _dated(sourced: SourcedMessage) -> SourcedMessage:
    """The message with the dates of its relative times."""
    text, _ = dated(sourced.message.content, sourced.said_at)
    return replace(sourced, message=replace(sourced.message, content=text))


class SummaryAnswer(BaseModel):
    """The answer to the question "summary"."""

    summary: Text
