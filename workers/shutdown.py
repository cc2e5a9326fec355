"""Shutdown of a worker on SIGTERM, without losing a stage or waiting for a lease.

1. Celery handles the signal: it takes no more hints, and sends `worker_shutting_down`.
2. Running stages have MEMLANE_STOP_S seconds to end. Then they are cancelled, and each one releases
   its lane, so that another worker continues without waiting for the lease to expire.
3. Once no stage runs, the last hints are published and the connections are closed.

After SIGKILL nothing is lost either: leases expire, and the sweeper publishes new hints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from celery.signals import worker_shutting_down

from pipeline.watchdog import Watchdog
from workers.dispatch import BackgroundDispatcher
from workers.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The parts of a worker process that have to stop, in order. `stop_s`: see step 2."""

    runtime: Runtime
    watchdog: Watchdog
    dispatcher: BackgroundDispatcher
    stop_s: float

    def listen(self) -> None:
        """Limit the time of the running stages once Celery has the signal."""
        # A strong reference: otherwise Celery would forget the bound method at once.
        worker_shutting_down.connect(self._limit_stages, weak=False)

    def _limit_stages(self, **_: Any) -> None:
        self.runtime.stop_within(self.stop_s)

    def finish(self) -> None:
        """Wait for the running stages, then close everything; Celery takes no more hints."""
        self.runtime.finish()
        self.watchdog.close()
        self.dispatcher.close()
        self.runtime.close()
