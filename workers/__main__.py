"""One worker process: `python -m workers worker-1 [--ready-file PATH]`."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import structlog
from celery.platforms import SecurityWarning
from celery.signals import (
    setup_logging,
    task_unknown,
    worker_ready,
    worker_shutting_down,
)

from pipeline import bootstrap, settings, telemetry
from workers.app import make_app
from workers.dispatch import BackgroundDispatcher, CeleryDispatcher
from workers.queues import QUEUES
from workers.runtime import Runtime
from workers.tasks import register
from workers.watchdog import Watchdog

log = structlog.get_logger()


def main() -> None:
    parser = argparse.ArgumentParser(prog="workers", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--ready-file", type=Path)
    arguments = parser.parse_args()
    configured = settings.load()
    telemetry.configure_logs(configured.log_level, process=arguments.name)
    # Celery warns root of pickled messages; only JSON is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app = make_app(configured)
    runtime = Runtime(configured, arguments.name)
    publisher = CeleryDispatcher(app)
    dispatcher = BackgroundDispatcher(publisher)
    register(app, runtime, dispatcher)
    watchdog = Watchdog(
        runtime,
        publisher.backlog,
        most=configured.worker_concurrency,
        stuck_s=configured.stuck_s,
    )

    # Celery keeps weak references to receivers: these live as long as this frame.
    def keep_our_logging(**_: Any) -> None:
        """A receiver, any receiver, keeps Celery from setting up logging of its own."""

    def ready(**_: Any) -> None:
        log.info("worker_ready", llm=configured.llm.model, embedder=configured.embedder.model)
        bootstrap.spare_the_collector()
        warming = runtime.warm()
        watchdog.start()
        if arguments.ready_file:
            # A model that does not answer yet is no reason to count as not ready.
            warming.add_done_callback(lambda _: arguments.ready_file.touch())

    def stopping(**_: Any) -> None:
        """Celery takes no more hints."""
        runtime.stop_within(configured.stop_s)

    def unknown(name: str, **_: Any) -> None:
        """Celery has dropped it; the sweeper repeats what it was about."""
        log.warning("hint_dropped", task=name)

    task_unknown.connect(unknown)
    setup_logging.connect(keep_our_logging)
    worker_ready.connect(ready)
    worker_shutting_down.connect(stopping)
    app.Worker(
        hostname=f"{arguments.name}@%h",
        # A task only begins its stage: see workers.runtime.
        pool="solo",
        concurrency=1,
        queues=QUEUES,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    ).start()
    runtime.finish()
    watchdog.close()
    dispatcher.close()
    runtime.close()


if __name__ == "__main__":
    main()
