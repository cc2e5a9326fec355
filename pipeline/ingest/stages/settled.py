"""settled: decisions that need no model.

Verbatim and appended facts, a text that is stored or occurs earlier in the same batch, and a single
fact without similar memories. Retrieve saves these decisions with its output; later stages read
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from pipeline.domain.facts import Decision, Fact, Outcome
from pipeline.domain.lanes import Batch
from pipeline.domain.stage_outputs import Extracted, Retrieved, read
from pipeline.text.equality import text_hash

VERBATIM = "Stored as said (infer=false)."
PROCEDURE = "The summary of a procedure is a memory of its own."
ALREADY_STORED = "Exactly this is already stored."
SAID_TWICE = "Exactly this was said earlier in the same batch."
APPENDED = "Added without a comparison (mode append)."
NOTHING_SIMILAR = "Nothing similar is stored."


def settle(batch: Batch, extracted: Extracted, retrieved: Retrieved) -> Retrieved:
    """The output of retrieve with the decisions that need no model."""
    facts = extracted.facts
    decided = _repeats(facts, retrieved.known)
    left = [i for i in range(len(facts)) if i not in decided]
    if batch.options.procedural or not batch.options.infer:
        reason = PROCEDURE if batch.options.procedural else VERBATIM
        decided |= {i: Decision(i, Outcome.ADD, reason, facts[i].text) for i in left}
    elif extracted.appends:
        decided |= {i: Decision(i, Outcome.ADD, APPENDED, facts[i].text) for i in left}
    elif len(left) == 1 and not retrieved.neighbours:
        [i] = left
        decided[i] = Decision(i, Outcome.ADD, NOTHING_SIMILAR, facts[i].text)
    return replace(retrieved, settled=tuple(decided[i] for i in sorted(decided)))


def settled(batch: Batch) -> dict[int, Decision]:
    """The saved decisions that need no model, by the fact's position."""
    retrieved = read(batch, Retrieved)
    if retrieved.settled is None:  # saved by a release that computed them in each stage
        retrieved = settle(batch, read(batch, Extracted), retrieved)
    return {decision.fact: decision for decision in retrieved.settled or ()}


def _repeats(facts: Sequence[Fact], known: Sequence[UUID | None]) -> dict[int, Decision]:
    """NOOPs for facts whose exact text is stored or comes earlier in this batch, by position.

    A NOOP for an earlier fact names no memory: that fact is applied later.
    """
    first: dict[bytes, int] = {}
    decided: dict[int, Decision] = {}
    for position, fact in enumerate(facts):
        earlier = first.setdefault(text_hash(fact.text), position)
        stored = known[position]
        if stored is not None:
            decided[position] = Decision(position, Outcome.NOOP, ALREADY_STORED, memory_id=stored)
        elif earlier != position:
            decided[position] = Decision(position, Outcome.NOOP, SAID_TWICE)
    return decided
