"""Ways out of a stage: settle, wait, split, fail, or hand the lane back.

success ──────────► settle: the events end SUCCEEDED
TransientError ───► wait: the lane is due again after a delay, within the outage budget
PermanentError ───► fail: a batch of several events is halved, a single event ends FAILED
ledger refuses ───► fail for its content, else wait
ledger is down ───► hand the lane back once it answers again
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import structlog

from pipeline import telemetry
from pipeline.domain.errors import DeadlinePassed, SettingRejected, StoreUnavailable, TransientError
from pipeline.domain.events import FailureCode, StageName, Status
from pipeline.domain.lanes import Activation, Batch, Hint
from pipeline.domain.modes import Mode
from pipeline.domain.stage_outputs import Extracted, Related, mode_of, read_if_any
from pipeline.ingest.retry import wait_s
from pipeline.ingest.services import Services
from pipeline.lanes.store import Ending
from pipeline.ledger.failures import LedgerUnavailable, StatementRefused, sqlstate
from pipeline.models.circuit_breaker import LONGEST_CAUSE

log = structlog.get_logger()

# Seconds between two tries to reach a ledger that was lost during a stage.
LOOK_EVERY_S = 0.5
NOTHING_WRITTEN = "Dry run: nothing was written."
NOTHING_FROM_THIS_EVENT = "These messages hold nothing worth remembering."


def divisible(batch: Batch) -> bool:
    """True for a batch of several events whose memories are not stored yet: it can be halved."""
    stored = StageName.APPLY in batch.outputs
    return len(batch.events) > 1 and not stored and not batch.override.recorded


def success(batch: Batch) -> Ending:
    """The ending of a batch whose last stage has finished."""
    extracted = read_if_any(batch, Extracted)
    related = read_if_any(batch, Related)
    return Ending(
        Status.SUCCEEDED,
        graph_status=related.status if related else None,
        failure_detail=related.detail if related else None,
        note=_note(batch, extracted),
        left_out=tuple(batch.events[place].id for place in extracted.left_out) if extracted else (),
        mode=mode_of(batch),
    )


def _note(batch: Batch, extracted: Extracted | None) -> str:
    """The note of an event without receipt lines, or with text that was left out.

    A dry run writes no receipt lines.
    """
    nothing = extracted.note if extracted and extracted.note else NOTHING_FROM_THIS_EVENT
    if batch.options.dry_run is None:
        return nothing
    complete = extracted and extracted.facts and not extracted.left_out
    return NOTHING_WRITTEN if complete else f"{NOTHING_WRITTEN} {nothing}"


async def settle(
    activation: Activation, batch: Batch, ending: Ending, services: Services
) -> Hint | None:
    """End the batch's events. Returns the hint for the next batch of the lane, if there is one."""
    if ending.status is Status.SUCCEEDED and _is_summarized(batch, ending):
        ending = replace(ending, summary_after=services.summary_after)
    hint, ages_s = await services.ledger.lanes.settle(activation, batch, ending)
    if services.turn_projector is not None and batch.options.infer:
        services.turn_projector.schedule(batch.scope, [event.id for event in batch.events])
    if ending.mode is not None:
        cause = "budget" if ending.mode.reason else "request"
        telemetry.events_by_mode.labels(ending.mode.mode, cause).inc(len(ages_s))
    for age_s in ages_s:
        telemetry.event_seconds.observe(age_s)
        telemetry.events_ended.labels(ending.status, ending.failure_code or "").inc()
    log.info("batch_settled", status=ending.status, code=ending.failure_code, events=len(ages_s))
    return hint


def _is_summarized(batch: Batch, ending: Ending) -> bool:
    """Tell if the messages are a part of the scope's conversation: no replay, no agent's log."""
    chosen = ending.mode is not None and ending.mode.mode in (Mode.CONSOLIDATE, Mode.APPEND)
    return chosen and not batch.options.procedural and batch.payer == batch.scope.project_id


async def wait(
    activation: Activation, batch: Batch, error: TransientError, services: Services
) -> Hint | None:
    """Pause the lane until the next try; after the outage budget the batch fails instead.

    The time that its events have waited behind others does not count: otherwise one failed call
    would end all events of a backlog that is older than the budget.
    """
    left_s = services.outage_budget_s - batch.started_s
    if left_s <= 0:
        detail = f"{error.code} for longer than {services.outage_budget_s:.0f} s: {error}"
        rejected = isinstance(error, SettingRejected)
        code = error.code if rejected else DeadlinePassed.code
        return await fail(activation, batch, code, detail, services)
    # Not past its deadline, even if the provider asks for more.
    delay_s = min(wait_s(activation.waits, error.retry_after_s), left_s + 1)
    cause = str(error)[:LONGEST_CAUSE]
    await services.ledger.lanes.wait(activation, error.code, delay_s=delay_s, cause=cause)
    telemetry.stage_errors.labels(activation.stage, error.code, "wait").inc()
    log.warning("stage_waits", code=error.code, delay_s=round(delay_s, 1), detail=str(error))
    return None


async def fail(
    activation: Activation, batch: Batch, code: FailureCode, detail: str, services: Services
) -> Hint | None:
    """Halve a batch of several events; end a single event as FAILED.

    Once its memories are stored, the event succeeds and only its graph fails.
    """
    outcome = "split" if divisible(batch) else "fail"
    telemetry.stage_errors.labels(activation.stage, code, outcome).inc()
    log.warning("stage_failed", code=code, detail=detail, outcome=outcome)
    if divisible(batch):
        return await services.ledger.lanes.halve_batch(activation, batch)
    ending = Ending(Status.FAILED, failure_code=code, failure_detail=detail)
    if activation.stage is StageName.RELATE:
        ending = replace(
            success(batch), graph_status=Status.FAILED, failure_detail=f"{code}: {detail}"
        )
    return await settle(activation, batch, ending, services)


async def refused(
    activation: Activation, batch: Batch, error: StatementRefused, services: Services
) -> Hint | None:
    """Handle a statement that the ledger refused.

    Fail if the reason is its content, because no retry helps; wait if the reason is a temporary
    state of the server (deadlock, full disk, standby).
    """
    state = sqlstate(error)
    log.error("ledger_refused", sqlstate=state, stage=activation.stage)
    detail = f"The ledger refused to store it (SQLSTATE {state})."
    if isinstance(error, LedgerUnavailable):
        return await wait(activation, batch, StoreUnavailable(detail), services)
    return await fail(activation, batch, FailureCode.INTERNAL, detail, services)


async def hand_back_when_reachable(activation: Activation, services: Services) -> Hint | None:
    """Hand the lane back once the ledger answers again.

    This may take any time: the worker has not crashed.
    """
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        with suppress(LedgerUnavailable):
            return await services.ledger.lanes.release_lane(activation)
