"""Celery tasks, one for each stage: read the hint, start its stage, publish the next hint.

Two more tasks, without a next hint, continue a run of the curator and make a summary.

Retrieve and apply take a few milliseconds, so they run in the task of the stage before them; each
is still claimed and committed on its own. The queue of the next hint follows the present number of
busy lanes of its project, and the present priority of the lane: see workers.busy_lanes.

A message may come from another release. If it cannot be read, it is dropped with a log line, and
the sweeper publishes a new hint from the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog
from celery import Celery, Task

from pipeline.curator.store import RunHint
from pipeline.domain.events import StageName
from pipeline.domain.lanes import Hint
from workers.app import CURATE, SUMMARIZE, task_name
from workers.dispatch import BackgroundDispatcher
from workers.fair_queues import is_low
from workers.runtime import Runtime

log = structlog.get_logger()


def register(app: Celery, runtime: Runtime, dispatcher: BackgroundDispatcher) -> None:
    """Register all tasks with the Celery app."""
    for stage in StageName:
        run = _task(stage, runtime, dispatcher)
        app.task(run, name=task_name(stage), bind=True, shared=False)

    def summarize(*arguments: Any, **more: Any) -> None:
        match arguments:
            case (str(lane_id),) if not more and (lane := _uuid(lane_id)) is not None:
                runtime.summarize(lane)
            case _:
                log.warning("hint_dropped", task=SUMMARIZE)

    def curate(*arguments: Any, **more: Any) -> None:
        if (hint := read_run(*arguments, **more)) is None:
            log.warning("hint_dropped", task=CURATE)
            return
        runtime.begin_run(hint)

    app.task(summarize, name=SUMMARIZE, shared=False)
    app.task(curate, name=CURATE, shared=False)


def _task(
    stage: StageName, runtime: Runtime, dispatcher: BackgroundDispatcher
) -> Callable[..., None]:
    """The task of a stage."""

    def run(task: Task, *arguments: Any, **more: Any) -> None:
        if (hint := read_hint(stage, *arguments, **more)) is None:
            log.warning("hint_dropped", task=task_name(stage))
            return
        queue = task.request.delivery_info["routing_key"]

        def then(following: Hint) -> None:
            dispatcher.kick(following, runtime.queue_for(following, queue))

        runtime.begin(replace(hint, low=is_low(queue)), then)

    return run


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def read_hint(stage: StageName, *arguments: Any, **more: Any) -> Hint | None:
    """The hint in a message's arguments, `(lane id, fence)`; None if they have another form."""
    match arguments:
        case (str(lane_id), int(fence)) if not more:
            lane = _uuid(lane_id)
            return None if lane is None else Hint(lane, fence, stage)
        case _:
            return None


def read_run(*arguments: Any, **more: Any) -> RunHint | None:
    """The hint in a message's arguments, `(run id, fence)`; None if they have another form."""
    hint = read_hint(StageName.EXTRACT, *arguments, **more)
    return RunHint(hint.lane_id, hint.fence) if hint else None
