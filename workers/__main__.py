"""One worker process: `python -m workers worker-1 [--ready-file PATH] [--start-file PATH]`."""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import structlog
from celery.platforms import SecurityWarning
from celery.signals import setup_logging, task_unknown, worker_ready

from pipeline import bootstrap, collector, startup, telemetry
from pipeline.cpu_thread import share_gil
from pipeline.watchdog import Watchdog
from workers.app import make_app
from workers.dispatch import BackgroundDispatcher, CeleryDispatcher
from workers.fair_queues import QUEUES
from workers.probes import probes_of
from workers.runtime import Runtime
from workers.shutdown import Shutdown
from workers.tasks import register

log = structlog.get_logger()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="workers", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--ready-file", type=Path)
    parser.add_argument("--start-file", type=Path, help="the process waits until it exists")
    return parser.parse_args()


def _keep_our_logging(**_: Any) -> None:
    """Receiver of `setup_logging`: any receiver stops Celery from configuring logging."""


def _log_dropped(name: str, **_: Any) -> None:
    """Log an unknown message, which Celery drops; the sweeper publishes a new hint."""
    log.warning("hint_dropped", task=name)


def main() -> None:
    """Run one worker process until it is stopped by a signal."""
    arguments = _arguments()
    startup.wait_for(arguments.start_file)
    configured = startup.load()
    share_gil()
    telemetry.configure_logs(configured.log_level, process=arguments.name)
    bootstrap.trace(configured, process=arguments.name)
    # Celery warns about pickled messages if the user is root; only JSON is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    # Celery writes its own line about a shutdown there; ours is `worker_stopping`.
    vars(sys)["__stdout__"] = None
    runtime = Runtime(configured, arguments.name)
    app = make_app(configured, runtime.low_fits)
    publisher = CeleryDispatcher(app)
    dispatcher = BackgroundDispatcher(publisher)
    register(app, runtime, dispatcher)
    watchdog = Watchdog(
        runtime,
        publisher.backlog,
        most=configured.stages_at_once,
        stuck_s=configured.stuck_s,
    )

    warm = threading.Event()
    probes = probes_of(configured, warm.is_set)

    # Celery keeps only a weak reference to a receiver: this one lives as long as this frame.
    def ready(**_: Any) -> None:
        """Load the models and start the watchdog once Celery takes hints."""
        log.info("worker_ready", llm=configured.llm.model, embedder=configured.embedder.model)
        collector.spare_loaded()
        warming = runtime.warm()
        watchdog.start()
        warming.add_done_callback(lambda _: warm.set())
        if arguments.ready_file:
            # Ready even if loading failed: a model may be unavailable for now.
            warming.add_done_callback(lambda _: arguments.ready_file.touch())

    task_unknown.connect(_log_dropped)
    setup_logging.connect(_keep_our_logging)
    worker_ready.connect(ready)
    shutdown = Shutdown(runtime, watchdog, dispatcher, configured.stop_s)
    shutdown.listen()
    app.Worker(
        hostname=f"{arguments.name}@%h",
        # A task only starts its stage, in the loop's thread: see workers.runtime.
        pool="solo",
        concurrency=1,
        queues=QUEUES,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    ).start()
    shutdown.finish()
    if probes:
        probes.close()


if __name__ == "__main__":
    main()
