"""cardinality: facts -> facts that say whether their attribute has one value at a time.

    the project's list                        first
    the table of common attributes            residence, employer; languages, children
    what memories of the scope know           `several` if one of them says it
    the extraction's own word                 with two values in one message: unknown

It is saved with the facts, before a stage acts on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.domain.facts import Fact
from pipeline.domain.lanes import Batch
from pipeline.memories.store import Memories
from pipeline.text.statements.slots import Cardinality, cardinality, is_listed


async def with_cardinality(batch: Batch, facts: Sequence[Fact], memories: Memories) -> list[Fact]:
    """The facts, each with what is known about its attribute beside the table."""
    own = batch.attributes
    unlisted = {
        fact.attribute
        for fact in facts
        if fact.attribute and fact.slot and not is_listed(fact.slot) and fact.attribute not in own
    }
    known = await memories.cardinalities(batch.scope, unlisted) if unlisted else {}
    of_message = Counter((fact.source, fact.slot) for fact in facts)
    return [
        replace(
            fact,
            cardinality=cardinality(
                fact.slot,
                _learned(fact, known, alone=of_message[fact.source, fact.slot] == 1),
                own,
            ),
        )
        for fact in facts
    ]


def _learned(fact: Fact, known: Mapping[str, Cardinality], *, alone: bool) -> Cardinality | None:
    """The word of the scope and of the extraction; `several` is the safe one, so it counts first.

    `alone`: the message gives the attribute no other value.
    """
    words = {fact.cardinality, known.get(fact.attribute or "")}
    if Cardinality.SEVERAL in words:
        return Cardinality.SEVERAL
    return Cardinality.ONE if Cardinality.ONE in words and alone else None
