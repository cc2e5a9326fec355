"""Runs of the curator: for each memory a group of near ones, and a model's proposals about them.

A run is a sequence of steps; each asks one question about a few memories:

    choose   memories that no step has covered, oldest first, and the nearest ones of each
    ask      the model; its answer is saved
    act      the proposals that pass the checks are stored as open suggestions

A worker renews the run's lease while it works. One that dies loses at most the current call: the
next one continues after the last saved answer, as soon as the lease has ended. Nothing changes a
memory until a person decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

import structlog

from pipeline.cpu_thread import beside_loop
from pipeline.curator.ports import CuratorStores
from pipeline.curator.store import CuratorRun, CuratorRuns, CuratorStep, RunHint
from pipeline.domain.consolidation.candidates import Comparable, Compared, Ranking
from pipeline.domain.curation import (
    DELETE_SHARE,
    LEAST_DELETES,
    CuratedMemory,
    CuratedSuggestion,
    CurationRequest,
    Proposal,
    reviewed,
)
from pipeline.domain.errors import MalformedAnswer, PermanentError, TransientError
from pipeline.domain.events import FailureCode
from pipeline.domain.memories import Memory
from pipeline.domain.modes import CostLimit, Spent, uses
from pipeline.domain.suggestions import SuggestionKind
from pipeline.domain.usage import Usage
from pipeline.domain.vectors import from_bytes
from pipeline.lanes.leases import BEATS
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.ports import MemoryModel
from pipeline.vector_index.index import compared

log = structlog.get_logger()

# Memories that one question is about, and near ones shown with each.
CENTRES, NEAR = 10, 5
# Maximum number of memories of one run: the oldest that no open suggestion names.
MOST_MEMORIES = 2_000
# Malformed answers, waits for a model and crashed attempts after which a run fails.
MOST_MALFORMED, MOST_WAITS, MOST_ATTEMPTS = 3, 10, 5
WAIT_S = 60.0
# Pause between two tries to queue a run again after an outage of the ledger.
PARK_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class RunEnding:
    """The end of a run: its last state, the code of a failure, and a reason."""

    state: str
    code: FailureCode | None = None
    note: str | None = None


@dataclass(slots=True)
class ScopeView:
    """The memories of a run's scope. `free`: those that no suggestion names, by id."""

    size: int
    free: dict[UUID, Memory]
    ranking: Ranking
    vectors: dict[UUID, bytes] = field(repr=False)

    @classmethod
    def of(cls, rows: Sequence[tuple[Memory, Comparable, bytes | None]]) -> ScopeView:
        """The view of these rows."""
        return cls(
            len(rows),
            {memory.id: memory for memory, _, _ in rows},
            Ranking([comparable for _, comparable, _ in rows]),
            {memory.id: vector for memory, _, vector in rows if vector is not None},
        )


async def run(hint: RunHint, *, ledger: CuratorStores, model: MemoryModel, embedder: str) -> None:
    """Claim a run and carry out its steps until it ends or another worker has it.

    `embedder`: only vectors of this embedder are compared.
    """
    claimed = await ledger.curator.claim(hint)
    if claimed is None:
        return
    try:
        await _continue(claimed, ledger, model, embedder)
    except asyncio.CancelledError:
        await asyncio.shield(ledger.curator.park(claimed, delay_s=0, waits=False))
        raise
    except LedgerUnavailable as error:
        await _park(claimed, error, ledger)


async def _continue(
    claimed: RunHint, ledger: CuratorStores, model: MemoryModel, embedder: str
) -> None:
    """Carry out the steps of a claimed run. Errors: LedgerUnavailable."""
    try:
        async with _leased(claimed, ledger.curator) as missed:
            is_lost = await _steps(claimed, ledger, model, embedder)
        if is_lost and missed.is_set():
            await ledger.curator.uncount_attempt(claimed)
    except TransientError as error:
        await _wait(claimed, error, ledger)
    except PermanentError as error:
        await _end(claimed, ledger, RunEnding("FAILED", error.code, str(error)))


@asynccontextmanager
async def _leased(hint: RunHint, runs: CuratorRuns) -> AsyncIterator[asyncio.Event]:
    """Renew the lease of a run for as long as the block runs.

    Yields an event that is set once the ledger does not answer a heartbeat.
    """
    missed = asyncio.Event()
    heartbeat = asyncio.create_task(_beat(hint, runs, missed))
    try:
        yield missed
    finally:
        heartbeat.cancel()
        await asyncio.wait([heartbeat])


async def _beat(hint: RunHint, runs: CuratorRuns, missed: asyncio.Event) -> None:
    """Renew the lease once per interval, until cancelled or until another worker has the run.

    After an error of the ledger the next beat renews it.
    """
    interval_s = runs.lease.total_seconds() / BEATS
    while True:
        await asyncio.sleep(interval_s)
        try:
            async with asyncio.timeout(interval_s):
                if not await runs.renew(hint):
                    return
        except (LedgerUnavailable, TimeoutError) as error:
            missed.set()
            log.warning("heartbeat_missed", error=type(error).__name__)


async def _steps(hint: RunHint, ledger: CuratorStores, model: MemoryModel, embedder: str) -> bool:
    """Carry out steps until the run has an end, or is lost, which returns True."""
    view: ScopeView | None = None
    while (current := await ledger.curator.read(hint)) is not None:
        if (ending := await _ending(current, ledger)) is not None:
            await _end(hint, ledger, ending)
            return False
        step = await ledger.curator.open_step(hint)
        if step is None:
            view = view or await _view(current, ledger, embedder)
            centres = [i for i in view.free if i not in current.seen][:CENTRES]
            if not centres:
                await _end(hint, ledger, _unusable(current) or RunEnding("SUCCEEDED"))
                return False
            step = await _ask(current, centres, view, ledger, model)
        if step is None or not await _suggest(current, step, view, ledger):
            return True
    return True


async def _suggest(
    current: CuratorRun, step: CuratorStep, view: ScopeView | None, ledger: CuratorStores
) -> bool:
    """Store the proposals of a step that pass the checks. False if the run is lost.

    An add creates suggestions too, of the changes that it withholds: see
    pipeline/domain/consolidation/reconcile.
    """
    size = view.size if view else await ledger.memories.size(current.scope)
    suggestions = await _passing(current, step, ledger, size=size)
    dropped = len(step.proposals or ()) - len(suggestions)
    stored = await ledger.curator.create_suggestions(current.hint, suggestions, dropped=dropped)
    if stored and view:
        for memory in (memory for made in suggestions for memory in made.targets):
            view.free.pop(memory.id, None)
    return stored


async def _passing(
    current: CuratorRun, step: CuratorStep, ledger: CuratorStores, *, size: int
) -> list[CuratedSuggestion]:
    """The suggestions of the proposals that pass the checks.

    A proposal about a memory that has changed since it was shown is dropped. `size`: number of the
    scope's memories, which limits the deletes.
    """
    shown = dict(step.shown)
    rows = await ledger.memories.active(current.scope.project_id, list(shown))
    contested = await ledger.curator.conflicts(current.scope, list(shown))
    unchanged = {
        m.id: replace(m, conflict_id=contested.get(m.id)) for m in rows if m.version == shown[m.id]
    }
    left = max(LEAST_DELETES, int(DELETE_SHARE * size)) - current.deletes
    ids = [memory_id for memory_id, _ in step.shown]
    suggestions: list[CuratedSuggestion] = []
    for proposal in step.proposals or ():
        targets = [unchanged[ids[at]] for at in proposal.targets if ids[at] in unchanged]
        made = len(targets) == len(proposal.targets) and reviewed(
            proposal.kind, targets, proposal.text, proposal.reason
        )
        if made and (made.kind is not SuggestionKind.DELETE or left > 0):
            left -= made.kind is SuggestionKind.DELETE
            suggestions.append(made)
    return suggestions[: max(0, current.limits.suggestions - current.suggested)]


async def _ending(current: CuratorRun, ledger: CuratorStores) -> RunEnding | None:
    """The reason to end a run before its next step, or None."""
    if current.interrupted:
        return RunEnding("CANCELLED", note="A new message arrived.")
    failures = (
        (current.attempts > MOST_ATTEMPTS, FailureCode.POISON_CRASH, "It crashed its worker."),
        (current.waits > MOST_WAITS, FailureCode.LLM_UNAVAILABLE, "The model did not answer."),
        (
            current.malformed >= MOST_MALFORMED,
            FailureCode.LLM_BAD_OUTPUT,
            f"{current.malformed} answers could not be parsed.",
        ),
    )
    for failed, code, note in failures:
        if failed:
            return RunEnding("FAILED", code, note)
    limits = (
        (current.suggested, current.limits.suggestions, "suggestions"),
        (current.tokens, current.limits.tokens, "tokens"),
    )
    for used, most, unit in limits:
        if used >= most:
            return _unusable(current) or RunEnding(
                "SUCCEEDED", note=f"The limit of {most} {unit} is reached."
            )
    return await _budget(current, ledger)


def _unusable(current: CuratorRun) -> RunEnding | None:
    """The end of a run without one usable answer, or None."""
    if not current.malformed or current.malformed < current.steps:
        return None
    note = f"{current.malformed} of {current.steps} answers could not be parsed."
    return RunEnding("FAILED", FailureCode.LLM_BAD_OUTPUT, note)


async def _budget(current: CuratorRun, ledger: CuratorStores) -> RunEnding | None:
    """The end of a run whose project or user has used up a budget, or None."""
    spent: dict[str, tuple[CostLimit, Spent]] = {}
    project_id, user_id = current.scope.project_id, current.scope.user_id
    if (budget := current.budgets.project) is not None:
        spent["project"] = budget, await ledger.costs.spent(project_id, None, budget.per)
    if user_id and (budget := current.budgets.user) is not None:
        spent["user"] = budget, await ledger.costs.spent(project_id, user_id, budget.per)
    limits = uses(spent)
    exceeded = bool(limits) and limits[0].share >= 1
    return RunEnding("SUCCEEDED", note=limits[0].reason) if exceeded else None


async def _view(current: CuratorRun, ledger: CuratorStores, embedder: str) -> ScopeView:
    """Read the memories of a run's scope."""
    rows = await ledger.curator.memories(current.scope, embedder=embedder, limit=MOST_MEMORIES)
    return await beside_loop(lambda: ScopeView.of(rows))


async def _ask(
    current: CuratorRun,
    centres: Sequence[UUID],
    view: ScopeView,
    ledger: CuratorStores,
    model: MemoryModel,
) -> CuratorStep | None:
    """Ask the model about these memories and save its answer. None if the run is lost."""
    groups = await near_groups(centres, view)
    ids = list(dict.fromkeys(memory_id for group in groups for memory_id in group))
    place = {memory_id: at for at, memory_id in enumerate(ids)}
    shown = [view.free[memory_id] for memory_id in ids]
    members: dict[UUID, list[int]] = {}
    for memory_id, conflict_id in (await ledger.curator.conflicts(current.scope, ids)).items():
        members.setdefault(conflict_id, []).append(place[memory_id])
    request = CurationRequest(
        [CuratedMemory(m.text, m.said_at, m.speaker, m.slot, m.cardinality) for m in shown],
        [[place[memory_id] for memory_id in group] for group in groups],
        [sorted(positions) for positions in members.values() if len(positions) > 1],
    )
    proposals: Sequence[Proposal] | None
    try:
        answer = await model.curate(request)
        proposals, usage = answer.value, answer.usage
    except MalformedAnswer as error:
        proposals, usage = None, error.usage
        log.warning("curator_answer_malformed", run_id=str(current.hint.run_id))
    saved = await ledger.curator.save(
        current.hint, centres=centres, shown=shown, proposals=proposals, usage=with_failed(usage)
    )
    return CuratorStep([(m.id, m.version) for m in shown], proposals) if saved else None


async def near_groups(centres: Sequence[UUID], view: ScopeView) -> list[list[UUID]]:
    """Each centre with its NEAR nearest memories, by rank of meaning, words and slot.

    Ranked beside the event loop, one centre at a time, so that other work of the process goes on.
    """
    packed = [(i, view.vectors[i]) for i in view.free if i in view.vectors]
    embedded = [i for i in centres if i in view.vectors]
    vectors = [from_bytes(view.vectors[i]) for i in embedded]
    near = await beside_loop(lambda: compared(packed, vectors))
    cosines = dict(zip(embedded, near, strict=True))
    return [
        await beside_loop(partial(_near_group, centre, cosines.get(centre, {}), view))
        for centre in centres
    ]


def _near_group(centre: UUID, cosines: Mapping[UUID, float], view: ScopeView) -> list[UUID]:
    memory = view.free[centre]
    ranking = view.ranking.of(Compared(memory.text, memory.slot, cosines))
    return [centre, *[i for i in ranking if i != centre and i in view.free][:NEAR]]


def with_failed(usage: Usage) -> Usage:
    """The usage including that of the models that were called before without success."""
    paid = sum((failed.usage for failed in usage.failed), Usage())
    return replace(paid + usage, model=usage.model, failed=())


async def _wait(hint: RunHint, error: TransientError, ledger: CuratorStores) -> None:
    """Queue the run for a later attempt; after too many it fails."""
    delay_s = error.retry_after_s or WAIT_S
    waits = await ledger.curator.park(hint, delay_s=delay_s, waits=True)
    log.info("curator_run_waits", run_id=str(hint.run_id), code=error.code, waits=waits)


async def _park(hint: RunHint, error: LedgerUnavailable, ledger: CuratorStores) -> None:
    """Queue the run for a later attempt once the ledger answers: its outage is no crash.

    This may take any time. If the lease has ended by then, the sweeper may have queued it already.
    """
    log.warning("curator_run_interrupted", run_id=str(hint.run_id), error=error.reason)
    while True:
        try:
            if await ledger.curator.park(hint, delay_s=WAIT_S, waits=False) is None:
                await ledger.curator.uncount_attempt(hint)
        except LedgerUnavailable:
            await asyncio.sleep(PARK_PAUSE_S)
        else:
            return


async def _end(hint: RunHint, ledger: CuratorStores, ending: RunEnding) -> None:
    await ledger.curator.end(hint, ending.state, code=ending.code, note=ending.note)
    log.info("curator_run_ended", run_id=str(hint.run_id), state=ending.state, code=ending.code)
