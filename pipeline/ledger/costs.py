"""What was paid for nothing: tries of a stage that ended in an error."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.domain import Activation, FailureCode, Usage
from pipeline.ledger.sql import statement


class Costs:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def add(
        self, activation: Activation, code: FailureCode, usage: Usage, *, ms: float
    ) -> None:
        """Put them on the receipt of the activation's batch; nowhere if the lane is lost."""
        values = {
            "lane_id": activation.lane_id,
            "fence": activation.fence,
            "owner": activation.owner,
            "batch_id": activation.batch_id,
            "stage": activation.stage,
            "code": code,
            "model": usage.model,
            "calls": usage.calls,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost_usd": usage.cost_usd,
            "ms": ms,
        }
        async with self._engine.connect() as connection:
            await connection.execute(statement("add_failed_run"), values)
