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
        for proposal in _of_group(request, group):
            if used.isdisjoint(proposal.targets):
                used.update(proposal.targets)
                proposals.append(proposal)
    return tuple(proposals)


def _of_group(request: CurationRequest, group: Sequence[int]) -> Iterator[Proposal]:
    """Yield the proposals about the memories of one group."""
    positions = sorted(group)
    for first, other in combinations(positions, 2):
        this, that = request.memories[first], request.memories[other]
        if same_statement(this.text, that.text):
            reason = "The same statement twice."
            yield Proposal(SuggestionKind.COMBINE, (first, other), this.text, reason)
        elif _replaces(this, that):
            newer = max(this, that, key=lambda memory: memory.said_at)
            reason = "The later statement gives the attribute another value."
            yield Proposal(SuggestionKind.UPDATE, (first, other), newer.text, reason)
    for position in positions:
        text = request.memories[position].text
        if not matter(text) and not stated(text).values:
            yield Proposal(SuggestionKind.DELETE, (position,), None, "It states nothing.")


def _replaces(first: CuratedMemory, other: CuratedMemory) -> bool:
    """Tell if the later of two statements gives a single-valued attribute another value."""
    return (
        first.slot == other.slot
        and slots.single_valued(first.slot, first.cardinality or other.cardinality)
        and first.said_at != other.said_at
        and first.speaker == other.speaker
        and not polarity.takes_back(first.text)
        and not polarity.takes_back(other.text)
    )
