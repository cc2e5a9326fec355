"""The tasks, one a stage and all alike: read the hint, begin its stage, publish the next hint.

Each stage that asks a language model has a task of its own. Retrieve and apply take a few
milliseconds and follow the stage before them in its task; each is claimed and committed alone.

The next hint stands in the queue this one came from: which one is decided where lanes wake.

A message may come from any release. One that this release cannot read is dropped with a log line:
the ledger knows what is due, and the sweeper publishes a hint of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import structlog
from celery import Celery, Task

from pipeline.domain.events import StageName
from pipeline.domain.lanes import Wake
from workers.app import task_name
from workers.dispatch import BackgroundDispatcher
from workers.runtime import Runtime

log = structlog.get_logger()


def register(app: Celery, runtime: Runtime, dispatcher: BackgroundDispatcher) -> None:
    for stage in StageName:
        run = _task(stage, runtime, dispatcher)
        app.task(run, name=task_name(stage), bind=True, shared=False)


def _task(
    stage: StageName, runtime: Runtime, dispatcher: BackgroundDispatcher
) -> Callable[..., None]:
    def run(task: Task, *arguments: Any, **more: Any) -> None:
        if (wake := read_hint(stage, *arguments, **more)) is None:
            log.warning("hint_dropped", task=task_name(stage))
            return
        queue = task.request.delivery_info["routing_key"]
        runtime.begin(wake, lambda following: dispatcher.kick(following, queue))

    return run


def read_hint(stage: StageName, *arguments: Any, **more: Any) -> Wake | None:
    """The hint of a message's arguments, `(lane id, fence)`; None where they say anything else."""
    match arguments:
        case (str(lane_id), int(fence)) if not more:
            try:
                return Wake(UUID(lane_id), fence, stage)
            except ValueError:
                return None
        case _:
            return None
