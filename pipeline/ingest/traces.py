"""Spans of stages, in the traces of the events that they process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson

from pipeline import tracing
from pipeline.domain.facts import Outcome
from pipeline.domain.lanes import Activation, Batch
from pipeline.domain.scope import Scope
from pipeline.domain.writes import Change

# Operations of the GenAI conventions, by the outcome of a receipt line.
OPERATIONS = {
    Outcome.ADD: "create_memory",
    Outcome.UPDATE: "update_memory",
    Outcome.DELETE: "delete_memory",
}


@contextmanager
def stage(activation: Activation, batch: Batch) -> Iterator[tracing.TraceSpan]:
    """The span of a stage, in the trace of the batch's first event.

    The other events of the batch get a span of the same time in their traces. It links to the
    first one, under which the calls of the models stand.
    """
    name = f"memlane {activation.stage}"
    attributes = {
        "memlane.stage": activation.stage.value,
        "memlane.lane.id": str(activation.lane_id),
        "memlane.batch.id": str(batch.id),
        "memlane.batch.events": len(batch.events),
        "gen_ai.memory.store.id": str(batch.scope.project_id),
    }
    first, *others = batch.events
    linked = {str(event.id): event.traceparent for event in others if event.traceparent}
    started_ns = time.time_ns()
    with tracing.span(
        name,
        {**attributes, "memlane.event.id": str(first.id)},
        parent=first.traceparent,
        links=list(linked.values()),
    ) as span:
        try:
            yield span
        finally:
            for event_id, parent in linked.items():
                tracing.record(
                    name,
                    {**attributes, "memlane.event.id": event_id},
                    started_ns=started_ns,
                    ended_ns=time.time_ns(),
                    parent=parent,
                    links=[span.traceparent or ""],
                )


def changes(scope: Scope, changed: Sequence[Change]) -> None:
    """Record a span for each change of a memory, below the stage that has committed it."""
    for change in changed:
        operation = OPERATIONS.get(change.outcome)
        if operation and change.memory_id:
            attributes = {
                "gen_ai.operation.name": operation,
                "gen_ai.memory.store.id": str(scope.project_id),
                "gen_ai.memory.record.id": str(change.memory_id),
            }
            with tracing.span(operation, attributes) as span:
                # The memory as the conventions describe it: a JSON list of records.
                record = {"id": str(change.memory_id), "content": change.text}
                span.text("gen_ai.memory.records", orjson.dumps([record]).decode())
