"""Proposals for exact cases: repeats, newer values of a slot, and statements without content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from pipeline.domain.conservation import matter, same_statement
from pipeline.domain.curation import CuratedMemory, CurationRequest, Proposal
from pipeline.domain.suggestions import SuggestionKind
from pipeline.text import polarity, slots
from pipeline.text.values import stated


def curate(request: CurationRequest) -> tuple[Proposal, ...]:
    """Proposals in the order of the groups; each memory is named at most once."""
    used: set[int] = set()
    proposals = []
    for group in request.groups:
        for proposal in _of_group(request.memories, sorted(group)):
            if used.isdisjoint(proposal.targets):
                used.update(proposal.targets)
                proposals.append(proposal)
    return tuple(proposals)


def _of_group(memories: Sequence[CuratedMemory], group: Sequence[int]) -> Iterator[Proposal]:
    """Yield the proposals about the memories of one group."""
    for pair in combinations(group, 2):
        this, that = sorted((memories[at] for at in pair), key=lambda memory: memory.said_at)
        if same_statement(this.text, that.text):
            text, reason = memories[pair[0]].text, "The same statement twice."
            yield Proposal(SuggestionKind.COMBINE, pair, text, reason)
        elif _replaces(that, this):
            reason = "The later statement gives the attribute another value."
            yield Proposal(SuggestionKind.UPDATE, pair, that.text, reason)
    for at in group:
        text = memories[at].text
        if not matter(text) and not stated(text).values:
            yield Proposal(SuggestionKind.DELETE, (at,), None, "It states nothing.")


def _replaces(later: CuratedMemory, other: CuratedMemory) -> bool:
    """Tell if the later of two statements gives a single-valued attribute another value."""
    cardinality = later.cardinality or other.cardinality
    same = later.slot == other.slot and later.speaker == other.speaker
    taken_back = any(polarity.takes_back(memory.text) for memory in (later, other))
    single = slots.single_valued(later.slot, cardinality)
    return same and single and later.said_at != other.said_at and not taken_back
