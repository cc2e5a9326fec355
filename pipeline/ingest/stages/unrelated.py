"""unrelated: relations that end with their memories in a batch whose graph is left out.

Where a stage of the graph follows, it ends them by the facts: see relate.py. Without it, in mode
append or with `enable_graph: false`, a memory that is deleted or ended would stay in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid5

from pipeline.domain.graph.names import still_gives
from pipeline.domain.graph.values import EndedRelation
from pipeline.domain.scope import Scope
from pipeline.domain.writes import Change, ScopeMemories, Write
from pipeline.graph.store import Graph
from pipeline.text.names import says


async def unrelated(
    scope: Scope, changes: Sequence[Change], memories: ScopeMemories, graph: Graph
) -> list[EndedRelation]:
    """The current relations that no memory states once the changes are written.

    A retired memory states none; a memory with another text states those whose destination the text
    still gives. Another memory of the same fact takes over those that it gives. `memories`: the
    final states.
    """
    others = [c for c in changes if _is_other(c)]
    changed = {c.before.id: c for c in others if c.before}
    first = {c.before.id: c.before.text for c in reversed(others) if c.before}
    stated = await graph.stated_by(scope, list(changed)) if changed else []
    ended = []
    for relation in stated:
        assert relation.memory_id is not None  # it is stated by a memory
        change = changed[relation.memory_id]
        write, name = change.write, relation.destination
        own = dict.fromkeys(c.memory_id for c in changes if c.write.position == write.position)
        active = [m for m in map(memories.active, own) if m is not None]
        before = first[relation.memory_id]
        # A name in other words than those of the text tells nothing.
        unknown = memories.active(change.memory_id) is not None and not says(before, name)
        giving = [m.id for m in active if still_gives(before, m.text, name)]
        if unknown or change.memory_id in giving:
            continue
        since = max(write.fact.valid_from or write.said_at, relation.valid_from)
        end = EndedRelation(relation.id, write.event.id, None if giving else since)
        ended.append(_moved(end, write, giving[0]) if giving else end)
    return ended


def _moved(end: EndedRelation, write: Write, memory_id: UUID) -> EndedRelation:
    """The end of a relation that a memory takes over: its id is the same on every retry."""
    moved_id = uuid5(write.event.id, f"moved:{write.event.seq}:{end.id}")
    ordinal = write.fact.source.message
    return replace(end, moved_id=moved_id, memory_id=memory_id, message_ordinal=ordinal)


def _is_other(change: Change) -> bool:
    """Tell if a change of a stored memory retires it, or gives it another text."""
    before, after = change.before, change.after
    if before is None or after is None or before.id != after.id:
        return False
    return after.state != "ACTIVE" or after.text != before.text
