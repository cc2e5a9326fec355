"""Shutdown of a worker: a time limit for its stages from the signal on, then an orderly end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from celery.signals import worker_shutting_down

from workers.shutdown import Shutdown


class Part:
    """A part of the process that records its calls."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self._name, self._calls = name, calls

    def __getattr__(self, method: str) -> Callable[..., None]:
        return lambda *given: self._calls.append(" ".join([self._name, method, *map(str, given)]))


def shutdown(calls: list[str]) -> Shutdown:
    runtime, watchdog, dispatcher = (
        cast("Any", Part(name, calls)) for name in ("runtime", "watchdog", "dispatcher")
    )
    return Shutdown(runtime, watchdog, dispatcher, stop_s=7.5)


def test_the_signal_limits_the_time_of_running_stages() -> None:
    calls: list[str] = []
    receivers = list(worker_shutting_down.receivers)
    try:
        shutdown(calls).listen()
        worker_shutting_down.send(sender="a worker", sig="TERM", how="Warm", exitcode=0)
    finally:
        worker_shutting_down.receivers[:] = receivers
    assert calls == ["runtime stop_within 7.5"]


def test_the_end_waits_for_the_stages_and_publishes_their_hints_before_it_closes_the_loop() -> None:
    calls: list[str] = []
    shutdown(calls).finish()
    assert calls == ["runtime finish", "watchdog close", "dispatcher close", "runtime close"]
