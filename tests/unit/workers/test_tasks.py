"""Celery messages of a worker: valid hints, those of other releases, and the next hint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import UUID

import pytest
from pydantic import SecretStr

from pipeline.domain.events import StageName
from pipeline.domain.lanes import Hint
from pipeline.settings import Settings
from workers.app import make_app, task_name
from workers.dispatch import BackgroundDispatcher
from workers.fair_queues import QUEUES, is_low, of_priority
from workers.runtime import Runtime
from workers.tasks import read_hint, register

LANE = "0d865521-65c9-4481-9813-7ad1362689c8"
NEXT = Hint(UUID(LANE), 4, StageName.RETRIEVE)


def test_a_hint_says_a_lane_and_a_fence() -> None:
    hint = read_hint(StageName.APPLY, LANE, 7)
    assert hint == Hint(UUID(LANE), 7, StageName.APPLY)


@pytest.mark.parametrize(
    "arguments", [(), (LANE,), (7, LANE), ("maya", 7), (LANE, "7"), (LANE, 7, "more"), (LANE, None)]
)
def test_what_says_anything_else_is_no_hint(arguments: tuple[Any, ...]) -> None:
    assert read_hint(StageName.APPLY, *arguments) is None


def test_a_hint_with_names_of_a_later_release_is_no_hint() -> None:
    assert read_hint(StageName.APPLY, LANE, 7, tier="light") is None


@dataclass
class Worker:
    """Runtime and dispatcher in one: records the stages run and the hints sent."""

    following: Hint | None
    queue: str | None = None
    ran: list[Hint] = field(default_factory=list)
    hints: list[tuple[Hint, str]] = field(default_factory=list)

    def begin(self, hint: Hint, then: Callable[[Hint], None]) -> None:
        self.ran.append(hint)
        if self.following is not None:
            then(self.following)

    def queue_for(self, following: Hint, queue: str) -> str:
        return self.queue or of_priority(queue, low=following.low)

    def kick(self, hint: Hint, queue: str) -> None:
        self.hints.append((hint, queue))


def deliver(worker: Worker, queue: str) -> None:
    app = make_app(Settings(broker_url=SecretStr("redis://127.0.0.1:1/0")))
    register(app, cast("Runtime", worker), cast("BackgroundDispatcher", worker))
    task = app.tasks[task_name(StageName.EXTRACT)]
    task.apply(args=(LANE, 3), routing_key=queue, throw=True)


@pytest.mark.parametrize("queue", QUEUES)
def test_the_next_hint_stands_in_the_queue_this_one_came_from(queue: str) -> None:
    worker = Worker(replace(NEXT, low=is_low(queue)))
    deliver(worker, queue)
    assert worker.ran == [Hint(UUID(LANE), 3, StageName.EXTRACT)]
    assert worker.ran[0].low == is_low(queue)
    assert worker.hints == [(NEXT, queue)]


def test_the_next_hint_stands_in_the_queue_of_its_projects_present_load() -> None:
    worker = Worker(NEXT, queue="mem.lane.100")
    deliver(worker, "mem.lane")
    assert worker.hints == [(NEXT, "mem.lane.100")]


def test_a_lane_that_rests_needs_no_hint() -> None:
    worker = Worker(None)
    deliver(worker, QUEUES[0])
    assert worker.hints == []
