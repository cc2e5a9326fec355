"""Use cases of events: cancel, replay, undo. Reads go directly to the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from uuid import UUID

import structlog

from pipeline import telemetry
from pipeline.domain.events import FailureCode, Instructions, Status
from pipeline.domain.filters import EventFilter
from pipeline.domain.lanes import Hint
from pipeline.domain.messages import Message
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import NO_VECTOR
from pipeline.events.cancel import Cancellation
from pipeline.events.dead_letters import DeadLetters, Edit, Replayed
from pipeline.events.undo import Undo, Undone
from pipeline.ingest.add import add_messages, estimated_tokens
from pipeline.ingest.ports import IngestStores
from pipeline.memories.service import project
from pipeline.ports import Dispatcher, Embedder
from pipeline.vector_index.index import A_PIECE, VectorIndex

log = structlog.get_logger()

# Maximum number of events per call: their lanes are locked together, for tens of milliseconds.
MOST_REPLAYS = 1_000


async def cancel(
    project_id: ProjectId, event_id: UUID, *, cancellation: Cancellation, dispatcher: Dispatcher
) -> None:
    """End an event that has had no effect yet; its lane continues with the next event.

    Errors: NotFound; Conflict if it is too late.
    """
    taken, hint = await cancellation.cancel(project_id, event_id)
    telemetry.events_ended.labels(Status.CANCELLED, FailureCode.CANCELLED).inc(int(taken))
    log.info("event_cancelled", event_id=str(event_id), again=not taken)
    _kick([hint] if hint else [], project_id, dispatcher)


async def replay(
    project_id: ProjectId,
    event_id: UUID,
    *,
    messages: Sequence[Message] = (),
    instructions: Mapping[str, str],
    dead_letters: DeadLetters,
    dispatcher: Dispatcher,
) -> None:
    """Retry an event that FAILED or was cancelled, with other messages or instructions if given.

    Errors: NotFound; Conflict for an event with another status.
    """
    edit = Edit(messages, estimated_tokens(messages) if messages else None, instructions)
    replayed = await dead_letters.replay(project_id, event_id, edit)
    _tell(replayed, project_id, dispatcher)


async def rehearse(
    project_id: ProjectId,
    event_id: UUID,
    *,
    messages: Sequence[Message] = (),
    instructions: Mapping[str, str],
    dead_letters: DeadLetters,
    ledger: IngestStores,
    dispatcher: Dispatcher,
) -> UUID:
    """Start the dry run of a replay, with the same changes. Returns the id of its own event.

    Errors: NotFound; Conflict for an event that cannot be replayed.
    """
    failed = await dead_letters.replayable(project_id, event_id)
    given = Instructions(**{**asdict(failed.options.instructions), **instructions})
    return await add_messages(
        failed.scope,
        messages or failed.messages,
        replace(failed.options, instructions=given),
        said_at=failed.said_at,
        ledger=ledger,
        dispatcher=dispatcher,
        dry_run=True,
    )


async def replay_graph(
    project_id: ProjectId, event_id: UUID, *, dead_letters: DeadLetters, dispatcher: Dispatcher
) -> None:
    """Build the graph of an event again, if only that failed or is PARTIAL.

    Errors: NotFound; Conflict for an event with another graph or none.
    """
    replayed = await dead_letters.replay_graph(project_id, event_id)
    _tell(replayed, project_id, dispatcher)


async def replay_all(
    project_id: ProjectId,
    wanted: EventFilter,
    *,
    dead_letters: DeadLetters,
    dispatcher: Dispatcher,
) -> Sequence[UUID]:
    """Replay the matching failed events of a project, oldest first.

    With `wanted.graph_status`, only their graph; those replayed before come last. Returns their
    ids, at most MOST_REPLAYS: call again while it returns that many.
    """
    replayed = await dead_letters.replay_all(project_id, wanted, limit=MOST_REPLAYS)
    _tell(replayed, project_id, dispatcher)
    return replayed.event_ids


async def undo(
    project_id: ProjectId,
    event_id: UUID,
    *,
    force: bool,
    store: Undo,
    embedder: Embedder,
    index: VectorIndex,
    key_id: UUID | None = None,
    dry_run: bool = False,
) -> Undone:
    """Undo the changes of an event to memories and graph; the history keeps both states.

    `key_id`: the caller's API key. A dry run returns the same, and changes nothing.

    Errors: NotFound; Conflict if it was already undone, has not ended, or if a memory was changed
    since; with `force`, such memories are skipped instead.
    """
    texts = await store.texts(project_id, event_id)
    embeds = texts and not dry_run
    vectors = await embedder.embed(texts) if embeds else [NO_VECTOR] * len(texts)
    undone = await store.undo(
        project_id,
        event_id,
        force=force,
        vectors=dict(zip(texts, vectors, strict=True)),
        embedder=embedder.name,
        key_id=key_id,
        dry_run=dry_run,
    )
    if dry_run:
        return undone
    log.info("event_undone", event_id=str(event_id), skipped=len(undone.skipped))
    # Writing thousands of vectors takes the store tens of seconds, and no read depends on it: all
    # compare with the ledger. The sweeper writes the rest.
    await project([*undone.gone, *undone.back][:A_PIECE], index, event_id=event_id)
    return undone


def _tell(replayed: Replayed, project_id: ProjectId, dispatcher: Dispatcher) -> None:
    telemetry.events_replayed.inc(len(replayed.event_ids))
    log.info("events_replayed", count=len(replayed.event_ids))
    _kick(replayed.hints, project_id, dispatcher)


def _kick(hints: Iterable[Hint], project_id: ProjectId, dispatcher: Dispatcher) -> None:
    for hint in hints:
        dispatcher.kick(hint, project_id)
