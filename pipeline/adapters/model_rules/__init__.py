"""`local/rules`: a MemoryModel made of patterns. No key, no network, English only, deterministic.

A table of rules (`relations`) reads clauses as statements. Their slots decide what changes, and
state the edges of the graph. It recognizes only what its tables contain, and makes no summaries. It
is made for trials and tests; it does not replace a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.adapters.model_rules.decide import curate, decide_facts
from pipeline.adapters.model_rules.extract import USAGE, extract_facts, procedure_log
from pipeline.adapters.model_rules.fill import fill, fill_fields
from pipeline.adapters.model_rules.relate import relate_facts
from pipeline.cpu_thread import beside_loop
from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.events import EventType, Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph.values import GraphChanges, RelationRequest
from pipeline.domain.summaries import SummaryUpdate
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest


class RulesModel:
    """The MemoryModel port by rules: the same input gives the same answer.

    It raises no errors: text that no rule recognizes gives no facts, a plain ADD and no relations.
    """

    name = "local/rules"

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        """The facts that user messages state; see `extract_facts`. Or the log of a procedure."""
        if request.procedural:
            return Answer(procedure_log(request), USAGE)
        return await beside_loop(lambda: extract_facts(request))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        """Exactly one decision for each fact, in order. `instructions` are ignored."""
        return Answer(await beside_loop(lambda: decide_facts(facts, neighbours)), USAGE)

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        """The edges that the facts state."""
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
