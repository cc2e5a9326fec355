"""From accepted to settled: the only code that drives the lane state machine.

    accept ──► run_stage(extract) ──► run_stage(retrieve) ──► … ──► settle
                     │ each: claim ─► stage ─► finish (one commit) ─► the next hint, or `at_once`

A stage that cannot go on has five ways out: it waits (somebody else's outage), its batch is halved
(one of several events breaks it), its event fails (with a code), its lane is lost (a younger
activation has it, and nothing is written), or it is handed back (this process has to stop).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import UUID

import structlog

from pipeline import telemetry
from pipeline.domain.errors import (
    DeadlinePassed,
    LaneLost,
    MovedOn,
    Outdated,
    PermanentError,
    PoisonCrash,
    StageError,
    StoreUnavailable,
    TransientError,
)
from pipeline.domain.events import FailureCode, StageName, Status
from pipeline.domain.lanes import Activation, Batch, Wake
from pipeline.domain.stage_outputs import Extracted, Related, read_if_any
from pipeline.domain.usage import Usage
from pipeline.ingest.ports import IngestStores
from pipeline.ingest.retry import wait_s
from pipeline.ingest.stages import Finished
from pipeline.ingest.stages.answer import answer
from pipeline.ingest.stages.apply import apply
from pipeline.ingest.stages.consolidate import consolidate
from pipeline.ingest.stages.extract import extract
from pipeline.ingest.stages.relate import relate
from pipeline.ingest.stages.retrieve import retrieve
from pipeline.lanes.store import SHARED_ATTEMPTS, Ending
from pipeline.ledger.failures import LEDGER_FAILURES, is_unavailable, sqlstate
from pipeline.models.circuit_breaker import LONGEST_CAUSE, on_behalf_of
from pipeline.models.override import ONLY_CONFIGURED, Chosen, Workshop, choose
from pipeline.ports import Embedder, MemoryModel
from pipeline.vector_index.index import VectorIndex
from pipeline.vector_index.projector import Projector

log = structlog.get_logger()


log = structlog.get_logger()


log = structlog.get_logger()


log = structlog.get_logger()


log = structlog.get_logger()


log = structlog.get_logger()


log = structlog.get_logger()


log = structlog.get_logger()


log = structlog.get_logger()


# How often a worker looks for a ledger it lost in the middle of a stage.
LOOK_EVERY_S = 0.5
# Codes of runs that were paid for and came to nothing, beside those of failures.
LANE_LOST, MOVED_ON = "LANE_LOST", "MOVED_ON"
# How often a stage is worked out anew because a person changes what it has just read.
MOST_TRIES = 5
# Classes of SQLSTATE: data, integrity constraint, program limit.
REFUSED_FOR_CONTENT = ("22", "23", "54")
# SQLSTATE of statement_timeout and of lock_timeout.
OUT_OF_TIME = ("57014", "55P03")
# Stages of a few milliseconds, which follow the stage before them in the same task: a message costs
# more than they do.
ASK_NO_MODEL = (StageName.RETRIEVE, StageName.APPLY)
NOTHING_FROM_THIS_EVENT = "These messages hold nothing worth remembering."


class Leases(Protocol):
    """Keeps the leases of what this process works on alive.

    Where the process has to stop, the work inside `hold` is cancelled. Inside `alone` is no other
    suspect of this process; the more `crashes` a suspect has caused, the later it gets its turn.
    """

    def hold(self, activation: Activation) -> AbstractContextManager[None]: ...

    def alone(self, crashes: int) -> AbstractAsyncContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class Services:
    """What the stages work with: built once a process, by bootstrap."""

    ledger: IngestStores
    model: MemoryModel
    embedder: Embedder
    index: VectorIndex
    projector: Projector
    turn_projector: Projector | None
    graph: bool
    neighbours: int
    max_attempts: int
    outage_budget_s: float
    workshop: Workshop = ONLY_CONFIGURED


async def run_stage(wake: Wake, *, owner: UUID, services: Services, leases: Leases) -> Wake | None:
    """Do one stage of one lane, if the hint still holds. Returns the next hint, if there is one.

    Nothing is raised for what can happen in operation: each way out is a state in the ledger.
    """
    lanes = services.ledger.lanes
    claimed = await lanes.claim(wake, owner)
    if claimed is None:
        telemetry.stale_hints.inc()
        return None
    activation, batch = claimed
    with leases.hold(activation):
        try:
            if _quarantined(activation, batch, services):
                log.warning("lane_quarantined", lane_id=str(wake.lane_id), stage=wake.stage)
                async with leases.alone(_crashes(activation)):
                    activation = await lanes.charge(activation)
                    return await _work(activation, batch, services)
            return await _work(activation, batch, services)
        except LaneLost:
            telemetry.fenced.labels(wake.stage).inc()
            log.warning("lane_lost", lane_id=str(wake.lane_id), stage=wake.stage)
            with suppress(*LEDGER_FAILURES):
                await lanes.absolve(activation)
            return None
        except asyncio.CancelledError:
            log.info("lane_handed_back", lane_id=str(wake.lane_id), stage=wake.stage)
            return await lanes.hand_back(activation)
        except LEDGER_FAILURES as error:
            if not (is_unavailable(error) or sqlstate(error) in OUT_OF_TIME):
                raise
            log.warning("ledger_lost", lane_id=str(wake.lane_id), stage=wake.stage)
            return await _hand_back_soon(activation, services)


async def _work(activation: Activation, batch: Batch | None, services: Services) -> Wake | None:
    if batch is not None and not activation.counted and _divisible(batch):
        return await services.ledger.lanes.take_apart(activation, batch)
    if batch is not None:
        return await _guarded(activation, batch, services)
    if activation.batch_id is None:  # all that was queued is cancelled
        return await services.ledger.lanes.rest(activation)
    # Its batch is: what is queued behind it must not be skipped.
    return await services.ledger.lanes.restart(activation)


async def _refused(
    activation: Activation, batch: Batch, error: Exception, services: Services
) -> Wake | None:
    """The ledger refused a statement: for what it holds, so that no retry helps, or for a state of
    the server that passes (a deadlock, a full disk, a standby).
    """
    state = sqlstate(error)
    log.error("ledger_refused", sqlstate=state, stage=activation.stage)
    detail = f"The ledger refused to store it (SQLSTATE {state})."
    if state[:2] in REFUSED_FOR_CONTENT:
        return await _fail(activation, batch, FailureCode.INTERNAL, detail, services)
    return await _wait(activation, batch, StoreUnavailable(detail), services)


async def _hand_back_soon(activation: Activation, services: Services) -> Wake | None:
    """Once the ledger is there again: however long that takes, this worker has not crashed."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        with suppress(*LEDGER_FAILURES):
            return await services.ledger.lanes.hand_back(activation)


async def _guarded(activation: Activation, batch: Batch, services: Services) -> Wake | None:
    """The stage boundary: whatever a stage raises becomes a named way out."""
    if activation.stage is StageName.EXTRACT and StageName.APPLY in batch.outputs:
        # It comes back with all it put out before: only its graph is to be done again.
        activation = replace(activation, stage=StageName.RELATE)
    with structlog.contextvars.bound_contextvars(
        lane_id=str(activation.lane_id),
        event_ids=[str(event.id) for event in batch.events],
        stage=activation.stage,
    ):
        try:
            _refuse_poison(activation, services.max_attempts)
            return await _advance(activation, batch, services)
        except LaneLost:
            raise
        except TransientError as error:
            return await _wait(activation, batch, error, services)
        except PermanentError as error:
            return await _fail(activation, batch, error.code, str(error), services)
        except LEDGER_FAILURES as error:
            if is_unavailable(error):
                raise
            return await _refused(activation, batch, error, services)
        except Exception as error:
            log.error("stage_crashed", exc_info=error)
            return await _fail(
                activation, batch, FailureCode.INTERNAL, type(error).__name__, services
            )


def _crashes(activation: Activation) -> int:
    """How many workers have died while this lane was the only suspect they worked on."""
    return activation.earlier_attempts - SHARED_ATTEMPTS


def _quarantined(activation: Activation, batch: Batch | None, services: Services) -> bool:
    """Whether the stage is worked on as the only suspect of this process: one event, or a batch
    that cannot be taken apart. One that has had all its attempts is only to be ended.
    """
    suspect = not activation.counted and _crashes(activation) < services.max_attempts
    return suspect and batch is not None and not _divisible(batch)


def _divisible(batch: Batch) -> bool:
    """Several events, whose memories are not stored yet."""
    stored = StageName.APPLY in batch.outputs
    return len(batch.events) > 1 and not stored and not batch.override.recorded


def _refuse_poison(activation: Activation, max_attempts: int) -> None:
    """Attempts are counted before the work, so this many workers died in it, and of nothing else
    that was suspect.
    """
    if not activation.counted and _crashes(activation) >= max_attempts:
        raise PoisonCrash(
            f"{max_attempts} workers died in stage {activation.stage}, each with no other suspect."
        )


async def _advance(activation: Activation, batch: Batch, services: Services) -> Wake | None:
    if activation.stage not in batch.outputs:  # else a worker died between the last stage and here
        try:
            wake, batch = await _finish(activation, batch, services)
        except Outdated:
            log.info("decisions_outdated")
            return await services.ledger.lanes.reconsider(activation)
        if wake is not None:
            quick = wake.stage in ASK_NO_MODEL or not batch.options.infer
            return replace(wake, at_once=quick)
    return await _settle(activation, batch, _success(batch), services)


async def _finish(
    activation: Activation, batch: Batch, services: Services
) -> tuple[Wake | None, Batch]:
    """Do the stage and commit what came of it. Returns the next hint, and the batch as it is."""
    started = time.perf_counter()
    tries = 0
    while True:
        try:
            with on_behalf_of(batch.scope.project_id):
                finished = await _perform(activation, batch, services)
        except StageError as error:
            seconds = time.perf_counter() - started
            await _count_paid(activation, error.code, error.usage, seconds, services)
            raise
        seconds = time.perf_counter() - started
        try:
            wake = await services.ledger.lanes.finish(
                activation,
                finished.next_stage,
                output=finished.output,
                usage=finished.usage,
                ms=seconds * 1000,
                effects=finished.effects,
            )
        except LaneLost:
            await _count_paid(activation, LANE_LOST, finished.usage, seconds, services)
            raise
        except MovedOn:
            await _count_paid(activation, MOVED_ON, finished.usage, seconds, services)
            tries += 1
            if tries >= MOST_TRIES:
                raise
            log.info("stage_again")
            continue
        if finished.effects is not None:
            services.projector.owe(batch.scope, finished.effects.touched)
        _observe(activation.stage, seconds, finished.usage)
        outputs = {**batch.outputs, activation.stage: finished.output}
        return wake, replace(batch, outputs=outputs)


async def _count_paid(
    activation: Activation, code: str, usage: Usage, seconds: float, services: Services
) -> None:
    """A try that came to nothing may have cost something all the same."""
    if usage.calls:
        await services.ledger.costs.add(activation, code, usage, ms=seconds * 1000)
        _count_calls(activation.stage, usage)


async def _perform(activation: Activation, batch: Batch, services: Services) -> Finished:
    configured = Chosen(services.model, services.embedder, services.index)
    chosen = choose(batch, configured, services.workshop, services.ledger)
    model, embedder, memories = chosen.model, chosen.embedder, services.ledger.memories
    match activation.stage:
        case StageName.EXTRACT if batch.options.question:
            return await answer(batch, batch.options.question, model=model, memories=memories)
        case StageName.EXTRACT:
            return await extract(batch, model=model)
        case StageName.RETRIEVE:
            return await retrieve(
                batch,
                embedder=embedder,
                index=chosen.index,
                memories=memories,
                limit=services.neighbours,
            )
        case StageName.CONSOLIDATE:
            return await consolidate(batch, model=model)
        case StageName.APPLY:
            return await apply(batch, embedder=embedder, memories=memories, graph=services.graph)
        case StageName.RELATE:
            graph = services.ledger.graph
            return await relate(batch, model=model, graph=graph, memories=memories)


def _success(batch: Batch) -> Ending:
    extracted = read_if_any(batch, Extracted)
    related = read_if_any(batch, Related)
    return Ending(
        Status.SUCCEEDED,
        graph_status=related.status if related else None,
        failure_detail=related.detail if related else None,
        note=extracted.note if extracted and extracted.note else NOTHING_FROM_THIS_EVENT,
    )


async def _settle(
    activation: Activation, batch: Batch, ending: Ending, services: Services
) -> Wake | None:
    wake, ages_s = await services.ledger.lanes.settle(activation, batch, ending)
    if services.turn_projector is not None and batch.options.infer:
        services.turn_projector.owe(batch.scope, [event.id for event in batch.events])
    for age_s in ages_s:
        telemetry.event_seconds.observe(age_s)
        telemetry.events_ended.labels(ending.status, ending.failure_code or "").inc()
    log.info("batch_settled", status=ending.status, code=ending.failure_code, events=len(ages_s))
    return wake


async def _wait(
    activation: Activation, batch: Batch, error: TransientError, services: Services
) -> Wake | None:
    left_s = services.outage_budget_s - batch.age_s
    if left_s < 0:
        detail = f"{error.code} for longer than {services.outage_budget_s:.0f} s: {error}"
        return await _fail(activation, batch, DeadlinePassed.code, detail, services)
    # Not past its deadline, whatever the other side asked for.
    delay_s = min(wait_s(activation.waits, error.retry_after_s), left_s + 1)
    cause = str(error)[:LONGEST_CAUSE]
    await services.ledger.lanes.wait(activation, error.code, delay_s=delay_s, cause=cause)
    telemetry.stage_errors.labels(activation.stage, error.code, "wait").inc()
    log.warning("stage_waits", code=error.code, delay_s=round(delay_s, 1), detail=str(error))
    return None


async def _fail(
    activation: Activation, batch: Batch, code: FailureCode, detail: str, services: Services
) -> Wake | None:
    """Halve a batch that holds several events; fail the one that stands alone. Once its memories
    are stored, only its graph has failed.
    """
    divisible = _divisible(batch)
    outcome = "split" if divisible else "fail"
    telemetry.stage_errors.labels(activation.stage, code, outcome).inc()
    log.warning("stage_failed", code=code, detail=detail, outcome=outcome)
    if divisible:
        return await services.ledger.lanes.split(activation, batch)
    ending = Ending(Status.FAILED, failure_code=code, failure_detail=detail)
    if activation.stage is StageName.RELATE:
        ending = replace(
            _success(batch), graph_status=Status.FAILED, failure_detail=f"{code}: {detail}"
        )
    return await _settle(activation, batch, ending, services)


def _observe(stage: StageName, seconds: float, usage: Usage) -> None:
    telemetry.stage_seconds.labels(stage).observe(seconds)
    _count_calls(stage, usage)
    log.info(
        "stage_finished",
        ms=round(seconds * 1000, 1),
        calls=usage.calls,
        tokens=usage.prompt_tokens + usage.completion_tokens,
    )


def _count_calls(stage: StageName, usage: Usage) -> None:
    if usage.calls:
        telemetry.model_calls.labels(usage.model, stage).inc(usage.calls)
        telemetry.model_tokens.labels(usage.model, "prompt").inc(usage.prompt_tokens)
        telemetry.model_tokens.labels(usage.model, "completion").inc(usage.completion_tokens)
