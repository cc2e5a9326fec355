"""unrelated: relations that end with their memories in a batch whose graph is left out.

Where a stage of the graph follows, it ends them by the facts: see relate.py. Without it, in mode
append or with `enable_graph: false`, a memory that is deleted or ended would stay in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.graph import EndedRelation
from pipeline.domain.graph_names import still_gives
from pipeline.domain.scope import Scope
from pipeline.domain.writes import Change, ScopeMemories
from pipeline.graph.store import Graph
from pipeline.text.names import says


async def unrelated(
    scope: Scope, changes: Sequence[Change], memories: ScopeMemories, graph: Graph
) -> list[EndedRelation]:
    """The current relations that no memory states once the changes are written.

    A retired memory states none, unless another memory of the same fact says it; a memory with
    another text states those whose destination the text still gives. `memories`: the final states.
    """
    others = [c for c in changes if _is_other(c)]
    changed = {c.before.id: c for c in others if c.before}
    first = {c.before.id: c.before.text for c in reversed(others) if c.before}
    stated = await graph.stated_by(scope, list(changed)) if changed else []
    ended = []
    for relation in stated:
        assert relation.memory_id is not None  # it is stated by a memory
        change = changed[relation.memory_id]
        position, name = change.write.position, relation.destination
        own = {c.memory_id for c in changes if c.write.position == position}
        texts = [m.text for m in map(memories.active, own) if m is not None]
        reworded = memories.active(change.memory_id) is not None
        before = first[relation.memory_id]
        # A name in other words than those of the text tells nothing.
        unknown = reworded and not says(before, name)
        if unknown or any(still_gives(before, text, name) for text in texts):
            continue
        since = change.write.fact.valid_from or change.write.said_at
        ended.append(
            EndedRelation(relation.id, change.write.event.id, max(since, relation.valid_from))
        )
    return ended


def _is_other(change: Change) -> bool:
    """Tell if a change of a stored memory retires it, or gives it another text."""
    before, after = change.before, change.after
    if before is None or after is None or before.id != after.id:
        return False
    return after.state != "ACTIVE" or after.text != before.text
