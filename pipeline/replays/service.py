"""Replays of a whole scope: process its log again in a shadow, compare, switch on or discard."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog

from pipeline.domain.errors import Conflict, StoreUnavailable
from pipeline.domain.lanes import Hint
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import Vector
from pipeline.ports import Dispatcher, Embedder
from pipeline.replays.store import ReplayLimits, ReplayOptions, Shadow, Shadows
from pipeline.replays.switch import Switch, Switched
from pipeline.vector_index.index import AT_ONCE, VectorIndex

log = structlog.get_logger()

# Maximum number of events of a replay. One statement copies them, in about a second.
MOST_EVENTS = 20_000
TEXTS_AT_ONCE = 100


async def begin(
    scope: Scope,
    options: ReplayOptions,
    limits: ReplayLimits,
    *,
    shadows: Shadows,
    dispatcher: Dispatcher,
) -> Shadow:
    """Copy the scope's log into a shadow, where workers run it through the stages again.

    Errors: NotFound if there is nothing to replay; Conflict beyond a limit.
    """
    shadow_id, hint = await shadows.create(scope, options, limits)
    log.info("replay_begun", replay_id=str(shadow_id), recorded=options.recorded)
    _kick(hint, scope.project_id, dispatcher)
    return await shadows.get(scope.project_id, shadow_id)


async def switch(
    project_id: ProjectId,
    shadow_id: UUID,
    *,
    force: bool,
    shadows: Shadows,
    switches: Switch,
    embedder: Embedder,
    index: VectorIndex,
    dispatcher: Dispatcher,
) -> Switched:
    """Replace the scope's memories and relations with those of the replay, in one transaction.

    Errors: NotFound; Conflict, whose text names the reason. If the scope has new events since the
    copy, they are copied and replayed now; a later call succeeds once they have ended.
    """
    shadow = await shadows.get(project_id, shadow_id)
    texts = await switches.texts(shadow, embedder=embedder.name)
    vectors = await _embed(texts, embedder)
    forgotten = await shadows.vectors(shadow)
    switched = await switches.switch(
        project_id,
        shadow_id,
        force=force,
        vectors=dict(zip(texts, vectors, strict=True)),
        embedder=embedder.name,
    )
    _kick(switched.hint, project_id, dispatcher)
    if switched.behind:
        raise Conflict(
            f"{switched.behind} events came since this replay began and are being replayed now:"
            " ask again once they have ended."
        )
    log.info("replay_switched", replay_id=str(shadow_id), memories=len(switched.here))
    try:
        # Delete before writing: both sets may be in the same collection.
        for name, ids in forgotten.items():
            await index.forget(shadow.apart, name, ids)
        await _project([*switched.gone, *switched.here], index)
    except StoreUnavailable:
        # The ledger is committed and every read checks it: the index is updated later.
        log.warning("projection_pending", replay_id=str(shadow_id))
    return switched


async def discard(
    project_id: ProjectId, shadow_id: UUID, *, shadows: Shadows, index: VectorIndex
) -> None:
    """Delete the shadow with everything in it; the scope does not change.

    Errors: NotFound; Conflict if it was switched on; StoreUnavailable if its vectors cannot be
    deleted: the client repeats the call.
    """
    shadow = await shadows.get(project_id, shadow_id)
    if shadow.switched_at is not None:
        raise Conflict("This replay was switched on: what it remembers is the scope's now.")
    await shadows.stop(shadow)
    for name, ids in (await shadows.vectors(shadow)).items():
        await index.forget(shadow.apart, name, ids)
    await shadows.erase(shadow)
    log.info("replay_discarded", replay_id=str(shadow_id))


async def _embed(texts: Sequence[str], embedder: Embedder) -> list[Vector]:
    vectors: list[Vector] = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        vectors += await embedder.embed(texts[start : start + TEXTS_AT_ONCE])
    return vectors


async def _project(ids: Sequence[UUID], index: VectorIndex) -> None:
    for start in range(0, len(ids), AT_ONCE):
        await index.catch_up(ids[start : start + AT_ONCE])


def _kick(hint: Hint | None, project_id: ProjectId, dispatcher: Dispatcher) -> None:
    """Send the hint for the shadow's lane into the queue of the scope's project.

    In a queue of its own the shadow would count as an idle tenant and go first.
    """
    if hint is not None:
        dispatcher.kick(hint, project_id)
