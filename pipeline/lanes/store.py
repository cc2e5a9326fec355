"""The lane state machine: each move of a lane is one fenced statement.

    IDLE ──accept──► QUEUED ──claim──► RUNNING ──finish──► QUEUED … ──settle──► QUEUED | IDLE
                       ▲                  │ ├──wait──► WAITING ──┐
                       │                  │ ├──gather─► WAITING ─┤ (or the next add)
                       │                  │ ├──split─────────────┤
                       │                  │ └──release───────────┤
                       └──sweep (due)─────┴──────────────────────┘

Every move out of RUNNING checks the fence inside its own statement, and raises LaneLost if a newer
activation has the lane: a worker that lost its lane can neither write nor send it on.

accept: see accept.py. sweep: due.py. The lease of a running lane: leases.py. Cancel and replay of
single events move lanes too: events/cancel.py and events/dead_letters.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import TextClause
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.cpu_thread import beside_loop
from pipeline.domain.errors import LaneLost, MovedOn
from pipeline.domain.events import FailureCode, StageName, Status
from pipeline.domain.lanes import GATHERING, Activation, Batch, Hint
from pipeline.domain.modes import ChosenMode
from pipeline.domain.scope import Scope
from pipeline.domain.summaries import SummaryAfter
from pipeline.domain.usage import Usage
from pipeline.lanes.batches import batch_of
from pipeline.lanes.effects import Effects
from pipeline.lanes.sql import statement
from pipeline.ledger.failures import is_taken_text
from pipeline.ledger.row_values import columns_of, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.text import terms

# Maximum of the setting: a batch that was fixed under another setting is not larger either.
WIDEST_BATCH = 64
# Number of attempts of a stage next to other lanes of the worker. A crash counts for all of them;
# after that many, a lane is a suspect, which is processed and counted alone.
SHARED_ATTEMPTS = 2
# Code of a stage's run whose output was not used, because a person changed a memory it is about.
OUTDATED = "OUTDATED"


@dataclass(frozen=True, slots=True)
class Ending:
    """Final state of a batch. `note`: the reason, for events that stored nothing.

    `left_out`: the events of which text was not read; they get the note in any case.

    `mode`: its mode, if it has one. `summary_after`: its messages count towards the next summary,
    which is due after this many.
    """

    status: Status
    failure_code: FailureCode | None = None
    failure_detail: str | None = None
    graph_status: str | None = None
    note: str | None = None
    left_out: Sequence[UUID] = ()
    mode: ChosenMode | None = None
    summary_after: SummaryAfter | None = None


class Lanes(LedgerStore):
    """Store of lanes: each method is one move.

    `lease_s`: seconds until the lane of a silent worker is taken over. `queued_grace_s`: seconds
    until a hint counts as lost.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        lease_s: float,
        queued_grace_s: float,
        batch_events: int,
        batch_tokens: int,
        context_messages: int,
    ) -> None:
        """Set the limits of a batch, and the number of earlier messages that a model gets."""
        super().__init__(engine)
        self.lease = timedelta(seconds=lease_s)
        self.grace = timedelta(seconds=queued_grace_s)
        self._batch_events = batch_events
        self._batch_tokens = batch_tokens
        self._context_messages = context_messages

    async def claim(self, hint: Hint, owner: UUID) -> tuple[Activation, Batch | None] | None:
        """Claim the lane for one stage. Returns the activation and its batch.

        None for a stale hint. A lane without a batch gets one. The batch is None if all queued
        events were cancelled (the activation then has no `batch_id` either), or if the batch was
        split.
        """
        row = await self._row(
            statement("claim_hinted_lane"),
            lane_id=hint.lane_id,
            fence=hint.fence,
            stage=hint.stage,
            owner=owner,
            lease=self.lease,
            new_batch_id=(new_batch_id := uuid4()),
            full_width=self._batch_events,
            widest=WIDEST_BATCH,
            batch_tokens=self._batch_tokens,
            shared_attempts=SHARED_ATTEMPTS,
            outdated=OUTDATED,
            context=self._context_messages if hint.stage is StageName.EXTRACT else 0,
        )
        if row is None:
            return None
        activation = value_of(
            Activation,
            row,
            lane_id=hint.lane_id,
            owner=owner,
            stage=StageName(row.stage),
            scope=Scope.of(row),
            batch_id=row.batch_id or (new_batch_id if row.events else None),
        )
        return activation, batch_of(activation, row)

    async def finish(
        self,
        activation: Activation,
        next_stage: StageName | None,
        *,
        output: Any,
        usage: Usage,
        ms: float,
        effects: Effects | None = None,
    ) -> Hint | None:
        """Save the stage's output and effects and queue the lane for the next stage, in one commit.

        Without a next stage the lane stays with the activation, to be settled. Errors: LaneLost;
        MovedOn if memories that the effects are based on have changed: then nothing is written.
        """
        run = _run_values(output, usage, ms)
        await self._finish(activation, next_stage, run, effects, keeps=next_stage is None)
        return _hint(activation, next_stage) if next_stage else None

    async def finish_and_keep(
        self,
        activation: Activation,
        next_stage: StageName,
        *,
        output: Any,
        usage: Usage,
        ms: float,
        effects: Effects | None = None,
    ) -> Activation:
        """Like `finish`, but the lane stays with its worker, which runs the next stage at once.

        The commit also counts the first attempt of the next stage, so that no crash in it is
        missed.
        """
        run = _run_values(output, usage, ms)
        await self._finish(activation, next_stage, run, effects, keeps=True, attempts=1)
        return replace(activation, stage=next_stage, attempts=1, counted=True, waits=0)

    async def _finish(
        self,
        activation: Activation,
        next_stage: StageName | None,
        run: Mapping[str, Any],
        effects: Effects | None,
        *,
        keeps: bool,
        attempts: int = 0,
    ) -> None:
        """Save the run and its effects and move the lane: one fenced statement, one commit."""
        query = effects.query if effects else statement("finish_stage")
        values = {}
        if effects:
            small = effects.characters <= terms.MOST_AT_ONCE
            values = await beside_loop(effects.values, inline=small)
        try:
            row = await self._row(
                query,
                **_fence_of(activation),
                batch_id=activation.batch_id,
                stage=activation.stage,
                next_stage=next_stage,
                keeps=keeps,
                attempts=attempts,
                # A lane that stays keeps its lease, which the heartbeat renews.
                due_in=self.lease if keeps else self.grace,
                **run,
                **values,
            )
        except IntegrityError as error:
            if is_taken_text(error):
                raise MovedOn from None
            raise
        if row is None:
            raise LaneLost
        if not row.advanced:
            raise MovedOn

    async def settle(
        self, activation: Activation, batch: Batch, ending: Ending
    ) -> tuple[Hint | None, list[float]]:
        """End the batch's events and free the lane.

        Returns the hint for the next batch, if any, and the ended events' ages in seconds.
        """
        row = await self._move(
            statement("end_batch"),
            activation,
            batch_id=batch.id,
            last_seq=batch.events[-1].seq,
            full_width=self._batch_events,
            grace=self.grace,
            **columns_of(ending, "status", "failure_code", "failure_detail"),
            **columns_of(ending, "graph_status", "note"),
            left_out=list(ending.left_out),
            mode=ending.mode.mode if ending.mode else None,
            mode_reason=ending.mode.reason if ending.mode else None,
            notify=not batch.options.infer,
            summary_messages=ending.summary_after.messages if ending.summary_after else None,
            summary_tokens=ending.summary_after.tokens if ending.summary_after else None,
        )
        return _next_hint(activation, row), list(row.ages_s or ())

    async def end_cancelled(self, activation: Activation) -> Hint | None:
        """Free a lane whose events were all cancelled. Returns the hint if more is queued."""
        row = await self._move(
            statement("end_cancelled"),
            activation,
            accepted_seq=activation.accepted_seq,
            full_width=self._batch_events,
            grace=self.grace,
        )
        return _next_hint(activation, row)

    async def halve_batch(self, activation: Activation, batch: Batch) -> Hint:
        """Return the batch to its queue, to be retried with half the width."""
        width = max(1, len(batch.events) // 2)
        return await self._restart(activation, batch.id, width=width, attempts=0)

    async def split_suspect(self, activation: Activation, batch: Batch) -> Hint:
        """Return a suspect's batch to its queue, to be retried event by event."""
        attempts = activation.attempts
        return await self._restart(activation, batch.id, width=1, attempts=attempts)

    async def restart(self, activation: Activation) -> Hint:
        """Drop the activation's batch and start again with the queued events."""
        return await self._restart(activation, activation.batch_id, width=None, attempts=0)

    async def _restart(
        self, activation: Activation, batch_id: UUID | None, *, width: int | None, attempts: int
    ) -> Hint:
        """Return a batch to its queue with a new width. Errors: LaneLost."""
        await self._move(
            statement("retry_batch"),
            activation,
            batch_id=batch_id,
            width=width,
            attempts=attempts,
            grace=self.grace,
        )
        return _hint(activation, StageName.EXTRACT)

    async def wait(
        self, activation: Activation, code: FailureCode, *, delay_s: float, cause: str | None = None
    ) -> None:
        """Pause the lane for `delay_s` seconds. Errors: LaneLost.

        `cause`: the error of the dependency, for operators, without users' texts.
        """
        await self._move(
            statement("pause"),
            activation,
            batch_id=activation.batch_id,
            attempts=activation.earlier_attempts,
            delay=timedelta(seconds=delay_s),
            code=code,
            cause=cause,
        )

    async def gather(self, activation: Activation, batch: Batch, *, delay_s: float) -> Hint | None:
        """Return the batch to its queue until the next add, or for `delay_s` seconds at most.

        Returns the hint if an add has arrived since the claim. Errors: LaneLost.
        """
        row = await self._move(
            statement("gather"),
            activation,
            batch_id=batch.id,
            accepted_seq=activation.accepted_seq,
            delay=timedelta(seconds=delay_s),
            grace=self.grace,
            code=GATHERING,
        )
        return _next_hint(activation, row)

    async def shorten_batch(self, activation: Activation, batch: Batch, number: int) -> Batch:
        """Return all but the first events of a batch to the queue. Errors: LaneLost."""
        first = batch.events[:number]
        await self._move(
            statement("shorten_batch"),
            activation,
            batch_id=batch.id,
            last_seq=first[-1].seq,
        )
        return replace(batch, events=first)

    async def retrieve_again(self, activation: Activation) -> Hint:
        """Return to retrieve, because a memory that the decisions are about has changed."""
        await self._move(
            statement("retrieve_again"),
            activation,
            batch_id=activation.batch_id,
            code=OUTDATED,
            grace=self.grace,
        )
        return _hint(activation, StageName.RETRIEVE)

    async def count_suspect_attempt(self, activation: Activation) -> Activation:
        """Count an attempt of a suspect, which is processed alone from here on."""
        row = await self._move(statement("count_suspect_attempt"), activation)
        return replace(activation, attempts=row.attempts, counted=True)

    async def release_lane(self, activation: Activation) -> Hint | None:
        """Release the lane unfinished; the attempt does not count.

        Returns the hint; None if the lane is lost.
        """
        row = await self._row(
            statement("release_lane"),
            **_fence_of(activation),
            stage=activation.stage,
            attempts=activation.earlier_attempts,
            grace=self.grace,
        )
        if row is None:
            await self.uncount_attempt(activation)
            return None
        return replace(_hint(activation, StageName(row.stage)), fence=row.fence)

    async def is_low(self, lane_id: UUID) -> bool:
        """True if all events that wait in the lane have low priority."""
        row = await self._row(statement("is_low"), lane_id=lane_id)
        return row is not None and bool(row.low)

    async def uncount_attempt(self, activation: Activation) -> None:
        """Take back the counted attempt of an activation that lost its lane: it was no crash."""
        if activation.counted:
            values = columns_of(activation, "batch_id", "stage")
            await self._row(statement("uncount_attempt"), **_fence_of(activation), **values)

    async def _move(self, query: TextClause, activation: Activation, **values: Any) -> Any:
        """Run a statement that moves the activation's lane. Errors: LaneLost."""
        row = await self._row(query, **_fence_of(activation), **values)
        if row is None:
            raise LaneLost
        return row

    async def _row(self, query: TextClause, **values: Any) -> Any | None:
        return await self._direct.row(query, values)


def _fence_of(activation: Activation) -> dict[str, Any]:
    """Values that fence a statement. The owner is included: fences may repeat after a failover."""
    return columns_of(activation, "lane_id", "fence", "owner")


def _run_values(output: Any, usage: Usage, ms: float) -> dict[str, Any]:
    """Values of the row in stage_runs."""
    return {
        "output": orjson.dumps(output).decode(),
        "ms": ms,
        "prompt": usage.prompt,
        **usage.columns,
    }


def _hint(activation: Activation, stage: StageName) -> Hint:
    """The hint for the lane's next stage."""
    return Hint(
        activation.lane_id,
        activation.fence,
        stage,
        low=activation.low,
        project_id=activation.scope.project_id,
    )


def _next_hint(activation: Activation, row: Any) -> Hint | None:
    """Return the hint for the events queued behind a batch, if there are any."""
    hint = replace(_hint(activation, StageName.EXTRACT), low=row.low)
    return hint if row.state == "QUEUED" else None
