"""Responses to imports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.memories.views import scope_ids
from pipeline.ingest.imports import AcceptedImport, Counts


def accepted(events: Sequence[AcceptedImport]) -> dict[str, Any]:
    """The events of an import, with the number of their lines."""
    return {
        "events": [
            {"event_id": str(event.event_id), "lines": event.lines, **scope_ids(event.scope)}
            for event in events
        ]
    }


def counts(counts: Counts) -> dict[str, Any]:
    """The numbers of lines by type that an import would store, and that are stored already."""
    return {"dry_run": True, "new": dict(counts.new), "stored": dict(counts.stored)}
