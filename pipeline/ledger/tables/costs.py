"""Costs of model calls, kept by triggers on stage_runs and failed_runs.

    event_costs    each event's share of the costs of its batches
    usage_daily    sums by project, day and model; and again by user

A batch's costs are shared by the tokens of its events, and the shares add up to the total: see
migration 0023. Money is in billionths of a dollar: integers can be shared and added without a
remainder.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Date, SmallInteger, Table, Text, Uuid

from pipeline.ledger.tables.columns import metadata, partial


def _amounts() -> list[Column[int]]:
    counts = ("calls", "prompt_tokens", "completion_tokens")
    whole = [Column(name, BigInteger, nullable=False, server_default="0") for name in counts]
    # NULL if the price is unknown.
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
    # Empty in the rows with the sums of the whole project.
    Column("user_id", Text, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("model", Text, primary_key=True),
    # Splits a sum over several rows, so that lanes of a project do not wait for each other's lock.
    Column("part", SmallInteger, primary_key=True),
    *_amounts(),
    # For the retention of the rows of users.
    partial("ix_usage_daily_users", "day", where="user_id <> ''::text"),
)
