"""Creation of suggestions: the proposals of a step that pass the checks, as open suggestions.

An add creates suggestions too, of the changes that it withholds: see
pipeline/domain/consolidation/reconcile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.curator.ports import CuratorStores
from pipeline.curator.store import CuratorRun, CuratorStep
from pipeline.domain.curation import DELETE_SHARE, LEAST_DELETES, CuratedSuggestion, reviewed
from pipeline.domain.suggestions import SuggestionKind


async def create_suggestions(
    current: CuratorRun, step: CuratorStep, ledger: CuratorStores, *, size: int
) -> Sequence[CuratedSuggestion] | None:
    """Store the suggestions of a step. None if the run is lost.

    A proposal about a memory that has changed since it was shown is dropped. `size`: number of the
    scope's memories, which limits the deletes.
    """
    shown = dict(step.shown)
    rows = await ledger.memories.active(current.scope.project_id, list(shown))
    contested = await ledger.curator.conflicts(current.scope, list(shown))
    unchanged = {
        m.id: replace(m, conflict_id=contested.get(m.id)) for m in rows if m.version == shown[m.id]
    }
    left = max(LEAST_DELETES, int(DELETE_SHARE * size)) - current.deletes
    ids = [memory_id for memory_id, _ in step.shown]
    suggestions: list[CuratedSuggestion] = []
    for proposal in step.proposals or ():
        targets = [unchanged[ids[at]] for at in proposal.targets if ids[at] in unchanged]
        made = len(targets) == len(proposal.targets) and reviewed(
            proposal.kind, targets, proposal.text, proposal.reason
        )
        if made and (made.kind is not SuggestionKind.DELETE or left > 0):
            left -= made.kind is SuggestionKind.DELETE
            suggestions.append(made)
    suggestions = suggestions[: max(0, current.limits.suggestions - current.suggested)]
    dropped = len(step.proposals or ()) - len(suggestions)
    stored = await ledger.curator.create_suggestions(current.hint, suggestions, dropped=dropped)
    return suggestions if stored else None
