"""Responses to imports."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import TypedDict

from api.http.shared_responses import Id, ScopeIdsJson, scope_ids
from pipeline.ingest.imports import AcceptedImport, Counts


class ImportedScopeJson(ScopeIdsJson):
    """An event of an import, with its scope and number of lines."""

    event_id: Id
    lines: int


class ImportedJson(TypedDict):
    """The events of an import."""

    events: list[ImportedScopeJson]


class ImportCountsJson(TypedDict):
    """Numbers of lines by type that an import would store, and that are stored already."""

    dry_run: bool
    new: dict[str, int]
    stored: dict[str, int]


def accepted(events: Sequence[AcceptedImport]) -> ImportedJson:
    """The events of an import, with the number of their lines."""
    return {
        "events": [
            {"event_id": str(event.event_id), "lines": event.lines, **scope_ids(event.scope)}
            for event in events
        ]
    }


def counts(counts: Counts) -> ImportCountsJson:
    """The numbers of lines by type that an import would store, and that are stored already."""
    return {"dry_run": True, "new": dict(counts.new), "stored": dict(counts.stored)}
