"""One task a stage, all alike: parse the hint, run the stage, publish the next hint.

The next hint stands in the queue this one came from: which one is decided where lanes wake.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from celery import Celery, Task

from pipeline.domain import StageName, Wake
from workers.app import task_name
from workers.dispatch import BackgroundDispatcher
from workers.queues import rank_of
from workers.runtime import Runtime


def register(app: Celery, runtime: Runtime, dispatcher: BackgroundDispatcher) -> None:
    for stage in StageName:
        app.task(_task(stage, runtime, dispatcher), name=task_name(stage), bind=True)


def _task(
    stage: StageName, runtime: Runtime, dispatcher: BackgroundDispatcher
) -> Callable[[Task, str, int], None]:
    def run(task: Task, lane_id: str, fence: int) -> None:
        queue = task.request.delivery_info["routing_key"]
        following = runtime.run_stage(Wake(UUID(lane_id), fence, stage), rank=rank_of(queue))
        if following is not None:
            dispatcher.kick(following, queue)

    return run
