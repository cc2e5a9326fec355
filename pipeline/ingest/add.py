"""Add messages: build the event of an add, have it stored, and send the hint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID, uuid4

from pipeline import telemetry, tracing
from pipeline.domain.errors import Conflict, ProjectGone
from pipeline.domain.events import AddOptions, DryRun, Priority
from pipeline.domain.messages import Message
from pipeline.domain.scope import Scope
from pipeline.ingest.ports import IngestStores
from pipeline.lanes.accept import Add
from pipeline.ports import Dispatcher
from pipeline.text.tokens import tokens


async def add_messages(
    scope: Scope,
    messages: Sequence[Message],
    options: AddOptions,
    *,
    said_at: datetime | None,
    ledger: IngestStores,
    dispatcher: Dispatcher,
    key: str | None = None,
    dry_run: bool = False,
) -> UUID:
    """Store an add durably and return its event id.

    The hint to the workers is sent afterwards: losing it costs time, never the event. An add that
    is sent again with its idempotency `key` returns the first one's id and adds nothing. With
    `dry_run` the event computes its receipt, and writes nothing that a read can see.

    Errors: Conflict if the key was used for another add, or the project is being deleted;
    ProjectGone; Overloaded.
    """
    add = Add(
        event_id=uuid4(),
        scope=scope,
        messages=messages,
        options=options,
        tokens=estimated_tokens(messages),
        said_at=said_at,
        key=key,
        traceparent=tracing.current().traceparent,
    )
    if dry_run:
        rehearsal = DryRun(add.event_id, tuple(messages), said_at)
        add = replace(add, messages=(), options=replace(options, dry_run=rehearsal))
    accepted = await ledger.group_commit.accept(add)
    if not accepted.project_exists:
        raise ProjectGone("This API key is not valid: its project is deleted.")
    if accepted.project_ends:
        raise Conflict("This project is being deleted.")
    if not accepted.same_body:
        raise Conflict(f"This idempotency key was used for another add: event {accepted.event_id}.")
    telemetry.events_accepted.inc(int(accepted.is_new))
    telemetry.low_events_accepted.inc(int(accepted.is_new and options.priority is Priority.LOW))
    tracing.current().set({"memlane.event.id": str(accepted.event_id)})
    if accepted.hint is not None:
        dispatcher.kick(accepted.hint, scope.project_id)
    return accepted.event_id


def estimated_tokens(messages: Sequence[Message]) -> int:
    """Estimate the number of tokens of these messages, at least 1.

    The receipt has the exact number that the model reports.
    """
    return max(1, sum(tokens(message.content) for message in messages))
