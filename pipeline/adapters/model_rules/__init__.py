"""`local/rules`: a MemoryModel made of patterns. No key, no network, English only, deterministic.

    extract   clauses -> statements (the table in claims) -> canonical sentences
    decide    slots: one value a slot, polarity flips, retractions, repeats
    relate    slots -> edges, and which current edges they end
    distil    properties of an object -> the memories that share words with them

It knows what its tables know and stays silent about the rest: good for trying the system out and
for tests, no match for a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.adapters.model_rules.decide import decide_facts
from pipeline.adapters.model_rules.extract import extract_facts
from pipeline.adapters.model_rules.fill import fill
from pipeline.adapters.model_rules.relate import relate_facts
from pipeline.domain import (
    Answer,
    Decision,
    Fact,
    GraphChanges,
    Instructions,
    Neighbour,
    Question,
    StoredRelation,
    Usage,
)
from pipeline.ports import ExtractionRequest

__all__ = ["RulesModel"]

NAME = "local/rules"
# Nothing is called and nothing is spent: receipts show zeros, not blanks.
USAGE = Usage(model=NAME, calls=0)


class RulesModel:
    """Answers the four questions of `MemoryModel` by rules: the same input, the same answer.

    Raises nothing: text that no rule knows gives no facts, a plain ADD and no relations.
    """

    @property
    def name(self) -> str:
        return NAME

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        """The facts user messages state; see `extract_facts`."""
        return Answer(extract_facts(request), USAGE)

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        """Exactly one decision a fact, in order; `instructions` are for language models."""
        return Answer(decide_facts(facts, neighbours), USAGE)

    async def relate(
        self, facts: Sequence[str], current: Sequence[StoredRelation]
    ) -> Answer[GraphChanges]:
        """The edges the facts state, and the ids of current edges they end."""
        return Answer(relate_facts(facts, current), USAGE)

    async def distil(
        self, question: Question, memories: Sequence[str]
    ) -> Answer[Mapping[str, Any]]:
        """The object filled by words alone; its instructions are for language models."""
        return Answer(fill(question, memories), USAGE)
