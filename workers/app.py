"""The Celery app and its settings, each with its reason.

Those of one kind of broker are in redis_transport and amqp_transport.

Source of the figures: measurements with celery 5.7.0, kombu 5.7.0 and Redis 7.
"""

from __future__ import annotations

from collections.abc import Callable

from celery import Celery
from kombu.entity import Queue

from pipeline.domain.events import StageName
from pipeline.settings import Settings
from pipeline.startup import required
from workers import kombu_transport
from workers.fair_queues import QUEUES


def make_app(settings: Settings, low_fits: Callable[[], bool] = lambda: True) -> Celery:
    """Build the Celery app. `low_fits`: False while no stage of low priority may start.

    Errors: InvalidInput if MEMLANE_BROKER_URL is not set.
    """
    broker = required(settings.broker_url, "broker_url")
    app = Celery("memlane", broker=broker, amqp=kombu_transport.AMQP)
    app.conf.update(
        # The status is in the ledger; a result backend costs 29 to 63 % more CPU for each task.
        task_ignore_result=True,
        result_backend=None,
        # A worker takes a hint only when it can start its stage.
        worker_prefetch_multiplier=1,
        task_queues=[Queue(name, routing_key=name) for name in QUEUES],  # type: ignore[no-untyped-call]
        task_default_queue=QUEUES[0],
        task_create_missing_queues=False,
        task_serializer="json",
        accept_content=["json"],
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # One retry on a new connection; after that the sweeper publishes the hint.
        task_publish_retry_policy={
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0,
            "interval_max": 0,
        },
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_disable_rate_limits=True,
        worker_eta_task_limit=100,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
    )
    app.conf.update(kombu_transport.celery_settings(settings, low_fits))
    return app


# The Celery task of the curator.
CURATE = "memlane.curate"
# Name of the Celery task that makes a summary.
SUMMARIZE = "memlane.summarize"


def task_name(stage: StageName) -> str:
    """Name of the Celery task of a stage."""
    return f"memlane.{stage}"
