"""The fence of a transaction with several statements, and the output it keeps with its effects."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain import Activation, StageName, Usage
from pipeline.errors import LaneLost
from pipeline.ledger.schema import lanes, stage_runs


async def hold(connection: AsyncConnection, activation: Activation) -> None:
    """Lock the lane for this transaction. Errors: LaneLost where the fence has moved on."""
    held = await connection.scalar(
        select(lanes.c.id)
        .where(
            lanes.c.id == activation.lane_id,
            lanes.c.fence == activation.fence,
            lanes.c.state == "RUNNING",
        )
        .with_for_update()
    )
    if held is None:
        raise LaneLost


async def keep(
    connection: AsyncConnection,
    activation: Activation,
    stage: StageName,
    output: Any,
    usage: Usage,
) -> None:
    """Save a stage's output and cost in the transaction of its effects: all or nothing."""
    await connection.execute(
        insert(stage_runs).values(
            batch_id=activation.batch_id, stage=stage, output=output, ms=0, **usage_columns(usage)
        )
    )


def usage_columns(usage: Usage) -> dict[str, Any]:
    return {
        "model": usage.model,
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_usd": usage.cost_usd,
    }
