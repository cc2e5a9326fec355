"""The lane state machine: the only code that moves a lane, each move one fenced statement.

    IDLE ──accept──► QUEUED ──claim──► RUNNING ──finish──► QUEUED … ──settle──► QUEUED | IDLE
                       ▲                  │ ├──wait──► WAITING ──┐
                       │                  │ ├──gather─► WAITING ─┤ (or the next add)
                       │                  │ ├──split─────────────┤
                       │                  │ └──hand_back─────────┤
                       └──sweep (due)─────┴──────────────────────┘

Every move out of RUNNING checks the fence inside its own statement, and raises LaneLost if a newer
activation has the lane: a worker that lost its lane can neither write nor send it on. Cancel and
replay of single events move lanes too: see events/cancel_and_replay.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import TextClause
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain.errors import LaneLost, MovedOn
from pipeline.domain.events import AddOptions, FailureCode, StageName, Status
from pipeline.domain.lanes import GATHERING, Activation, Batch, Hold, Wake
from pipeline.domain.messages import Message, Omission
from pipeline.domain.modes import ChosenMode
from pipeline.domain.scope import Scope
from pipeline.domain.summaries import SummaryAfter
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Usage
from pipeline.lanes.batches import OPTIONS, batch_of, omission_rows
from pipeline.lanes.effects import Effects
from pipeline.lanes.sql import statement
from pipeline.ledger.engine import behind_pooler
from pipeline.ledger.statements import Direct
from pipeline.text import terms as lexical

# Maximum of the setting: a batch that was fixed under another setting is not larger either.
WIDEST_BATCH = 64
# Number of attempts of a stage next to other lanes of the worker. A crash counts for all of them;
# after that many, a lane is a suspect, which is processed and counted alone.
SHARED_ATTEMPTS = 2
# Code of a stage's run whose output was not used, because a person changed a memory it is about.
OUTDATED = "OUTDATED"
# Number of heartbeats per lease: two may be late or lost.
BEATS = 3


def session_name(owner: UUID, process: str) -> str:
    """Application name of a worker's connections. If no session has it, the worker is dead."""
    return f"memlane {owner} {process}"


@dataclass(frozen=True, slots=True)
class Add:
    """One add of one scope.

    `said_at` None means now. `key`: the client's idempotency key; a second add with the same key is
    the same add.
    """

    event_id: UUID
    scope: Scope
    messages: Sequence[Message]
    options: AddOptions
    tokens: int
    said_at: datetime | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Result of an add: its event, and the hint to publish if its lane was idle.

    `fresh` is False if its key was already used, for `event_id`; `same` is False if that add had
    another body; `known` is False if the project is deleted. In all three cases nothing was added.
    """

    event_id: UUID
    wake: Wake | None = None
    fresh: bool = True
    same: bool = True
    known: bool = True


@dataclass(frozen=True, slots=True)
class Swept:
    """A lane that a sweep has queued, and its state before."""

    wake: Wake
    project_id: ProjectId
    was: str


@dataclass(frozen=True, slots=True)
class Ending:
    """Final state of a batch. `note`: the reason, for events that stored nothing.

    `mode`: its mode, if it has one. `summary_after`: its messages count towards the next summary,
    which is due after this many.
    """

    status: Status
    failure_code: FailureCode | None = None
    failure_detail: str | None = None
    graph_status: str | None = None
    note: str | None = None
    mode: ChosenMode | None = None
    summary_after: SummaryAfter | None = None


class Lanes:
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
        self._use(engine)
        self._lease = timedelta(seconds=lease_s)
        self.grace = timedelta(seconds=queued_grace_s)
        self._batch_events = batch_events
        self._batch_tokens = batch_tokens
        self._context_messages = context_messages

    def on(self, engine: AsyncEngine) -> Lanes:
        """Return the same store on other connections."""
        lanes = copy(self)
        lanes._use(engine)  # noqa: SLF001  its own
        return lanes

    def _use(self, engine: AsyncEngine) -> None:
        # One statement is one transaction: no round trips for BEGIN and COMMIT.
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._direct = Direct(engine)

    async def accept(self, adds: Sequence[Add]) -> list[Accepted]:
        """Store the adds durably in one commit, each at the end of its scope's lane.

        A lane that is not idle needs no hint: its worker continues with the queue.
        """
        placed = [
            (place, ordinal, message)
            for place, add in enumerate(adds, start=1)
            for ordinal, message in enumerate(add.messages)
        ]
        cut = await lexical.cut([message.content for _, _, message in placed])
        values = {
            "event_ids": [add.event_id for add in adds],
            "lane_ids": [add.scope.lane_id for add in adds],
            "project_ids": [add.scope.project_id for add in adds],
            "user_ids": [add.scope.user_id for add in adds],
            "agent_ids": [add.scope.agent_id for add in adds],
            "app_ids": [add.scope.app_id for add in adds],
            "run_ids": [add.scope.run_id for add in adds],
            "options": [OPTIONS.dump_json(add.options).decode() for add in adds],
            "tokens": [add.tokens for add in adds],
            "said_at": [add.said_at for add in adds],
            "keys": [add.key for add in adds],
            "digests": [_digest(add) if add.key is not None else None for add in adds],
            "message_of": [place for place, _, _ in placed],
            "ordinals": [ordinal for _, ordinal, _ in placed],
            "roles": [message.role.value for _, _, message in placed],
            "names": [message.name for _, _, message in placed],
            "contents": [message.content for _, _, message in placed],
            "omitted": [_as_json(message.omitted) for _, _, message in placed],
            # One string each: the arrays in an array must have the same length.
            "terms": [" ".join(terms) for terms in cut],
            "grace": self.grace,
        }
        rows = await self._direct.rows(statement("accept"), values)
        by_place = {row.place: row for row in rows}
        return [_accepted(add, by_place.get(place)) for place, add in enumerate(adds, start=1)]

    async def locked(self, lane_ids: Collection[UUID]) -> set[UUID]:
        """Return the given lanes that another transaction has locked at the moment."""
        rows = await self._direct.rows(statement("locked"), {"lane_ids": list(lane_ids)})
        return {row.id for row in rows}

    async def claim(self, wake: Wake, owner: UUID) -> tuple[Activation, Batch | None] | None:
        """Claim the lane for one stage. Returns the activation and its batch.

        None for a stale hint. A lane without a batch gets one. The batch is None if all queued
        events were cancelled (the activation then has no `batch_id` either), or if the batch was
        split.
        """
        row = await self._one(
            statement("claim_lane"),
            lane_id=wake.lane_id,
            fence=wake.fence,
            stage=wake.stage,
            owner=owner,
            lease=self._lease,
            new_batch_id=(new_batch_id := uuid4()),
            full_width=self._batch_events,
            widest=WIDEST_BATCH,
            batch_tokens=self._batch_tokens,
            shared_attempts=SHARED_ATTEMPTS,
            outdated=OUTDATED,
            context=self._context_messages if wake.stage is StageName.EXTRACT else 0,
        )
        if row is None:
            return None
        activation = Activation(
            lane_id=wake.lane_id,
            fence=row.fence,
            owner=owner,
            stage=StageName(row.stage),
            scope=Scope(
                ProjectId(row.project_id), row.user_id, row.agent_id, row.app_id, row.run_id
            ),
            attempts=row.attempts,
            counted=row.counted,
            waits=row.waits,
            accepted_seq=row.accepted_seq,
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
    ) -> Wake | None:
        """Save the stage's output and effects and queue the lane for the next stage, in one commit.

        Without a next stage the lane stays with the activation, to be settled. Errors: LaneLost;
        MovedOn if memories that the effects are based on have changed: then nothing is written.
        """
        run = _run_values(output, usage, ms)
        await self._finish(activation, next_stage, run, effects, keeps=next_stage is None)
        return Wake(activation.lane_id, activation.fence, next_stage) if next_stage else None

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
        try:
            row = await self._one(
                query,
                **_held(activation),
                batch_id=activation.batch_id,
                stage=activation.stage,
                next_stage=next_stage,
                keeps=keeps,
                attempts=attempts,
                # A lane that stays keeps its lease, which the heartbeat renews.
                due_in=self._lease if keeps else self.grace,
                **run,
                **(effects.values() if effects else {}),
            )
        except IntegrityError:  # another write has stored one of the texts
            raise MovedOn from None
        if row is None:
            raise LaneLost
        if not row.held:
            raise MovedOn

    async def settle(
        self, activation: Activation, batch: Batch, ending: Ending
    ) -> tuple[Wake | None, list[float]]:
        """End the batch's events and free the lane.

        Returns the hint for the next batch, if any, and the ended events' ages in seconds.
        """
        row = await self._one(
            statement("settle"),
            **_held(activation),
            batch_id=batch.id,
            last_seq=batch.events[-1].seq,
            full_width=self._batch_events,
            grace=self.grace,
            status=ending.status,
            failure_code=ending.failure_code,
            failure_detail=ending.failure_detail,
            graph_status=ending.graph_status,
            note=ending.note,
            mode=ending.mode.mode if ending.mode else None,
            mode_reason=ending.mode.reason if ending.mode else None,
            notify=not batch.options.infer,
            summary_messages=ending.summary_after.messages if ending.summary_after else None,
            summary_tokens=ending.summary_after.tokens if ending.summary_after else None,
        )
        if row is None:
            raise LaneLost
        return _next_hint(activation, row.state), list(row.ages_s or ())

    async def rest(self, activation: Activation) -> Wake | None:
        """Free a lane whose events were all cancelled. Returns the hint if more is queued."""
        row = await self._one(
            statement("rest"),
            **_held(activation),
            accepted_seq=activation.accepted_seq,
            full_width=self._batch_events,
            grace=self.grace,
        )
        if row is None:
            raise LaneLost
        return _next_hint(activation, row.state)

    async def split(self, activation: Activation, batch: Batch) -> Wake:
        """Return the batch to its queue, to be retried with half the width."""
        width = max(1, len(batch.events) // 2)
        return await self._restart(activation, batch.id, width=width, attempts=0)

    async def take_apart(self, activation: Activation, batch: Batch) -> Wake:
        """Return a suspect's batch to its queue, to be retried event by event."""
        attempts = activation.attempts
        return await self._restart(activation, batch.id, width=1, attempts=attempts)

    async def restart(self, activation: Activation) -> Wake:
        """Drop the activation's batch and start again with the queued events."""
        return await self._restart(activation, activation.batch_id, width=None, attempts=0)

    async def _restart(
        self, activation: Activation, batch_id: UUID | None, *, width: int | None, attempts: int
    ) -> Wake:
        """Return a batch to its queue with a new width. Errors: LaneLost."""
        row = await self._one(
            statement("restart"),
            **_held(activation),
            batch_id=batch_id,
            width=width,
            attempts=attempts,
            grace=self.grace,
        )
        if row is None or row[0] == 0:
            raise LaneLost
        return Wake(activation.lane_id, activation.fence, StageName.EXTRACT)

    async def wait(
        self, activation: Activation, code: FailureCode, *, delay_s: float, cause: str | None = None
    ) -> None:
        """Pause the lane for `delay_s` seconds. Errors: LaneLost.

        `cause`: the error of the dependency, for operators, without users' texts.
        """
        row = await self._one(
            statement("wait"),
            **_held(activation),
            batch_id=activation.batch_id,
            attempts=activation.earlier_attempts,
            delay=timedelta(seconds=delay_s),
            code=code,
            cause=cause,
        )
        if row is None:
            raise LaneLost

    async def gather(self, activation: Activation, batch: Batch, *, delay_s: float) -> Wake | None:
        """Return the batch to its queue until the next add, or for `delay_s` seconds at most.

        Returns the hint if an add has arrived since the claim. Errors: LaneLost.
        """
        row = await self._one(
            statement("gather"),
            **_held(activation),
            batch_id=batch.id,
            accepted_seq=activation.accepted_seq,
            delay=timedelta(seconds=delay_s),
            grace=self.grace,
            code=GATHERING,
        )
        if row is None:
            raise LaneLost
        return _next_hint(activation, row.state)

    async def keep_first(self, activation: Activation, batch: Batch, number: int) -> Batch:
        """Return all but the first events of a batch to the queue. Errors: LaneLost."""
        first = batch.events[:number]
        row = await self._one(
            statement("keep_first"),
            **_held(activation),
            batch_id=batch.id,
            last_seq=first[-1].seq,
        )
        if row is None:
            raise LaneLost
        return replace(batch, events=first)

    async def reconsider(self, activation: Activation) -> Wake:
        """Return to retrieve, because a memory that the decisions are about has changed."""
        row = await self._one(
            statement("reconsider"),
            **_held(activation),
            batch_id=activation.batch_id,
            code=OUTDATED,
            grace=self.grace,
        )
        if row is None:
            raise LaneLost
        return Wake(activation.lane_id, activation.fence, StageName.RETRIEVE)

    async def charge(self, activation: Activation) -> Activation:
        """Count an attempt of a suspect, which is processed alone from here on."""
        row = await self._one(statement("charge"), **_held(activation))
        if row is None:
            raise LaneLost
        return replace(activation, attempts=row.attempts, counted=True)

    async def hand_back(self, activation: Activation) -> Wake | None:
        """Release the lane unfinished; the attempt does not count.

        Returns the hint; None if the lane is lost.
        """
        row = await self._one(
            statement("hand_back"),
            **_held(activation),
            stage=activation.stage,
            attempts=activation.earlier_attempts,
            grace=self.grace,
        )
        if row is None:
            await self.absolve(activation)
            return None
        return Wake(activation.lane_id, row.fence, StageName(row.stage))

    async def absolve(self, activation: Activation) -> None:
        """Take back the counted attempt of an activation that lost its lane: it was no crash."""
        if activation.counted:
            values = {"batch_id": activation.batch_id, "stage": activation.stage}
            await self._one(statement("absolve"), **_held(activation), **values)

    async def renew(self, holds: Sequence[Hold]) -> set[Hold]:
        """Extend these leases. Returns the extended ones; the others are lost or locked."""
        values = {
            "lease": self._lease,
            "lane_ids": [lane_id for lane_id, _, _ in holds],
            "fences": [fence for _, fence, _ in holds],
            "owners": [owner for _, _, owner in holds],
        }
        rows = await self._direct.rows(statement("renew"), values)
        return {(row.id, row.fence, row.owner) for row in rows}

    async def doubt_hints(self, *, told_before: datetime, patience_s: float, limit: int) -> int:
        """Make lanes due that were queued before this time, even for a sweep with this patience.

        The broker may have lost their hints. Returns their number, at most `limit`.
        """
        values = {
            "told_before": told_before,
            "patience": timedelta(seconds=patience_s),
            "grace": self.grace,
            "limit": limit,
        }
        async with self._engine.connect() as connection:
            return (await connection.execute(statement("doubt_hints"), values)).rowcount

    async def release(self, code: FailureCode, *, limit: int) -> int:
        """Make lanes with this wait code due now. Returns their number."""
        values = {"code": code, "limit": limit}
        async with self._engine.connect() as connection:
            return (await connection.execute(statement("release"), values)).rowcount

    async def sweep(
        self, *, limit: int, patient: Sequence[UUID] = (), patience_s: float = 0.0
    ) -> list[Swept]:
        """Queue the lanes that are due. Safe to run in any number of processes at once.

        A worker's lanes are due when their leases have ended, or earlier if the worker is dead (see
        `session_name`; not through a connection pooler, which has sessions of its own). QUEUED
        lanes of `patient` projects are queued again only when `patience_s` overdue.
        """
        async with self._engine.connect() as connection:
            rows = await connection.execute(
                statement("sweep"),
                {
                    "limit": limit,
                    "patient": list(patient),
                    "patience": timedelta(seconds=patience_s),
                    "grace": self.grace,
                    "lease": self._lease,
                    # A lease whose heartbeat is on time has more time left than this.
                    "late": self._lease * (1 - 1.2 / BEATS),
                    "stages": list(StageName),
                    "sessions": not behind_pooler(self._engine),
                },
            )
            return [
                Swept(Wake(r.lane_id, r.fence, StageName(r.stage)), r.project_id, r.was)
                for r in rows
            ]

    async def _one(self, query: TextClause, **values: Any) -> Any | None:
        return await self._direct.row(query, values)


def _held(activation: Activation) -> dict[str, Any]:
    """Values that fence a statement. The owner is included: fences may repeat after a failover."""
    return {
        "lane_id": activation.lane_id,
        "fence": activation.fence,
        "owner": activation.owner,
    }


def _run_values(output: Any, usage: Usage, ms: float) -> dict[str, Any]:
    """Values of the row in stage_runs."""
    return {
        "output": orjson.dumps(output).decode(),
        "ms": ms,
        "model": usage.model,
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_usd": usage.cost_usd,
        "prompt": usage.prompt,
    }


def _accepted(add: Add, row: Any | None) -> Accepted:
    if row is None:
        return Accepted(add.event_id, fresh=False, known=False)
    wake = Wake(add.scope.lane_id, row.fence, StageName.EXTRACT) if row.woken else None
    return Accepted(row.event_id, wake, row.fresh, row.same)


def _next_hint(activation: Activation, state: str) -> Wake | None:
    """Return the hint for the events queued behind a batch, if there are any."""
    queued = state == "QUEUED"
    return Wake(activation.lane_id, activation.fence, StageName.EXTRACT) if queued else None


def _as_json(omitted: Sequence[Omission]) -> str | None:
    return orjson.dumps(omission_rows(omitted)).decode() if omitted else None


def _digest(add: Add) -> bytes:
    """Digest of an add's content, equal for equal adds even if their JSON differs in form."""
    messages = [
        (message.role, message.name, message.content, *omission_rows(message.omitted))
        for message in add.messages
    ]
    options = OPTIONS.dump_python(add.options, mode="json")
    if add.options.dry_run is not None:
        options["dry_run"] |= {"id": None}
    if options["graph"] is None:  # digests of earlier releases stay valid
        del options["graph"]
    content = [str(add.scope.lane_id), messages, options, str(add.said_at)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
