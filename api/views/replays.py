"""Responses about replays: status, differences and switch."""

from __future__ import annotations

from typing import Any

from api.views.memories import scope_ids
from pipeline.domain.events import Status
from pipeline.replays.diff import Difference, Edge, Edited, Remembered
from pipeline.replays.store import Shadow
from pipeline.replays.switch import Switched


def replay(found: Shadow) -> dict[str, Any]:
    """A replay and how far it is. Its books are gone once it was switched on."""
    wish, counts = found.wish, found.counts
    return {
        "id": str(found.id),
        "status": status(found),
        **scope_ids(found.scope),
        "custom_instructions": wish.custom_instructions,
        "llm_model": wish.llm_model,
        "embedder_model": wish.embedder_model,
        "answers": "recorded" if wish.recorded else "fresh",
        "accepted": sum(counts.values()),
        "succeeded": counts[Status.SUCCEEDED],
        "failed": counts[Status.FAILED],
        "failures": found.failures,
        "in_flight": counts[Status.PENDING] + counts[Status.RUNNING],
        "behind": found.behind,
        "created_at": found.created_at,
        "switched_at": found.switched_at,
    }


def status(found: Shadow) -> str:
    if found.switched_at is not None:
        return "SWITCHED"
    return "READY" if found.done else "RUNNING"


def diff(found: Difference) -> dict[str, Any]:
    """What a switch would change, and at last what it would lose."""
    return {
        "counts": {
            "same": found.same,
            "changed": len(found.changed),
            "only_live": len(found.only_live),
            "only_replay": len(found.only_shadow),
            "relations_added": len(found.relations_added),
            "relations_removed": len(found.relations_removed),
            "edits_lost": len(found.lost),
        },
        "changed": [
            remembered(before) | {"becomes": remembered(after)} for before, after in found.changed
        ],
        "only_live": [remembered(one) for one in found.only_live],
        "only_replay": [remembered(one) for one in found.only_shadow],
        "relations_added": [edge(one) for one in found.relations_added],
        "relations_removed": [edge(one) for one in found.relations_removed],
        "edits_lost": [edited(one) for one in found.lost],
    }


def remembered(one: Remembered) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "memory": one.text,
        "event_id": str(one.event_id) if one.event_id else None,
        "message": one.message,
    }


def edge(one: Edge) -> dict[str, str]:
    return {"source": one.source, "relationship": one.relation, "target": one.destination}


def edited(one: Edited) -> dict[str, Any]:
    return remembered(one.memory) | {"edit": "DELETE" if one.deleted else "UPDATE"}


def switched(found: Shadow, done: Switched) -> dict[str, Any]:
    counts = {"removed": len(done.gone), "adopted": len(done.here), "kept": done.kept}
    return replay(found) | counts
