"""What models were paid, kept by triggers on stage_runs and failed_runs.

    event_costs    each event's own share of what the batches cost that it was part of
    usage_daily    sums by project, day and model; once more for each user

Shares go by the events' tokens and add up to the bill: see migration 0023. Money is in billionths
of a dollar, for whole numbers can be shared and added without a remainder.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Date, SmallInteger, Table, Text, Uuid

from pipeline.ledger.tables.projects import metadata


def _amounts() -> list[Column[int]]:
    counts = ("calls", "prompt_tokens", "completion_tokens")
    whole = [Column(name, BigInteger, nullable=False, server_default="0") for name in counts]
    # NULL where no price is known.
    return [*whole, Column("cost_nano_usd", BigInteger)]


event_costs = Table(
    "event_costs",
    metadata,
    Column("event_id", Uuid, primary_key=True),
    *_amounts(),
)

usage_daily = Table(
    "usage_daily",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    # Empty in the rows that count all of the project.
    Column("user_id", Text, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("model", Text, primary_key=True),
    # The rows of a project are several, so that its lanes do not wait for each other.
    Column("part", SmallInteger, primary_key=True),
    *_amounts(),
)
