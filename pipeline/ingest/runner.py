"""Run stages: the only code that drives the lane state machine, from accepted to settled.

    claim ─► stage ─► commit: output, effects and the lane's next stage ─► the next stage's hint
               │                    └─ a quick next stage: the lane stays, and it runs right away
               └─ a named way out: wait, split, fail, retrieve again (see outcomes.py)

There are two more ways out. The lane is lost: a newer activation has it, and nothing is written.
The lane is handed back: this process has to stop, or it cannot reach the ledger.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from pipeline import telemetry
from pipeline.domain.errors import (
    LaneLost,
    MovedOn,
    Outdated,
    PermanentError,
    PoisonCrash,
    StageError,
    TransientError,
)
from pipeline.domain.events import FailureCode, StageName
from pipeline.domain.lanes import Activation, Batch, Hint
from pipeline.domain.usage import FailedTry, Usage
from pipeline.ingest import outcomes, traces
from pipeline.ingest.gathering import can_gather, runs_now
from pipeline.ingest.services import Leases, Services
from pipeline.ingest.stages import Finished
from pipeline.ingest.steps import follows_at_once, perform
from pipeline.lanes.effects import MemoryEffects
from pipeline.lanes.store import SHARED_ATTEMPTS
from pipeline.ledger.failures import LedgerUnavailable, StatementRefused
from pipeline.models.circuit_breaker import on_behalf_of

log = structlog.get_logger()

# Codes of runs whose output was not used, in addition to those of failures.
LANE_LOST, MOVED_ON = "LANE_LOST", "MOVED_ON"
UNREADABLE = "Its stored options or messages are no valid values."
# Maximum number of runs of a stage while a person changes the memories that it reads.
MOST_TRIES = 5


@dataclass(slots=True)
class Work:
    """The lane of this worker. Both values are replaced when the lane moves to its next stage.

    `one_stage`: end the activation after this stage, even if the next one could follow at once.
    """

    activation: Activation
    batch: Batch | None
    one_stage: bool


async def run_stage(
    hint: Hint, *, owner: UUID, services: Services, leases: Leases, one_stage: bool = False
) -> Hint | None:
    """Run one stage of a lane, if the hint is still valid, and the quick stages after it.

    `one_stage`: without the stages after it. Returns the next hint, if there is one.

    Raises no error of normal operation: each way out is a state in the ledger.
    """
    lanes = services.ledger.lanes
    claimed = await lanes.claim(hint, owner)
    if claimed is None:
        telemetry.stale_hints.inc()
        return None
    work = Work(*claimed, one_stage)
    with leases.keep_renewed(work.activation):
        try:
            return await _run(work, services, leases)
        except LaneLost:
            telemetry.fenced.labels(work.activation.stage).inc()
            log.warning("lane_lost", lane_id=str(hint.lane_id), stage=work.activation.stage)
            # A stage that blocked the loop counts as a crash: it would block the next worker, too.
            if leases.blocked():
                log.warning("attempt_counted", lane_id=str(hint.lane_id), reason="loop_blocked")
                return None
            with suppress(LedgerUnavailable):
                await lanes.uncount_attempt(work.activation)
            return None
        except asyncio.CancelledError:
            log.info("lane_handed_back", lane_id=str(hint.lane_id), stage=work.activation.stage)
            return await lanes.release_lane(work.activation)
        except LedgerUnavailable as error:
            if error.reached and not error.out_of_time:
                raise
            log.warning("ledger_lost", lane_id=str(hint.lane_id), stage=work.activation.stage)
            return await outcomes.hand_back_when_reachable(work.activation, services)


async def _run(work: Work, services: Services, leases: Leases) -> Hint | None:
    """Run the claimed stage; a suspect's alone. A claim without a batch only moves the lane on."""
    lanes, activation, batch = services.ledger.lanes, work.activation, work.batch
    if batch is None:
        # Without a batch_id, all queued events were cancelled. With one, the batch was returned to
        # the queue: the queued events must not be skipped.
        cancelled = activation.batch_id is None
        return await (lanes.end_cancelled(activation) if cancelled else lanes.restart(activation))
    if activation.counted and can_gather(batch):
        gathered = await _gathered(activation, batch, services)
        if not isinstance(gathered, Batch):
            return gathered
        batch = gathered
    event_ids = [str(event.id) for event in batch.events]
    with structlog.contextvars.bound_contextvars(
        lane_id=str(activation.lane_id), event_ids=event_ids
    ):
        if activation.counted or batch.unreadable:
            return await _stages(work, batch, services)
        # A suspect: its earlier attempts ended with a crash of their workers.
        if outcomes.divisible(batch):
            return await lanes.split_suspect(activation, batch)
        # Crashes of workers while this lane was the only suspect that they processed.
        crashes = activation.earlier_attempts - SHARED_ATTEMPTS
        if crashes >= services.max_attempts:
            died = (
                f"{crashes} workers died or stood still in stage {activation.stage}, each with no"
                " other suspect."
            )
            return await outcomes.fail(activation, batch, PoisonCrash.code, died, services)
        log.warning("lane_quarantined", stage=activation.stage)
        work.one_stage = True
        async with leases.alone(crashes):
            work.activation = await lanes.count_suspect_attempt(activation)
            return await _stages(work, batch, services)


async def _gathered(
    activation: Activation, batch: Batch, services: Services
) -> Hint | Batch | None:
    """The part of the batch that runs now, or the lane's next hint while all of it waits."""
    assert batch.gather is not None  # see can_gather
    lanes, events = services.ledger.lanes, batch.events
    more_behind = activation.accepted_seq > events[-1].seq
    number = runs_now(batch, batch.gather, more_behind=more_behind)
    if number == 0:
        delay_s = batch.gather.seconds - batch.age_s
        log.info("events_gather", lane_id=str(activation.lane_id), events=len(events))
        return await lanes.gather(activation, batch, delay_s=delay_s)
    return batch if number == len(events) else await lanes.shorten_batch(activation, batch, number)


async def _stages(work: Work, batch: Batch, services: Services) -> Hint | None:
    """Run the stage, and those that follow at once."""
    if batch.unreadable:
        return await outcomes.fail(
            work.activation, batch, FailureCode.INTERNAL, UNREADABLE, services
        )
    while True:
        activation = work.activation
        with structlog.contextvars.bound_contextvars(stage=activation.stage):
            try:
                with traces.stage(activation, batch):
                    result = await _stage(work, batch, services)
            except LaneLost:
                raise
            except Exception as error:  # noqa: BLE001  the stage boundary
                return await _way_out(error, activation, batch, services)
        if not isinstance(result, Batch):
            return result
        batch = result


async def _way_out(
    error: Exception, activation: Activation, batch: Batch, services: Services
) -> Hint | None:
    """Choose the way out for an error of a stage."""
    match error:
        case TransientError():
            return await outcomes.wait(activation, batch, error, services)
        case PermanentError():
            return await outcomes.fail(activation, batch, error.code, str(error), services)
        case LedgerUnavailable(reached=False):
            raise error
        case StatementRefused():
            return await outcomes.refused(activation, batch, error, services)
    log.error("stage_crashed", exc_info=error)
    code, detail = FailureCode.INTERNAL, type(error).__name__
    return await outcomes.fail(activation, batch, code, detail, services)


async def _stage(work: Work, batch: Batch, services: Services) -> Hint | Batch | None:
    """Run the stage and commit it. Returns the batch if the lane stays, else its next hint."""
    activation, lanes = work.activation, services.ledger.lanes
    if activation.stage in batch.outputs:  # a worker died after it saved the last stage
        ending = outcomes.success(batch)
        return await outcomes.settle(activation, batch, ending, services)
    started = time.perf_counter()
    for tries in range(MOST_TRIES):
        try:
            with on_behalf_of(batch.scope.project_id):
                finished = await perform(activation.stage, batch, services)
        except StageError as error:
            await _count_failed(activation, _failed(error.code, error.usage, started), services)
            raise
        except Outdated:
            log.info("decisions_outdated")
            return await lanes.retrieve_again(activation)
        await _count_failed(activation, finished.usage.failed, services)
        usage = replace(finished.usage, failed=())
        try:
            return await _commit(work, batch, finished, started, services)
        except LaneLost:
            await _count_failed(activation, _failed(LANE_LOST, usage, started), services)
            raise
        except MovedOn:
            await _count_failed(activation, _failed(MOVED_ON, usage, started), services)
            if tries + 1 == MOST_TRIES:
                raise
            log.info("stage_again")
    raise AssertionError  # the last try returns or raises


async def _commit(
    work: Work, batch: Batch, finished: Finished, started: float, services: Services
) -> Hint | Batch | None:
    """Commit the result of the stage; settling the batch is a commit of its own."""
    activation, lanes, next_stage = work.activation, services.ledger.lanes, finished.next_stage
    ms = (time.perf_counter() - started) * 1000
    run = {"output": finished.output, "usage": finished.usage, "ms": ms}
    quick = next_stage is not None and follows_at_once(next_stage, batch.options)
    stays = quick and not work.one_stage
    hint = None
    if next_stage is not None and stays:
        work.activation = await lanes.finish_and_keep(
            activation, next_stage, **run, effects=finished.effects
        )
    else:
        hint = await lanes.finish(activation, next_stage, **run, effects=finished.effects)
    if isinstance(finished.effects, MemoryEffects):
        traces.changes(batch.scope, finished.effects.changes)
    if finished.effects is not None and finished.effects.touched:
        services.projector.schedule(batch.scope, finished.effects.touched)
    _observe(activation.stage, ms, finished.usage)
    batch = replace(batch, outputs={**batch.outputs, activation.stage: finished.output})
    if stays:
        return batch
    if hint is not None:
        return replace(hint, at_once=quick)
    return await outcomes.settle(activation, batch, outcomes.success(batch), services)


def _failed(code: str, usage: Usage, started: float) -> list[FailedTry]:
    """The tries of a run whose output is not used: those of earlier models, and its own."""
    return [*usage.failed, FailedTry(code, usage, (time.perf_counter() - started) * 1000)]


async def _count_failed(
    activation: Activation, tries: Iterable[FailedTry], services: Services
) -> None:
    """Record the cost of tries whose answers are not used."""
    for failed in tries:
        if failed.usage.calls:
            await services.ledger.costs.add(activation, failed)
            _count_calls(activation.stage, failed.usage)


def _observe(stage: StageName, ms: float, usage: Usage) -> None:
    telemetry.stage_seconds.labels(stage).observe(ms / 1000)
    _count_calls(stage, usage)
    tokens = usage.prompt_tokens + usage.completion_tokens
    log.info("stage_finished", ms=round(ms, 1), calls=usage.calls, tokens=tokens)


def _count_calls(stage: StageName, usage: Usage) -> None:
    if usage.calls:
        telemetry.model_calls.labels(usage.model, stage).inc(usage.calls)
        telemetry.model_tokens.labels(usage.model, "prompt").inc(usage.prompt_tokens)
        telemetry.model_tokens.labels(usage.model, "completion").inc(usage.completion_tokens)
