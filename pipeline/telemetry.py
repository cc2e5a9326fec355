"""Logs and metrics. Logs are JSON lines: a constant event name and fields, never a user's text."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from functools import partial
from itertools import product
from typing import Any

import structlog
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    values,
)
from prometheus_client.multiprocess import MultiProcessCollector
from structlog.typing import EventDict

from pipeline.domain.events import FailureCode, StageName, Status
from pipeline.domain.modes import Mode

# Variables of the Prometheus client, and of ours beside it, that a supervisor of processes sets.
SHARED_DIR, PROCESS_NAME = "PROMETHEUS_MULTIPROC_DIR", "PROMETHEUS_MULTIPROC_NAME"

# The client names the files of a process by its pid. With a name, a restarted process goes on in
# the files of the one before: their number, and the time to merge them, do not grow.
if SHARED_DIR in os.environ and (name := os.environ.get(PROCESS_NAME)):  # noqa: TID251
    named = partial(str, name)
    values.ValueClass = values.MultiProcessValue(named)  # type: ignore[no-untyped-call]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
# Durations, and values of which the newest of all processes counts.
seconds = partial(Histogram, buckets=SECONDS)
latest = partial(Gauge, multiprocess_mode="mostrecent")

events_accepted = Counter("memlane_events_accepted", "Events durably accepted.")
low_events_accepted = Counter(
    "memlane_low_events_accepted", "Events of low priority among the accepted ones."
)
adds_refused = Counter(
    "memlane_adds_refused", "Adds refused because of load, by limit: server or caller.", ["limit"]
)
events_ended = Counter("memlane_events_ended", "Ended events.", ["status", "code"])
events_by_mode = Counter(
    "memlane_events_by_mode",
    "Succeeded adds by mode; `cause` is budget if a budget lowered the mode, else request.",
    ["mode", "cause"],
)
events_replayed = Counter("memlane_events_replayed", "Events replayed by request.")
event_seconds = seconds("memlane_event_seconds", "Time from accept to the end of an event.")
stage_seconds = seconds("memlane_stage_seconds", "Duration of a stage run.", ["stage"])
stage_errors = Counter(
    "memlane_stage_errors", "Stage runs that failed.", ["stage", "code", "outcome"]
)
model_calls = Counter("memlane_model_calls", "Calls to a model.", ["model", "stage"])
model_tokens = Counter("memlane_model_tokens", "Tokens of model calls.", ["model", "kind"])
model_seconds = seconds(
    "memlane_model_seconds", "Duration of a model request, retries included.", ["model", "task"]
)
model_errors = Counter("memlane_model_errors", "Failed model requests.", ["model", "code"])
embedder_seconds = seconds("memlane_embedder_seconds", "Duration of an embedder call.", ["model"])
embedder_errors = Counter("memlane_embedder_errors", "Failed embedder calls.", ["model", "code"])
search_seconds = seconds("memlane_search_seconds", "Duration of a search.")
searches_without_vectors = Counter(
    "memlane_searches_without_vectors",
    "Searches that the vector store did not answer, wholly or in part: ranked by words only.",
)
http_seconds = seconds(
    "memlane_http_seconds",
    "Time to first byte of a response, by route template.",
    ["method", "route"],
)
http_answers = Counter(
    "memlane_http_answers",
    "Responses, by route template and status.",
    ["method", "route", "status"],
)
loop_blocked_seconds = seconds(
    "memlane_loop_blocked_seconds",
    "Times for which an event loop was blocked, if longer than MEMLANE_LOOP_SLOW_S.",
)
fenced = Counter("memlane_fenced_writes", "Writes rejected by the fence of their lane.", ["stage"])
stale_hints = Counter("memlane_stale_hints", "Celery messages that found no work.")
webhook_seconds = seconds("memlane_webhook_seconds", "Duration of a webhook delivery attempt.")
webhook_tries = Counter(
    "memlane_webhook_tries", "Webhook delivery attempts, by resulting state.", ["state"]
)
kicks_failed = Counter("memlane_kicks_failed", "Hints that could not be published to the broker.")
swept = Counter(
    "memlane_lanes_swept", "Lanes that the sweeper queued again, by previous state.", ["was"]
)
sweeper_ticks = Counter(
    "memlane_sweeper_ticks", "Ticks of the sweeper, about one each `MEMLANE_SWEEP_S`."
)
vector_writes_failed = Counter(
    "memlane_vector_writes_failed",
    "Writes of a collection that the vector store did not answer. They are tried again.",
)
projections_repaired = Counter("memlane_projections_repaired", "Vectors written by the sweeper.")
graph_mirror_lag_seconds = latest(
    "memlane_graph_mirror_lag_seconds",
    "Age of the oldest change of the graph that the graph server does not have, in seconds.",
)
seals_refused = Counter(
    "memlane_seals_refused",
    "Rows, entries, lanes and projects that were not sealed because they fail verification.",
    ["what"],
)
seals_oldest_seconds = latest(
    "memlane_seals_oldest_seconds",
    "Age of the oldest row of a project with tamper evidence that is not sealed yet, in seconds.",
)
queue_oldest_seconds = latest(
    "memlane_queue_oldest_seconds", "Age of the oldest event that has not ended, in seconds."
)
queue_dispatchable_seconds = latest(
    "memlane_queue_dispatchable_seconds",
    "Age of the oldest event that waits for a worker, in seconds; 0 without one. Scale on it.",
)
queue_waiting_seconds = latest(
    "memlane_queue_waiting_seconds",
    "Age of the oldest event that waits for something else, in seconds, by the code of its wait.",
    ["reason"],
)
events_in_flight = latest("memlane_events_in_flight", "Events by status.", ["status"])

ledger_up = latest("memlane_ledger_up", "1 if the ledger answered the last query for its metrics.")
LEDGER_STATUSES = ("accepted", "succeeded", "failed", "cancelled", "pending", "running")
ledger_events = latest(
    "memlane_ledger_events", "Events in the ledger, by status; `accepted` is the total.", ["status"]
)
ledger_balanced = latest(
    "memlane_ledger_balanced", "1 if accepted = succeeded + failed + cancelled + pending + running."
)


def declare() -> None:
    """Create every series whose labels are known in advance, with the value 0.

    Otherwise a series appears with its first error, and an alert on its increase misses that error.
    """
    for stage in StageName:
        fenced.labels(stage)
        stage_seconds.labels(stage)
    for was in ("QUEUED", "RUNNING", "WAITING"):
        swept.labels(was)
    for what in ("row", "entry", "lane", "project"):
        seals_refused.labels(what)
    adds_refused.labels("server")
    adds_refused.labels("caller")
    for state in ("DELIVERED", "PENDING", "DEAD", "DROPPED"):
        webhook_tries.labels(state)
    events_ended.labels(Status.SUCCEEDED, "")
    for mode, cause in product(Mode, ("request", "budget")):
        events_by_mode.labels(mode, cause)
    for code in FailureCode:
        ended = Status.CANCELLED if code is FailureCode.CANCELLED else Status.FAILED
        events_ended.labels(ended, code)
        for stage, outcome in product(StageName, ("wait", "split", "fail")):
            stage_errors.labels(stage, code, outcome)


declare()

# Loggers that at INFO repeat our own log lines, or log request URLs.
QUIET = (
    *("httpx", "httpcore", "LiteLLM", "celery.worker.strategy", "celery.apps.worker", "kombu"),
    *("pipeline.ledger.engine", "pipeline.ledger.fair_pool", "sqlalchemy.pool"),
)
# Fields that open each line, in this order.
FIRST_FIELDS = ("timestamp", "level", "process", "event")
# Logs the message of a task's exception, which may contain user text.
SILENT = ("celery.app.trace",)


def configure_logs(level: str, *, process: str) -> None:
    """Send logs as one JSON object for each line to stderr, from our loggers and all libraries.

    `level`: minimum level of our lines; libraries write none below INFO. `process`: value of the
    field `process` in every line.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        lambda _, __, fields: {"process": process, **fields},
    ]
    structlog.configure(
        processors=[
            *shared,
            frames_only,
            in_order,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                without_arguments,
                frames_only,
                in_order,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.root.handlers = [handler]
    # Our lines are written by structlog. Those of libraries quote queries and bodies at DEBUG.
    logging.root.setLevel(max(logging.INFO, logging.getLevelNamesMapping()[level.upper()]))
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def in_order(_: Any, __: str, fields: EventDict) -> EventDict:
    """Put time, level, process and event first, for people who read the lines."""
    first = {name: fields[name] for name in FIRST_FIELDS if name in fields}
    return {**first, **fields}


def without_arguments(_: Any, __: str, fields: EventDict) -> EventDict:
    """Cut a line of asyncio before the task or the arguments of the callback, which it quotes."""
    if fields.get("logger") == "asyncio":
        fields["event"] = str(fields["event"]).partition("\n")[0].partition("(")[0].rstrip()
    return fields


def frames_only(_: Any, __: str, fields: EventDict) -> EventDict:
    """Replace an exception by its type and stack frames, and those of its causes.

    Its message is dropped, because it may contain user text.
    """
    error = sys.exc_info()[1] if (given := fields.pop("exc_info", None)) is True else given
    error = error[1] if isinstance(error, tuple) else error
    chain = []
    while isinstance(error, BaseException):
        frames = traceback.extract_tb(error.__traceback__)
        places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        chain.append({"error": type(error).__name__, "frames": places})
        error = error.__cause__ or error.__context__
    if chain:
        fields["exception"] = chain
    return fields


def exposition() -> tuple[bytes, str]:
    """The metrics in Prometheus' text format, and their content type.

    Includes all processes that share PROMETHEUS_MULTIPROC_DIR, which the local stack sets; without
    it, this process only.
    """
    registry = REGISTRY
    if SHARED_DIR in os.environ:  # noqa: TID251  the client library's variable
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry), CONTENT_TYPE_LATEST
