"""Summarize: make the next version of a conversation's summary.

It runs in a task of its own, after the adds: no add waits for it. If it fails, the previous version
stays in use, and the reason is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import structlog

from pipeline import telemetry
from pipeline.accounting.costs import Costs
from pipeline.domain.errors import StageError, TransientError
from pipeline.domain.modes import APPEND_FROM, Mode
from pipeline.domain.summaries import SummaryTask
from pipeline.domain.usage import Usage
from pipeline.ingest.modes import budget_uses
from pipeline.ingest.retry import wait_s
from pipeline.models.circuit_breaker import on_behalf_of
from pipeline.ports import MemoryModel
from pipeline.summaries.store import Summaries

log = structlog.get_logger()

# Seconds until a version is tried again whose budget is used up, or whose answer was unusable;
# multiplied by the number of tries, up to the longest.
PAUSE_S, LONGEST_PAUSE_S = 300.0, 3_600.0
# Longest time of one version, with the calls of the model and its fallbacks.
LEASE_S = 300.0
TASK = "summarize"


@dataclass(frozen=True, slots=True)
class Summarizer:
    """Makes summaries with a language model."""

    summaries: Summaries
    costs: Costs
    model: MemoryModel

    async def summarize(self, lane_id: UUID) -> None:
        """Make the next version of a scope's summary, if it is still due.

        Raises no error of the model: the reason is stored.
        """
        summaries = self.summaries
        if not await summaries.claim(lane_id, lease_s=LEASE_S):
            return
        task = await summaries.task(lane_id)
        if task is None:
            return
        if not task.request.messages:
            await summaries.postpone(task)
            return
        if (reason := await self._refusal(task)) is not None:
            await summaries.postpone(task, reason, delay_s=_pause_s(task))
            return
        try:
            with on_behalf_of(task.project_id):
                answer = await self.model.summarize(task.request)
        except StageError as error:
            await self._account(task, error.usage)
            delay_s = _pause_s(task)
            if isinstance(error, TransientError):
                delay_s = wait_s(task.tries, error.retry_after_s)
            await summaries.postpone(task, f"{error.code}: {error}", delay_s=delay_s)
            log.warning("summary_failed", lane_id=str(lane_id), code=error.code)
            return
        await self._account(task, answer.usage)
        stored = await summaries.save(task, answer.value, answer.usage)
        log.info("summary_made", lane_id=str(lane_id), version=task.version + 1, stored=stored)

    async def _refusal(self, task: SummaryTask) -> str | None:
        """The reason to make no call now: the mode of the project, or a budget."""
        if task.mode is Mode.TURNS:
            return "The project's mode is turns."
        uses = await budget_uses(task.project_id, task.user_id, task.budgets, self.costs)
        return uses[0].reason if uses and uses[0].share >= APPEND_FROM else None

    async def _account(self, task: SummaryTask, usage: Usage) -> None:
        """Add the costs of the calls, those of failed tries included, to the project's usage."""
        for paid in (usage, *(failed.usage for failed in usage.failed)):
            if paid.calls:
                await self.costs.add_to_usage(task.project_id, task.lane_id, paid)
                telemetry.model_calls.labels(paid.model, TASK).inc(paid.calls)
                telemetry.model_tokens.labels(paid.model, "prompt").inc(paid.prompt_tokens)
                telemetry.model_tokens.labels(paid.model, "completion").inc(paid.completion_tokens)


def _pause_s(task: SummaryTask) -> float:
    return min(PAUSE_S * (task.tries + 1), LONGEST_PAUSE_S)
