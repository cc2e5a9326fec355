"""Responses about replays: status, differences and switch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from typing_extensions import TypedDict

from api.http.shared_responses import Id, ScopeIdsJson, json_of, scope_ids
from pipeline.domain.events import Status
from pipeline.replays.diff import Difference, Edge, Edited, Remembered
from pipeline.replays.store import Shadow
from pipeline.replays.switch import Switched

ReplayStatus = Literal["RUNNING", "READY", "SWITCHED"]


class ReplayJson(ScopeIdsJson):
    """A replay and its progress. The counts of events are not available after a switch."""

    id: Id
    status: ReplayStatus
    custom_instructions: str | None
    llm_model: str | None
    embedder_model: str | None
    answers: Literal["recorded", "fresh"]
    accepted: int
    succeeded: int
    failed: int
    failures: Mapping[str, int]
    in_flight: int
    behind: int
    created_at: datetime
    switched_at: datetime | None


class SwitchedJson(ReplayJson):
    """A replay after its switch: numbers of memories that were removed, adopted and kept."""

    removed: int
    adopted: int
    kept: int


class RememberedJson(TypedDict):
    """A memory on one side of a diff."""

    id: Id
    memory: str
    event_id: Id | None
    message: int | None


class RewordedJson(RememberedJson):
    """A memory, and the one that replaces it."""

    becomes: RememberedJson


class LostEditJson(RememberedJson):
    """A person's edit that a switch would lose."""

    edit: Literal["UPDATE", "DELETE"]


class EdgeJson(TypedDict):
    """A relation on one side of a diff."""

    source: str
    relationship: str
    target: str


class DifferenceCountsJson(TypedDict):
    """Numbers of memories, relations and edits in a diff."""

    same: int
    changed: int
    only_live: int
    only_replay: int
    relations_added: int
    relations_removed: int
    edits_lost: int


class DifferenceJson(TypedDict):
    """The changes that a switch would make, and the edits that would be lost."""

    counts: DifferenceCountsJson
    changed: list[RewordedJson]
    only_live: list[RememberedJson]
    only_replay: list[RememberedJson]
    relations_added: list[EdgeJson]
    relations_removed: list[EdgeJson]
    edits_lost: list[LostEditJson]


def replay(row: Shadow) -> ReplayJson:
    """A replay and its progress."""
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


def status(row: Shadow) -> ReplayStatus:
    """RUNNING, READY or SWITCHED."""
    if row.switched_at is not None:
        return "SWITCHED"
    return "READY" if row.done else "RUNNING"


def diff(row: Difference) -> DifferenceJson:
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
            {**remembered(before), "becomes": remembered(after)} for before, after in row.changed
        ],
        "only_live": [remembered(item) for item in row.only_live],
        "only_replay": [remembered(item) for item in row.only_shadow],
        "relations_added": [edge(item) for item in row.relations_added],
        "relations_removed": [edge(item) for item in row.relations_removed],
        "edits_lost": [edited(item) for item in row.lost],
    }


def remembered(item: Remembered) -> RememberedJson:
    """A memory on one side of a diff."""
    return json_of(RememberedJson, item, memory=item.text)


def edge(item: Edge) -> EdgeJson:
    """A relation on one side of a diff."""
    return {"source": item.source, "relationship": item.relation, "target": item.destination}


def edited(item: Edited) -> LostEditJson:
    """A person's edit that a switch would lose."""
    return {**remembered(item.memory), "edit": "DELETE" if item.deleted else "UPDATE"}


def switched(row: Shadow, done: Switched) -> SwitchedJson:
    """The replay and the counts of its switch."""
    return {
        **replay(row),
        "removed": len(done.gone),
        "adopted": len(done.here),
        "kept": done.unchanged,
    }
