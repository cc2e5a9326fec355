"""Responses about replays: status, differences and switch."""

from __future__ import annotations

from typing import Any

from api.memories.views import scope_ids
from pipeline.domain.events import Status
from pipeline.replays.diff import Difference, Edge, Edited, Remembered
from pipeline.replays.store import Shadow
from pipeline.replays.switch import Switched


def replay(row: Shadow) -> dict[str, Any]:
    """A replay and its progress. The counts of events are not available after a switch."""
    options, counts = row.options, row.counts
    return {
        "id": str(row.id),
        "status": status(row),
        **scope_ids(row.scope),
        "custom_instructions": options.custom_instructions,
        "llm_model": options.llm_model,
        "embedder_model": options.embedder_model,
        "answers": "recorded" if options.recorded else "fresh",
        "accepted": sum(counts.values()),
        "succeeded": counts[Status.SUCCEEDED],
        "failed": counts[Status.FAILED],
        "failures": row.failures,
        "in_flight": counts[Status.PENDING] + counts[Status.RUNNING],
        "behind": row.behind,
        "created_at": row.created_at,
        "switched_at": row.switched_at,
    }


def status(row: Shadow) -> str:
    """RUNNING, READY or SWITCHED."""
    if row.switched_at is not None:
        return "SWITCHED"
    return "READY" if row.done else "RUNNING"


def diff(row: Difference) -> dict[str, Any]:
    """The changes that a switch would make, and the edits that would be lost."""
    return {
        "counts": {
            "same": row.same,
            "changed": len(row.changed),
            "only_live": len(row.only_live),
            "only_replay": len(row.only_shadow),
            "relations_added": len(row.relations_added),
            "relations_removed": len(row.relations_removed),
            "edits_lost": len(row.lost),
        },
        "changed": [
            remembered(before) | {"becomes": remembered(after)} for before, after in row.changed
        ],
        "only_live": [remembered(item) for item in row.only_live],
        "only_replay": [remembered(item) for item in row.only_shadow],
        "relations_added": [edge(item) for item in row.relations_added],
        "relations_removed": [edge(item) for item in row.relations_removed],
        "edits_lost": [edited(item) for item in row.lost],
    }


def remembered(item: Remembered) -> dict[str, Any]:
    """A memory on one side of a diff."""
    return {
        "id": str(item.id),
        "memory": item.text,
        "event_id": str(item.event_id) if item.event_id else None,
        "message": item.message,
    }


def edge(item: Edge) -> dict[str, str]:
    """A relation on one side of a diff."""
    return {"source": item.source, "relationship": item.relation, "target": item.destination}


def edited(item: Edited) -> dict[str, Any]:
    """A person's edit that a switch would lose."""
    return remembered(item.memory) | {"edit": "DELETE" if item.deleted else "UPDATE"}


def switched(row: Shadow, done: Switched) -> dict[str, Any]:
    """The replay and the counts of its switch."""
    counts = {"removed": len(done.gone), "adopted": len(done.here), "kept": done.unchanged}
    return replay(row) | counts
