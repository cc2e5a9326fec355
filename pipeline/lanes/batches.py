"""Batches as values, built from the row that a claim returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from pydantic import TypeAdapter

from pipeline.domain.events import AddOptions, Event
from pipeline.domain.graph.values import graph_types
from pipeline.domain.lanes import Activation, Batch, Override, gather_of
from pipeline.domain.local_times import at_offset
from pipeline.domain.messages import Message, Omission, Role, Source, SourcedMessage
from pipeline.domain.modes import Mode, budgets_of
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.row_values import value_of

log = structlog.get_logger()

OPTIONS = TypeAdapter(AddOptions)
_OVERRIDE = TypeAdapter(Override)


def batch_of(activation: Activation, row: Any) -> Batch | None:
    """Return the activation's batch; None if it has no event.

    A batch of rows that are no valid values is unreadable: an error here would come again with each
    claim of the lane.
    """
    if activation.batch_id is None or row.events is None:
        return None
    try:
        return _batch(activation, activation.batch_id, row)
    except (ValueError, TypeError, KeyError) as error:
        log.error("batch_unreadable", lane_id=str(activation.lane_id), exc_info=error)
        return _unreadable(activation, activation.batch_id, row)


def _batch(activation: Activation, batch_id: UUID, row: Any) -> Batch:
    """The batch of a row. Errors: ValueError, TypeError or KeyError for values that are invalid."""
    project = row.project or {}
    events = [
        _event(position, value, project.get("instructions"))
        for position, value in enumerate(row.events)
    ]
    options = events[0].options
    return value_of(
        Batch,
        row,
        id=batch_id,
        scope=activation.scope,
        events=events,
        context=[
            Message(Role(value["role"]), value["content"], value["name"])
            for value in row.context or ()
        ],
        outputs=row.outputs or {},
        override=_OVERRIDE.validate_python(row.override or {}),
        mode=options.mode or Mode(project.get("mode") or Mode.CONSOLIDATE),
        budgets=budgets_of(project.get("budget")),
        payer=ProjectId(UUID(project["id"])) if project else None,
        gather=gather_of(project.get("gather")),
        fence=activation.fence,
        graph_types=graph_types(project.get("graph_types")),
        attributes=project.get("attributes") or {},
        graph=project.get("enable_graph") if options.graph is None else options.graph,
        unreadable=False,
    )


def _unreadable(activation: Activation, batch_id: UUID, row: Any) -> Batch:
    """The batch with the numbers of its events alone."""
    events = [
        Event(id=UUID(value["id"]), seq=value["seq"], options=AddOptions(), messages=())
        for value in row.events
    ]
    return Batch(
        id=batch_id,
        scope=activation.scope,
        events=events,
        context=(),
        outputs=row.outputs or {},
        age_s=row.age_s,
        started_s=row.started_s,
        fence=activation.fence,
        unreadable=True,
    )


def omission_rows(omitted: Iterable[Omission]) -> list[dict[str, Any]]:
    """Return the omitted parts of a message as they are stored and shown."""
    return [{"part": part.part, "type": part.kind, "reason": part.reason} for part in omitted]


def _event(position: int, value: dict[str, Any], project: Mapping[str, Any] | None) -> Event:
    """Build an event from JSON. Options that it leaves open come from the project."""
    options = OPTIONS.validate_python(value["options"])
    options = replace(options, instructions=options.instructions.or_else(project or {}))
    return Event(
        id=UUID(value["id"]),
        seq=value["seq"],
        replays=value["replays"],
        traceparent=value["traceparent"],
        options=options,
        messages=[
            SourcedMessage(Source(position, ordinal), message, said_at)
            for ordinal, (message, said_at) in enumerate(_messages(value, options))
        ],
    )


def _messages(value: dict[str, Any], options: AddOptions) -> list[tuple[Message, datetime]]:
    """The messages of an event and their times; those of a dry run are among its options."""
    if options.dry_run is not None:
        said_at = options.dry_run.said_at or datetime.fromisoformat(value["created_at"])
        local = at_offset(said_at, options.utc_offset)
        return [(message, local) for message in options.dry_run.messages]
    return [
        (
            Message(Role(m["role"]), m["content"], m["name"]),
            at_offset(datetime.fromisoformat(m["said_at"]), options.utc_offset),
        )
        for m in value["messages"] or ()
    ]
