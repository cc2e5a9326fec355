"""Curation: prompt that asks for proposals about stored memories, and the parser of its answer."""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import BaseModel

from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.suggestions import SuggestionKind
from pipeline.models import prompts
from pipeline.models.json_answers import SHOWN_ERRORS, json_object, valid_rows
from pipeline.models.questions import integer_ids
from pipeline.models.questions.decide import NO_REASON
from pipeline.models.questions.repair import Prompt
from pipeline.models.questions.text_field import OptionalText, Reason


def curate_prompt(request: CurationRequest) -> Prompt[tuple[Proposal, ...]]:
    """The prompt for proposals about the memories of a request."""
    text = prompts.render(
        "curate",
        memories=integer_ids.dated((memory.text, memory.said_at) for memory in request.memories),
        groups=integer_ids.groups(request.groups),
        conflicts=integer_ids.groups(request.conflicts),
    )
    parse = partial(parse_proposals, count=len(request.memories))
    return Prompt("curate", text, ProposalsAnswer, parse, partial(parse, mend=True))


def parse_proposals(text: str, count: int, *, mend: bool = False) -> tuple[Proposal, ...]:
    """The proposals of an answer about `count` memories.

    A proposal that names a memory twice, or one that was not shown, is dropped whole. So is one
    that names a memory of an earlier proposal. `mend` is for the repaired answer, whose invalid
    proposals are dropped too. Errors: MalformedAnswer; with `mend` only if no proposal is valid.
    """
    faults: list[str] = []
    rows = valid_rows(json_object(text), "proposals", ProposalRow, faults)
    if faults and not (mend and rows):
        raise MalformedAnswer("; ".join(faults[:SHOWN_ERRORS]))
    named: set[int] = set()
    proposals = []
    for row in rows:
        numbers = set(row.memories)
        valid = numbers and len(numbers) == len(row.memories) and max(numbers) <= count
        if not valid or min(numbers) < 1 or numbers & named:
            continue
        named |= numbers
        targets = tuple(number - 1 for number in row.memories)
        kind = SuggestionKind(row.kind)
        proposals.append(Proposal(kind, targets, row.text, row.reason or NO_REASON))
    return tuple(proposals)


class ProposalRow(BaseModel):
    """One proposal of the answer. `memories` are numbers of the prompt, from 1."""

    kind: Literal["DELETE", "COMBINE", "UPDATE", "RESOLVE"]
    memories: list[int]
    text: OptionalText = None
    reason: Reason = None


class ProposalsAnswer(BaseModel):
    """The answer to the question "curate"."""

    proposals: list[ProposalRow]
