"""The MemoryModel port on top of any LLM.

Each question is a module of pipeline.models.questions with its prompt, its answer model and its
parser. A malformed answer is sent back once with the error; if the second answer is malformed too,
the call fails with MalformedAnswer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.domain.curation import CurationRequest, Proposal
from pipeline.domain.events import EventType, Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour
from pipeline.domain.graph.values import GraphChanges, RelationRequest
from pipeline.domain.summaries import SummaryUpdate
from pipeline.domain.usage import Answer
from pipeline.models.questions.curate import curate_prompt
from pipeline.models.questions.decide import decide_prompt, settled
from pipeline.models.questions.distil import distil_prompt
from pipeline.models.questions.extract import extract_prompt
from pipeline.models.questions.procedure import procedure_prompt
from pipeline.models.questions.profile import profile_prompt
from pipeline.models.questions.relate import relate_prompt
from pipeline.models.questions.repair import ask
from pipeline.models.questions.summarize import summary_prompt
from pipeline.ports import LLM, ExtractionRequest


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
        if request.procedural:
            log = procedure_prompt(request)
            return Answer(()) if log is None else await ask(self._llm, log)
        prompt = extract_prompt(request)
        if prompt is None:
            return Answer(())
        answer = await ask(self._llm, prompt)
        return replace(answer.value, usage=answer.usage)

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        one_turn = len({fact.source.event for fact in facts}) == 1
        if not facts or (one_turn and not neighbours):  # a turn does not contradict itself
            return Answer(settled(facts))
        return await ask(self._llm, decide_prompt(facts, neighbours, instructions))

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        if not request.facts:
            return Answer(GraphChanges())
        return await ask(self._llm, relate_prompt(request))

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        if question.kind is EventType.PROFILE:
            rows = await ask(self._llm, profile_prompt(question, memories))
            return Answer(rows.value.value, rows.usage, rows.value.note)
        answer = await ask(self._llm, distil_prompt(question, memories))
        return Answer(answer.value, answer.usage)

    async def curate(self, request: CurationRequest) -> Answer[tuple[Proposal, ...]]:
        return await ask(self._llm, curate_prompt(request))

    async def summarize(self, request: SummaryUpdate) -> Answer[str]:
        return await ask(self._llm, summary_prompt(request))

    async def close(self) -> None:
        await self._llm.close()
