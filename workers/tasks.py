"""One task a stage, all alike: parse the hint, run the stage, publish the next hint."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from celery import Celery

from pipeline.domain import StageName
from pipeline.ledger.lanes import Wake
from pipeline.ports import Dispatcher
from workers.app import task_name
from workers.runtime import Runtime


def register(app: Celery, runtime: Runtime, dispatcher: Dispatcher) -> None:
    for stage in StageName:
        app.task(_task(stage, runtime, dispatcher), name=task_name(stage))


def _task(stage: StageName, runtime: Runtime, dispatcher: Dispatcher) -> Callable[[str, int], None]:
    def run(lane_id: str, fence: int) -> None:
        following = runtime.run_stage(Wake(UUID(lane_id), fence, stage))
        if following is not None:
            dispatcher.kick(following.lane_id, following.fence, following.stage)

    return run
