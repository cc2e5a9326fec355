"""Lanes: one row per scope, with the state of its queue, and its owner with a lease.

IDLE     nothing to do
QUEUED   a task is in the broker; the sweeper sends another one after due_at (long grace)
RUNNING  a worker owns the lane; due_at = end of its lease (short, renewed by heartbeat)
WAITING  paused until due_at (an outage, a rate limit)
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)

from pipeline.ledger.tables.columns import (
    SHARED_OWNERS,
    by_owner,
    metadata,
    now,
    partial,
    scope_ids,
    time,
)

# The order of an owner's lanes in the indexes.
NEWEST = (text("accepted_at DESC"), "id")
# The lanes that are not idle.
BUSY = "due_at IS NOT NULL"

lanes = Table(
    "lanes",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    *scope_ids(),
    # True in a temporary run; a trigger copies it to the lane's memories.
    Column("temporary", Boolean, nullable=False, server_default="false"),
    Column("accepted_seq", BigInteger, nullable=False, server_default="0"),
    Column("settled_seq", BigInteger, nullable=False, server_default="0"),
    # Seq of the last event of normal priority; NULL: all events have it. If it is settled, the lane
    # has only events of low priority to do.
    Column("normal_seq", BigInteger),
    # Messages up to this seq are deleted: they are in no model's context and in no search.
    Column("forgotten_seq", BigInteger, nullable=False, server_default="0"),
    Column("state", Text, nullable=False),
    Column("stage", Text, nullable=False, server_default="extract"),
    Column("batch_id", Uuid),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    # Number of erasures. A writer without an activation, such as that of a summary, compares it.
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    Column("owner", Uuid),
    time("due_at"),
    Column("attempts", SmallInteger, nullable=False, server_default="0"),
    Column("waits", SmallInteger, nullable=False, server_default="0"),
    Column("wait_code", Text),
    # Error of the dependency; only valid while the lane is WAITING.
    Column("wait_cause", Text),
    # Maximum number of events of the next batch; NULL: the setting. Halved to find a poison event.
    Column("width", SmallInteger),
    now("created_at"),
    # Time of its last event, or later: no event of the lane is newer. A trigger keeps it.
    now("accepted_at"),
    # Earliest time at which the curator's schedule looks at the scope; NULL: no batch has ended
    # since the last look. Set in every project, so that a schedule can begin at any time.
    time("next_curation_at"),
    CheckConstraint("state IN ('IDLE', 'QUEUED', 'RUNNING', 'WAITING')", name="state"),
    CheckConstraint("(state = 'IDLE') = (due_at IS NULL)", name="due"),
    # Not "state <> 'IDLE'": the planner could use that for any statement with a condition on it.
    partial("ix_lanes_due", "due_at", where=BUSY),
    # Reads of many lanes begin with those of an owner that were used last. Temporary ones, which
    # only reads of their run show, are apart.
    Index("ix_lanes_user_shown", "project_id", "user_id", "temporary", *NEWEST),
    *by_owner("lanes", "temporary", *NEWEST, suffix="_shown", names=SHARED_OWNERS),
    *by_owner("lanes", *NEWEST, suffix="_latest", names=["run_id"]),
    partial(
        "ix_lanes_curation", "project_id", "next_curation_at", where="next_curation_at IS NOT NULL"
    ),
    # The lanes that reads of several scopes leave out.
    partial("ix_lanes_temporary", "id", where="temporary"),
    # The unfinished events of an owner are in these lanes.
    partial("ix_lanes_user_busy", "project_id", "user_id", where=BUSY),
    *by_owner("lanes", suffix="_busy", where=BUSY),
)
