"""`local/rules`: a MemoryModel made of patterns. No key, no network, English only, deterministic.

    extract   clauses -> statements by the table of rules -> canonical sentences
    decide    slots: one value for each slot, polarity flips, retractions, repeats
    relate    slots -> edges
    curate    repeats in the same words, newer values of a slot, statements without content
    distil    properties of an object -> the memories that share words with them

It makes no summaries. It recognizes only what its tables contain, and ignores everything else. It
is made for trials and tests; it does not replace a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.adapters.model_rules.curate import curate
from pipeline.adapters.model_rules.decide import decide_facts
from pipeline.adapters.model_rules.extract import USAGE, extract_facts, procedure_log
from pipeline.adapters.model_rules.fill import fill, fill_fields
from pipeline.adapters.model_rules.relate import relate_facts
from pipeline.cpu_thread import beside_loop
from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.events import EventType, Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph import GraphChanges, RelationRequest
from pipeline.domain.summaries import SummaryUpdate
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest

__all__ = ["RulesModel"]

# Input up to these sizes takes a few milliseconds and stays on the event loop: characters to read,
# and pairs of texts to compare.
INLINE_CHARS = INLINE_PAIRS = 2_000


class RulesModel:
    """The MemoryModel port by rules: the same input gives the same answer.

    It raises no errors: text that no rule recognizes gives no facts, a plain ADD and no relations.
    """

    name = "local/rules"

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        """The facts that user messages state; see `extract_facts`. Or the log of a procedure."""
        if request.procedural:
            return Answer(procedure_log(request), USAGE)
        speakers = {sourced.message.name for sourced in request.messages}
        chars = sum(len(message.content) for message in request.context) * len(speakers)
        chars += sum(len(sourced.message.content) for sourced in request.messages)
        return await beside_loop(lambda: extract_facts(request), inline=chars <= INLINE_CHARS)

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        """Exactly one decision for each fact, in order. `instructions` are ignored."""
        short = len(facts) * (len(facts) + len(neighbours)) <= INLINE_PAIRS
        return Answer(
            await beside_loop(lambda: decide_facts(facts, neighbours), inline=short), USAGE
        )

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        """The edges that the facts state; the plan of the graph ends others."""
        return Answer(relate_facts(request.texts, request.current), USAGE)

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        """The object, filled by matching words. The question's instructions are ignored."""
        fill_in = fill_fields if question.kind is EventType.PROFILE else fill
        return Answer(await beside_loop(lambda: fill_in(question.shape, memories)), USAGE)

    async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
        """Proposals for repeats, newer values of a slot, and statements without content."""
        return Answer(await beside_loop(lambda: curate(request)), USAGE)

    async def summarize(self, request: SummaryUpdate) -> Answer[str]:
        """The summary so far: it is never asked, because `bootstrap` switches summaries off."""
        return Answer(request.previous or "", USAGE)

    async def close(self) -> None:
        """Nothing to release."""
