"""Store of the curator's runs.

    QUEUED ──claim──► RUNNING ──(read, save_answer, act)*──► SUCCEEDED, FAILED or CANCELLED
       ▲                 │
       └── park, sweep ──┘

Like a lane, a run has a lease, which its worker renews, and a fence: each write of a worker checks
the fence, so a worker that lost the run writes nothing. An answer of the model is saved before
anything acts on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Row, and_, func, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.curator.sql import statement
from pipeline.domain.consolidation.candidates import Comparable
from pipeline.domain.curation import CuratedSuggestion, Proposal
from pipeline.domain.errors import Conflict, NotFound
from pipeline.domain.memories import Memory
from pipeline.domain.modes import Budgets, budgets_of
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.usage import Usage
from pipeline.ledger.counting import count_near
from pipeline.ledger.fetching import execute, fetch, fetch_known
from pipeline.ledger.filter_conditions import among, shown_lane
from pipeline.ledger.owned_rows import LaneRows, ListPage, page_of_owner
from pipeline.ledger.row_values import columns_of, json_rows, value_of
from pipeline.ledger.store import LedgerStore
from pipeline.ledger.tables import curator_runs, curator_steps, memories
from pipeline.memories.rows import as_memory, open_conflict

NO_SUCH_RUN = "Curator run not found or you don't have permission to access it."
NO_SUCH_SCOPE = "There are no memories of exactly these ids."
# Time after which another worker may take a run whose lease was not renewed.
LEASE = timedelta(minutes=1)
# Time after which the sweeper repeats a hint.
GRACE = timedelta(seconds=60)
# Newest runs of a scope that are kept, beside those that a suggestion names.
KEPT_RUNS = 1_000
_RUNS = LaneRows(curator_runs)
_PROPOSALS: TypeAdapter[Sequence[Proposal]] = TypeAdapter(Sequence[Proposal])


@dataclass(frozen=True, slots=True)
class RunHint:
    """A run to continue; stale once its fence has changed."""

    run_id: UUID
    fence: int


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Budget of one run: number of suggestions, and tokens of prompts and answers."""

    suggestions: int
    tokens: int


@dataclass(frozen=True, slots=True)
class CuratorRun:
    """A claimed run before its next step. See claim_run and read_run for the fields."""

    hint: RunHint
    scope: Scope
    attempts: int
    waits: int
    steps: int
    malformed: int
    suggested: int
    deletes: int
    tokens: int
    limits: RunLimits
    budgets: Budgets
    interrupted: bool
    seen: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class CuratorStep:
    """A saved answer. `shown`: id and version of the memories that the model was shown.

    `proposals`: None for an answer that could not be parsed.
    """

    shown: Sequence[tuple[UUID, int]]
    proposals: Sequence[Proposal] | None


@dataclass(frozen=True, slots=True)
class CuratorRunView:
    """A run as clients see it."""

    id: UUID
    state: str
    origin: str
    steps: int
    suggested: int
    dropped: int
    malformed: int
    limits: RunLimits
    usage: Usage
    code: str | None
    note: str | None
    created_at: datetime
    completed_at: datetime | None


class CuratorRuns(LedgerStore):
    """Store of the runs."""

    def __init__(self, engine: AsyncEngine, *, lease: timedelta = LEASE) -> None:
        super().__init__(engine)
        self.lease = lease

    # For clients

    async def start(self, scope: Scope, limits: RunLimits) -> UUID:
        """Start a run of a scope. Returns its id, or that of the run that is open already.

        Errors: NotFound if the scope does not exist.
        """
        values = columns_of(scope, "project_id", "lane_id") | {
            "run_id": uuid4(),
            "max_suggestions": limits.suggestions,
            "max_tokens": limits.tokens,
        }
        row = await self._direct.row(statement("start_run"), values)
        if row is None:
            raise NotFound(NO_SUCH_SCOPE)
        if row.id is None:  # the open run ended at this moment
            raise Conflict("Another run of this scope has just ended: ask again.")
        return UUID(str(row.id))

    async def get(self, project_id: ProjectId, run_id: UUID) -> CuratorRunView:
        """One run. Errors: NotFound."""
        query = select(curator_runs).where(_mine(project_id, run_id))
        return _view(await fetch_known(self._single, query, missing=NO_SUCH_RUN))

    async def page(
        self,
        project_id: ProjectId,
        *,
        ids: Mapping[str, str] | None = None,
        limit: int,
        offset: int,
    ) -> ListPage[CuratorRunView]:
        """A page of the project's runs, newest first, and their number: see `count_near`.

        `ids`: only those of the lanes with these entity ids.
        """
        of_project = curator_runs.c.project_id == project_id
        order = (curator_runs.c.created_at.desc(), curator_runs.c.id)
        if ids:
            own = await page_of_owner(
                self._direct, project_id, _RUNS, ids, limit=limit, offset=offset
            )
            own_ids = [row_id for (row_id,) in own.rows]
            these = select(curator_runs).where(of_project, among(curator_runs.c.id, own_ids))
            rows = await fetch(self._single, these.order_by(*order))
            return ListPage([_view(row) for row in rows], own.count, own.bounded)
        mine = and_(of_project, shown_lane(curator_runs.c.lane_id))
        query = select(curator_runs).where(mine).order_by(*order).limit(limit).offset(offset)
        counted = select(curator_runs.c.id).where(mine)
        count = await count_near(self._single, counted, limit=limit, offset=offset)
        return ListPage([_view(row) for row in await fetch(self._single, query)], count)

    async def cancel(self, project_id: ProjectId, run_id: UUID) -> None:
        """End an open run; its suggestions stay. A run that has ended is left as it is.

        Errors: NotFound.
        """
        ended = (
            update(curator_runs)
            .where(_mine(project_id, run_id), curator_runs.c.completed_at.is_(None))
            .values(
                state="CANCELLED",
                note="Cancelled by request.",
                fence=curator_runs.c.fence + 1,
                due_at=None,
                completed_at=func.now(),
            )
        )
        async with self._single.connect() as connection:
            if (await connection.execute(ended)).rowcount:
                steps = curator_steps.delete().where(curator_steps.c.run_id == run_id)
                await connection.execute(steps)
                return
        await self.get(project_id, run_id)

    # For the sweeper

    async def schedule(self, limits: RunLimits, *, limit: int) -> int:
        """Create the scheduled runs that are due, up to `limit` open ones of each project.

        Returns their number.
        """
        values = {"max_suggestions": limits.suggestions, "max_tokens": limits.tokens}
        return await execute(self._single, statement("schedule_runs"), values | {"limit": limit})

    async def sweep(self, *, limit: int) -> list[RunHint]:
        """Queue the runs that are due, up to `limit` under way of each project.

        Safe to run in several processes at once.
        """
        values = {"grace": GRACE, "limit": limit}
        rows = await self._direct.rows(statement("sweep_runs"), values)
        return [RunHint(row.id, row.fence) for row in rows]

    # For the worker

    async def claim(self, hint: RunHint) -> RunHint | None:
        """Claim a run. Returns it with its new fence; None for a stale hint."""
        row = await self._direct.row(statement("claim_run"), _claim(hint) | {"lease": self.lease})
        return RunHint(hint.run_id, row.fence) if row else None

    async def renew(self, hint: RunHint) -> bool:
        """Renew the lease of a claimed run. False if another worker has it."""
        row = await self._direct.row(statement("renew_run"), _claim(hint) | {"lease": self.lease})
        return row is not None

    async def read(self, hint: RunHint) -> CuratorRun | None:
        """A claimed run before its next step; None if another worker has it."""
        row = await self._direct.row(statement("read_run"), _claim(hint))
        return _run(hint, row) if row else None

    async def open_step(self, hint: RunHint) -> CuratorStep | None:
        """The step whose answer is saved and not acted on yet."""
        row = await self._direct.row(statement("open_step"), {"run_id": hint.run_id})
        if row is None:
            return None
        shown = [(UUID(m["id"]), m["version"]) for m in row.shown]
        answer = None if row.answer is None else _PROPOSALS.validate_python(row.answer)
        return CuratorStep(shown, answer)

    async def memories(
        self, scope: Scope, *, embedder: str, limit: int
    ) -> list[tuple[Memory, Comparable, bytes | None]]:
        """The scope's memories that no open suggestion names, oldest first.

        Each with its packed vector if this embedder computed it.
        """
        values = {"lane_id": scope.lane_id, "limit": limit, "embedder": embedder}
        rows = await fetch(self._single, statement("memories_to_compare"), values)
        return [(as_memory(r), Comparable(r.id, r.words, r.slot), r.vector) for r in rows]

    async def conflicts(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, UUID]:
        """The open conflict of each of these memories that has one."""
        query = select(memories.c.id, open_conflict).where(
            memories.c.lane_id == scope.lane_id, among(memories.c.id, ids)
        )
        rows = await fetch(self._single, query)
        return {row.id: row.conflict_id for row in rows if row.conflict_id}

    async def save(
        self,
        hint: RunHint,
        *,
        centres: Sequence[UUID],
        shown: Sequence[Memory],
        proposals: Sequence[Proposal] | None,
        usage: Usage,
    ) -> bool:
        """Save a model's answer with its cost. False if another worker has the run."""
        answer = None if proposals is None else _PROPOSALS.dump_json(proposals).decode()
        values = {
            "lease": self.lease,
            "centres": list(centres),
            "shown": json_rows([{"id": m.id, "version": m.version} for m in shown]),
            "answer": answer,
            "malformed": int(proposals is None),
            **usage.columns,
        }
        row = await self._direct.row(statement("save_answer"), _claim(hint) | values)
        return row is not None

    async def create_suggestions(
        self, hint: RunHint, suggestions: Sequence[CuratedSuggestion], *, dropped: int
    ) -> bool:
        """Store the suggestions of the saved step. False if another worker has the run."""
        rows = [
            {
                "id": s.id,
                "kind": s.kind,
                "targets": [{"memory_id": m.id, "version": m.version} for m in s.targets],
                "proposed_text": s.text,
                "reason": s.reason,
                "content_hash": s.content_hash.hex(),
            }
            for s in suggestions
        ]
        values = {"suggestions": json_rows(rows), "dropped": dropped, "lease": self.lease}
        row = await self._direct.row(statement("create_suggestions"), _claim(hint) | values)
        return row is not None

    async def end(
        self, hint: RunHint, state: str, *, code: str | None = None, note: str | None = None
    ) -> None:
        """End a run, unless another worker has it, and delete the scope's oldest ended runs."""
        values = {"state": state, "code": code, "note": note, "kept": KEPT_RUNS}
        await self._direct.row(statement("end_run"), _claim(hint) | values)

    async def uncount_attempt(self, hint: RunHint) -> None:
        """Take back the counted attempt of a worker that lost its run: it was no crash."""
        await self._direct.row(statement("uncount_attempt"), _claim(hint))

    async def park(self, hint: RunHint, *, delay_s: float, waits: bool) -> int | None:
        """Queue a run again after a delay. Returns its number of waits; None if it is lost.

        `waits`: count this as a wait for a model.
        """
        values = {"delay": timedelta(seconds=delay_s), "waits": int(waits)}
        row = await self._direct.row(statement("park_run"), _claim(hint) | values)
        return row.waits if row else None


def _claim(hint: RunHint) -> dict[str, Any]:
    return {"run_id": hint.run_id, "fence": hint.fence}


def _mine(project_id: ProjectId, run_id: UUID) -> ColumnElement[bool]:
    return and_(curator_runs.c.project_id == project_id, curator_runs.c.id == run_id)


def _run(hint: RunHint, row: Any) -> CuratorRun:
    """A row of read_run as a value."""
    return value_of(
        CuratorRun,
        row,
        hint=hint,
        scope=Scope(
            ProjectId(row.project_id), row.user_id, row.agent_id, row.app_id, row.scope_run_id
        ),
        tokens=row.prompt_tokens + row.completion_tokens,
        limits=RunLimits(row.max_suggestions, row.max_tokens),
        budgets=budgets_of(row.budget),
        seen=frozenset(row.seen),
    )


def _view(row: Row[Any]) -> CuratorRunView:
    """A row of curator_runs as clients see it."""
    return value_of(
        CuratorRunView,
        row,
        limits=RunLimits(row.max_suggestions, row.max_tokens),
        usage=Usage(row.model, row.calls, row.prompt_tokens, row.completion_tokens, row.cost_usd),
    )
