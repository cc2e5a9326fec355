"""Model-based test of the lane state machine: random interleavings on a real PostgreSQL.

The model is the state machine of pipeline/lanes/store.py in a few lines of Python. Hypothesis
accepts adds, delivers hints (fresh, stale, duplicated), lets workers die, wake late, finish, wait,
split, gather and hand back, lets time pass and sweeps; after each step the ledger's rows must equal
the model.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text

from pipeline.domain.errors import LaneLost
from pipeline.domain.events import AddOptions, FailureCode, StageName, Status
from pipeline.domain.lanes import Activation, Batch, Hint
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.domain.usage import Usage
from pipeline.lanes.accept import Add
from pipeline.lanes.leases import session_name
from pipeline.lanes.store import SHARED_ATTEMPTS, Ending, Lanes
from pipeline.ledger.engine import connect
from pipeline.stores import Ledger, Pools
from workers.runtime import LoopThread

T = TypeVar("T")

# Never near a sum of PASSES, so that the few real seconds of a run make no difference.
LEASE_S, GRACE_S, WAIT_S, PATIENCE_S = 1_050.0, 3_050.0, 550.0, 10_020.0
# The worker of all claims. Its session stays open, or else the sweeper takes its lanes early.
WORKER = uuid4()
PASSES = (600.0, 1_100.0, 3_100.0, 10_100.0)
WIDTH = 3
LANES = 2


@dataclass(slots=True)
class ModelEvent:
    id: UUID
    status: Status = Status.PENDING
    batch: int | None = None
    kind: int = 0


@dataclass(slots=True)
class ModelLane:
    """Expected state of a lane. `due_s` counts down; it is None if nothing is due."""

    scope: Scope
    events: list[ModelEvent] = field(default_factory=list)
    state: str = "IDLE"
    stage: StageName = StageName.EXTRACT
    fence: int = 0
    settled: int = 0
    attempts: int = 0
    waits: int = 0
    width: int = WIDTH
    batch: int | None = None
    due_s: float | None = None
    # The wait code is GATHERING.
    gathers: bool = False

    def holds(self, hold: Claim) -> bool:
        return self.state == "RUNNING" and self.fence == hold.activation.fence

    def queue(self, stage: StageName) -> None:
        self.state, self.stage, self.due_s = "QUEUED", stage, GRACE_S

    def fresh(self) -> None:
        self.attempts = self.waits = 0
        self.gathers = False

    def put_back(self, events: list[ModelEvent]) -> None:
        for event in events:
            event.status, event.batch = Status.PENDING, None

    def of_batch(self) -> list[ModelEvent]:
        return [event for event in self.events if event.batch == self.batch]

    def row(self) -> tuple[Any, ...]:
        width = None if self.width == WIDTH else self.width
        counts = (len(self.events), self.settled, self.attempts, self.waits, width)
        return (self.state, str(self.stage), self.fence, *counts)


@dataclass(slots=True)
class Claim:
    """An activation as a worker knows it; the worker may have lost the lane since."""

    lane: int
    activation: Activation
    batch: Batch
    # Number of the batch in the model.
    number: int | None


class LaneMachine(RuleBasedStateMachine):
    """Rules for the API, workers, sweeper, broker and crashes, applied in any order."""

    loop: LoopThread
    ledger: Ledger
    hints: Bundle[tuple[int, Hint]] = Bundle("hints")
    holds: Bundle[Claim] = Bundle("holds")

    def __init__(self) -> None:
        super().__init__()
        made, _ = self.run(self.ledger.projects.create("test"))
        project = made.id
        self.projects = [project]
        self.lanes = [ModelLane(Scope(project, user_id=f"u{n}")) for n in range(LANES)]
        self.batches = 0
        # Lane and fence of each activation: a fence admits at most one.
        self.activated: set[tuple[int, int]] = set()
        self.order: list[list[UUID]] = [[] for _ in self.lanes]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    @property
    def real(self) -> Lanes:
        return self.ledger.lanes

    # The API

    @rule(target=hints, lane=st.integers(0, LANES - 1), kind=st.sampled_from([0, 0, 0, 1]))
    def accept(self, lane: int, kind: int) -> Any:
        model = self.lanes[lane]
        event = ModelEvent(uuid4(), kind=kind)
        add = Add(
            event.id,
            model.scope,
            [Message(Role.USER, "said")],
            AddOptions(metadata={"kind": kind}),
            tokens=1,
        )
        [accepted] = self.run(self.ledger.group_commit.adds.accept([add]))
        wake = accepted.hint
        model.events.append(event)
        if model.state == "IDLE" or (model.state == "WAITING" and model.gathers):
            model.queue(StageName.EXTRACT)
        first = len(model.events) == model.settled + 1
        assert (wake is not None) == (first or (model.state == "QUEUED" and model.gathers))
        return multiple() if wake is None else multiple((lane, wake))

    # The broker

    @rule(target=hints, hint=hints)
    def double(self, hint: tuple[int, Hint]) -> Any:
        return hint

    @rule(hint=consumes(hints))
    def lose(self, hint: tuple[int, Hint]) -> None:
        """The broker loses a message."""

    # A worker

    @rule(target=holds, hint=consumes(hints))
    def claim(self, hint: tuple[int, Hint]) -> Any:
        lane, wake = hint
        model = self.lanes[lane]
        claimed = self.run(self.real.claim(wake, WORKER))
        good = (wake.fence, wake.stage) == (model.fence, model.stage) and model.state == "QUEUED"
        assert (claimed is not None) == good
        if claimed is None:
            return multiple()
        activation, batch = claimed
        model.fence += 1
        counted = model.attempts < SHARED_ATTEMPTS
        model.attempts += counted
        model.state, model.due_s = "RUNNING", LEASE_S
        assert (activation.fence, activation.attempts) == (model.fence, model.attempts)
        assert activation.counted == counted
        assert (lane, activation.fence) not in self.activated
        self.activated.add((lane, activation.fence))
        if model.batch is None:
            self._freeze(model)
        assert batch is not None
        assert [event.id for event in batch.events] == [e.id for e in model.of_batch()]
        return Claim(lane, activation, batch, model.batch)

    def _freeze(self, model: ModelLane) -> None:
        """Freeze a batch: events of one kind from the head of the queue, at most `width`."""
        queue = model.events[model.settled : model.settled + model.width]
        self.batches += 1
        model.batch = self.batches
        for event in queue:
            if event.kind != queue[0].kind:
                break
            event.batch, event.status = model.batch, Status.RUNNING

    @rule(hold=holds)
    def renew(self, hold: Claim) -> None:
        model = self.lanes[hold.lane]
        self.run(self.ledger.leases.renew([hold.activation.hold]))
        if model.holds(hold):
            model.due_s = LEASE_S

    @rule(target=hints, hold=consumes(holds))
    def finish(self, hold: Claim) -> Any:
        """Finish the stage; after the last stage, settle the batch."""
        stages = list(StageName)
        if hold.activation.stage is stages[-1]:
            return self._settle(hold, Ending(Status.SUCCEEDED))
        model, stage = self.lanes[hold.lane], stages[stages.index(hold.activation.stage) + 1]
        work = self.real.finish(hold.activation, stage, output={}, usage=Usage(), ms=1.0)
        wake = self._written(hold, work)
        if wake is None:
            return multiple()
        model.queue(stage)
        model.fresh()
        assert wake == Hint(model.scope.lane_id, model.fence, stage)
        return hold.lane, wake

    @rule(target=holds, hold=consumes(holds))
    def finish_and_keep(self, hold: Claim) -> Any:
        """Finish the stage; the worker continues with the next one."""
        stages = list(StageName)
        if hold.activation.stage is stages[-1]:
            return hold
        model, stage = self.lanes[hold.lane], stages[stages.index(hold.activation.stage) + 1]
        work = self.real.finish_and_keep(hold.activation, stage, output={}, usage=Usage(), ms=1.0)
        activation = self._written(hold, work)
        if activation is None:
            return multiple()
        model.fresh()
        model.stage, model.due_s, model.attempts = stage, LEASE_S, 1
        assert (activation.stage, activation.attempts, activation.counted) == (stage, 1, True)
        return replace(hold, activation=activation)

    @rule(target=hints, hold=consumes(holds))
    def fail(self, hold: Claim) -> Any:
        return self._settle(hold, Ending(Status.FAILED, failure_code=FailureCode.INTERNAL))

    def _settle(self, hold: Claim, ending: Ending) -> Any:
        model = self.lanes[hold.lane]
        done = self._written(hold, self.real.settle(hold.activation, hold.batch, ending))
        if done is None:
            return multiple()
        batch = model.of_batch()
        for event in batch:
            event.status = ending.status
            self.order[hold.lane].append(event.id)
        model.settled += len(batch)
        model.batch, model.stage = None, StageName.EXTRACT
        model.width = min(model.width * 2, WIDTH)
        model.fresh()
        more = len(model.events) > model.settled
        model.state, model.due_s = ("QUEUED", GRACE_S) if more else ("IDLE", None)
        wake, ages = done
        assert len(ages) == len(batch)
        assert (wake is not None) == more
        return multiple() if wake is None else multiple((hold.lane, wake))

    @rule(target=hints, hold=consumes(holds))
    def split(self, hold: Claim) -> Any:
        model = self.lanes[hold.lane]
        wake = self._written(hold, self.real.halve_batch(hold.activation, hold.batch))
        if wake is None:
            return multiple()
        batch = model.of_batch()
        model.width = max(1, len(batch) // 2)
        model.put_back(batch)
        model.batch = None
        model.queue(StageName.EXTRACT)
        model.fresh()
        return hold.lane, wake

    @rule(target=hints, hold=consumes(holds))
    def gather(self, hold: Claim) -> Any:
        """Return the batch before its first stage; an add since the claim is considered at once."""
        if hold.activation.stage is not StageName.EXTRACT:
            return multiple()
        model = self.lanes[hold.lane]
        work = self.real.gather(hold.activation, hold.batch, delay_s=WAIT_S)
        result = self._written(hold, _in_a_tuple(work))
        if result is None:
            return multiple()
        model.put_back(model.of_batch())
        model.batch = None
        model.fresh()
        model.gathers = True
        if len(model.events) > hold.activation.accepted_seq:
            model.queue(StageName.EXTRACT)
        else:
            model.state, model.due_s = "WAITING", WAIT_S
        [wake] = result
        assert (wake is not None) == (model.state == "QUEUED")
        return multiple() if wake is None else (hold.lane, wake)

    @rule(target=holds, hold=consumes(holds))
    def shorten_batch(self, hold: Claim) -> Any:
        """Go on with the first event of the batch; the others return to the queue."""
        if hold.activation.stage is not StageName.EXTRACT:
            return hold
        model = self.lanes[hold.lane]
        batch = self._written(hold, self.real.shorten_batch(hold.activation, hold.batch, 1))
        if batch is None:
            return hold
        model.put_back(model.of_batch()[1:])
        return replace(hold, batch=batch)

    @rule(hold=consumes(holds))
    def wait(self, hold: Claim) -> None:
        model = self.lanes[hold.lane]
        work = self.real.wait(hold.activation, FailureCode.LLM_UNAVAILABLE, delay_s=WAIT_S)
        if self._written(hold, _then_true(work)) is None:
            return
        model.attempts = hold.activation.earlier_attempts
        model.waits += 1
        model.gathers = False
        model.state, model.due_s = "WAITING", WAIT_S

    @rule(
        target=hints,
        hold=consumes(holds),
        unseen=st.sampled_from(["nothing", "finish", "finish_and_keep"]),
    )
    def stop(self, hold: Claim, unseen: str) -> Any:
        """Stop a worker, which may not know that its last statement has committed."""
        if unseen == "finish":
            self.finish(hold)
        if unseen == "finish_and_keep":
            self.finish_and_keep(hold)
        model = self.lanes[hold.lane]
        mine = model.fence == hold.activation.fence and model.state in ("RUNNING", "QUEUED")
        wake = self.run(self.real.release_lane(hold.activation))
        assert (wake is not None) == mine
        if wake is None:
            self._absolve(hold)
            return multiple()
        model.fence += 1
        same_stage = model.stage == hold.activation.stage
        earlier = hold.activation.earlier_attempts if same_stage else 0
        model.attempts = min(model.attempts, earlier)
        model.queue(model.stage)
        assert wake == Hint(model.scope.lane_id, model.fence, model.stage)
        return hold.lane, wake

    @rule(target=holds, hold=consumes(holds))
    def count_suspect_attempt(self, hold: Claim) -> Any:
        """Charge an attempt to a suspect when its turn comes."""
        if hold.activation.counted:
            return hold
        model = self.lanes[hold.lane]
        activation = self._written(hold, self.real.count_suspect_attempt(hold.activation))
        if activation is None:
            return hold
        model.attempts += 1
        assert (activation.attempts, activation.counted) == (model.attempts, True)
        return replace(hold, activation=activation)

    @rule(hold=consumes(holds))
    def lose_the_lane(self, hold: Claim) -> None:
        """A live worker notices that it has lost the lane."""
        if not self.lanes[hold.lane].holds(hold):
            self.run(self.real.uncount_attempt(hold.activation))
            self._absolve(hold)

    def _absolve(self, hold: Claim) -> None:
        model, lost = self.lanes[hold.lane], hold.activation
        same = (model.batch, model.stage) == (hold.number, lost.stage)
        if lost.counted and same and model.fence > lost.fence and model.attempts:
            model.attempts -= 1

    @rule(hold=consumes(holds))
    def die(self, hold: Claim) -> None:
        """A worker dies without a trace."""

    def _written(self, hold: Claim, work: Coroutine[Any, Any, T]) -> T | None:
        """Result of a write, or None if the worker has lost the lane and the write was refused."""
        if self.lanes[hold.lane].holds(hold):
            return self.run(work)
        with pytest.raises(LaneLost):
            self.run(work)
        return None

    # Time and the sweeper

    @rule(seconds=st.sampled_from(PASSES))
    def pass_time(self, seconds: float) -> None:
        self.run(self._shift(seconds))
        for model in self.lanes:
            if model.due_s is not None:
                model.due_s -= seconds

    @precondition(lambda self: any(model.state != "IDLE" for model in self.lanes))
    @rule(target=hints, patience_s=st.sampled_from([0.0, 0.0, PATIENCE_S]))
    def sweep(self, patience_s: float) -> Any:
        mine = {model.scope.lane_id: n for n, model in enumerate(self.lanes)}
        patient = [(project_id, False) for project_id in self.projects]
        sweeps = self.run(
            self.ledger.due_lanes.sweep(limit=1_000, patient=patient, patience_s=patience_s)
        )
        due = {}
        for n, model in enumerate(self.lanes):
            patience = patience_s if model.state == "QUEUED" else 0.0
            if model.due_s is not None and model.due_s < -patience:
                due[n] = model.state
                model.fence += model.state == "RUNNING"
                model.queue(model.stage)
        assert {mine[swept.hint.lane_id]: swept.was for swept in sweeps} == due
        wakes = [swept.hint for swept in sweeps]
        return multiple(*((mine[wake.lane_id], wake) for wake in wakes))

    # Invariants, checked after each step

    @invariant()
    def rows_are_the_models(self) -> None:
        lanes, events = self.run(self._rows())
        for model in self.lanes:
            if model.events:
                assert lanes[model.scope.lane_id] == model.row()
            statuses = [(event.id, str(event.status)) for event in model.events]
            assert events.get(model.scope.lane_id, []) == statuses

    @invariant()
    def events_settle_in_the_order_they_were_accepted(self) -> None:
        for model, order in zip(self.lanes, self.order, strict=True):
            assert order == [event.id for event in model.events[: model.settled]]

    def teardown(self) -> None:
        """From any state, a sweep and one worker bring every event to its end."""
        for _ in range(200):
            if all(model.state == "IDLE" for model in self.lanes):
                break
            self.pass_time(PASSES[-1] * 2)
            for hint in _each(self.sweep(patience_s=0.0)):
                hold = next(iter(_each(self.claim(hint))), None)
                assert hold is not None
                self.finish(hold)
        self.rows_are_the_models()
        self.events_settle_in_the_order_they_were_accepted()
        assert all(len(m.events) == m.settled for m in self.lanes), "events were left behind"

    # SQL

    async def _shift(self, seconds: float) -> None:
        await self._execute(
            f"UPDATE lanes SET due_at = due_at - interval '{seconds} seconds'"
            " WHERE project_id = :project AND due_at IS NOT NULL"
        )

    async def _execute(self, statement: str) -> None:
        project = self.lanes[0].scope.project_id
        async with self.ledger.engine.begin() as connection:
            await connection.execute(text(statement), {"project": project})

    async def _rows(self) -> tuple[dict[UUID, tuple[Any, ...]], dict[UUID, list[Any]]]:
        project = {"project": self.lanes[0].scope.project_id}
        lanes = (
            "SELECT id, state, stage, fence, accepted_seq, settled_seq, attempts, waits, width"
            " FROM lanes WHERE project_id = :project"
        )
        events = (
            "SELECT lane_id, array_agg(id ORDER BY seq) AS ids,"
            " array_agg(status ORDER BY seq) AS statuses"
            " FROM events WHERE project_id = :project GROUP BY lane_id"
        )
        async with self.ledger.engine.connect() as connection:
            lane_rows = (await connection.execute(text(lanes), project)).all()
            event_rows = (await connection.execute(text(events), project)).all()
        return (
            {row[0]: tuple(row[1:]) for row in lane_rows},
            {row[0]: list(zip(row[1], row[2], strict=True)) for row in event_rows},
        )


async def _then_true(work: Coroutine[Any, Any, None]) -> bool:
    await work
    return True


async def _in_a_tuple(work: Coroutine[Any, Any, T]) -> tuple[T]:
    return (await work,)


def _each(result: Any) -> list[Any]:
    """The values that a rule would put into its bundle."""
    return list(result.values) if hasattr(result, "values") else [result]


@pytest.mark.timeout(900)  # shrinking a failure takes many more runs
def test_no_interleaving_breaks_the_lane_state_machine(
    database_url: str, request: pytest.FixtureRequest
) -> None:
    loop = LoopThread()
    # Else the sweeper takes the worker for dead, once the server has run longer than a lease.
    engine = connect(database_url, pool_size=2, name=session_name(WORKER, "model"))
    ledger = Ledger(
        Pools(engine, engine, engine, engine),
        Lanes(
            engine,
            lease_s=LEASE_S,
            queued_grace_s=GRACE_S,
            batch_events=WIDTH,
            batch_tokens=6_000,
            context_messages=0,
        ),
    )
    machine = type("Machine", (LaneMachine,), {"loop": loop, "ledger": ledger})
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=int(request.config.getoption("lane_examples", 60)),
                stateful_step_count=40,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        loop.run(ledger.close())
        loop.close()
