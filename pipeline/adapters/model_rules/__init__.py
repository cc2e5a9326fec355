"""`local/rules`: a MemoryModel made of patterns. No key, no network, English only, deterministic.

    extract   clauses -> statements (the table in claims) -> canonical sentences
    decide    slots: one value for each slot, polarity flips, retractions, repeats
    relate    slots -> edges, and the current edges that they end
    curate    repeats in the same words, newer values of a slot, statements without content
    distil    properties of an object -> the memories that share words with them

It makes no summaries, and its rules need none.

It recognizes only what its tables contain, and ignores everything else. It is made for trials and
tests; it does not replace a language model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pipeline.adapters.model_rules.curate import curate
from pipeline.adapters.model_rules.decide import decide_facts
from pipeline.adapters.model_rules.extract import extract_facts
from pipeline.adapters.model_rules.fill import fill, fill_fields
from pipeline.adapters.model_rules.procedure import procedure_log
from pipeline.adapters.model_rules.relate import relate_facts
from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.events import EventType, Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph import GraphChanges, RelationRequest
from pipeline.domain.summaries import SummaryUpdate
from pipeline.domain.usage import Answer, Usage
from pipeline.ports import ExtractionRequest

__all__ = ["RulesModel"]

NAME = "local/rules"
# No call and no cost: receipts show zeros instead of empty fields.
USAGE = Usage(model=NAME, calls=0)
# Input up to these sizes takes a few milliseconds and is processed on the event loop, because a
# thread costs more: characters to read, and pairs of texts to compare.
INLINE_CHARS = 2_000
INLINE_PAIRS = 2_000

T = TypeVar("T")


class RulesModel:
    """The MemoryModel port by rules: the same input gives the same answer.

    It raises no errors: text that no rule recognizes gives no facts, a plain ADD and no relations.
    """

    def __init__(self) -> None:
        # One thread: because of the GIL, a second one would not be faster.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-rules")

    @property
    def name(self) -> str:
        return NAME

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        """The facts that user messages state; see `extract_facts`. Or the log of a procedure."""
        if request.procedural:
            return Answer(procedure_log(request), USAGE)
        speakers = {sourced.message.name for sourced in request.messages}
        context = sum(len(message.content) for message in request.context) * len(speakers)
        chars = context + sum(len(sourced.message.content) for sourced in request.messages)
        read = await self._run(chars <= INLINE_CHARS, lambda: extract_facts(request))
        return Answer(read.facts, USAGE, read.note, read.left_out)

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        """Exactly one decision for each fact, in order. `instructions` are ignored."""
        pairs = len(facts) * (len(facts) + len(neighbours))
        decisions = await self._run(pairs <= INLINE_PAIRS, lambda: decide_facts(facts, neighbours))
        return Answer(decisions, USAGE)

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        """The edges that the facts state, and the current edges that they end."""
        texts, current = request.texts, request.current
        pairs = len(texts) * (len(texts) + len(current))
        changes = await self._run(pairs <= INLINE_PAIRS, lambda: relate_facts(texts, current))
        return Answer(changes, USAGE)

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        """The object, filled by matching words. The question's instructions are ignored."""
        fill_in = fill_fields if question.kind is EventType.PROFILE else fill
        return Answer(await self._run(False, lambda: fill_in(question, memories)), USAGE)

    async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
        """Proposals for repeats, newer values of a slot, and statements without content."""
        return Answer(await self._run(False, lambda: curate(request)), USAGE)

    async def summarize(self, request: SummaryUpdate) -> Answer[str]:
        """The summary so far: it is never asked, because `bootstrap` switches summaries off."""
        return Answer(request.previous or "", USAGE)

    async def close(self) -> None:
        """Nothing to release."""

    async def _run(self, inline: bool, answer: Callable[[], T]) -> T:
        """Result of `answer()`, computed in a thread unless `inline`."""
        if inline:
            return answer()
        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)
