"""costs: each event's share of the costs of its model calls, and daily sums

The costs of existing runs are divided among their events here, once, except those of batches that
no event belongs to any more.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

PARTS = 8
AMOUNTS = ("calls", "prompt_tokens", "completion_tokens", "cost_nano_usd")
ADDED = ", ".join(
    f"{name} = kept.{name} + excluded.{name}" for name in AMOUNTS[:3]
) + """, cost_nano_usd = CASE
        WHEN kept.cost_nano_usd IS NULL THEN excluded.cost_nano_usd
        ELSE kept.cost_nano_usd + coalesce(excluded.cost_nano_usd, 0) END"""


def _share(amount: str) -> str:
    """SQL of one event's share; the differences of rounded running sums leave no remainder."""
    return f"{amount} * upto / total - {amount} * (upto - weight) / total"


SHARE = f"""
CREATE FUNCTION share_cost(
    of_batch uuid, of_model text, on_day date,
    all_calls bigint, all_prompt bigint, all_completion bigint, all_nano bigint
) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO event_costs AS kept (event_id, {", ".join(AMOUNTS)})
    SELECT id, {_share("all_calls")}, {_share("all_prompt")}, {_share("all_completion")},
           {_share("all_nano")}
    FROM (
        SELECT id, greatest(tokens, 1)::bigint AS weight,
               (sum(greatest(tokens, 1)) OVER (ORDER BY seq))::bigint AS upto,
               (sum(greatest(tokens, 1)) OVER ())::bigint AS total
        FROM events WHERE batch_id = of_batch
    ) sharing
    ON CONFLICT (event_id) DO UPDATE SET {ADDED};
    INSERT INTO usage_daily AS kept (project_id, user_id, day, model, part, {", ".join(AMOUNTS)})
    SELECT paying.project_id, line.user_id, on_day, of_model, line.part,
           all_calls, all_prompt, all_completion, all_nano
    FROM (
        -- A replay in a shadow is paid for by the project whose scope it repeats.
        SELECT coalesce(s.project_id, e.project_id) AS project_id, l.user_id
        FROM events e JOIN lanes l ON l.id = e.lane_id LEFT JOIN shadows s ON s.id = e.project_id
        WHERE e.batch_id = of_batch LIMIT 1
    ) paying CROSS JOIN LATERAL (
        VALUES ('', (abs(hashtext(of_batch::text)::bigint) % {PARTS})::smallint),
               (paying.user_id, 0::smallint)
    ) line (user_id, part)
    WHERE line.user_id IS NOT NULL
    ON CONFLICT (project_id, user_id, day, model, part) DO UPDATE SET {ADDED};
END $$
"""
CALL = """share_cost({row}.batch_id, {row}.model, ({row}.finished_at AT TIME ZONE 'UTC')::date,
    {row}.calls, {row}.prompt_tokens, {row}.completion_tokens, round({row}.cost_usd * 1e9)::bigint)"""
# What was shared out as the run of a stage that succeeded then.
MOVED = "code <> 'OUTDATED'"
TRIGGERS = {"stage_runs": "NEW.calls > 0", "failed_runs": f"NEW.calls > 0 AND NEW.{MOVED}"}
PAID = ("stage_runs", "failed_runs")


def _amounts() -> list[sa.Column[int]]:
    whole = [
        sa.Column(name, sa.BigInteger(), nullable=False, server_default="0") for name in AMOUNTS[:3]
    ]
    return [*whole, sa.Column("cost_nano_usd", sa.BigInteger())]


def upgrade() -> None:
    op.create_table(
        "event_costs",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        *_amounts(),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_event_costs")),
    )
    op.create_table(
        "usage_daily",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("part", sa.SmallInteger(), nullable=False),
        *_amounts(),
        sa.PrimaryKeyConstraint(
            "project_id", "user_id", "day", "model", "part", name=op.f("pk_usage_daily")
        ),
    )
    op.execute(SHARE)
    op.execute(
        "CREATE FUNCTION share_run() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN PERFORM {CALL.format(row='NEW')}; RETURN NULL; END $$"
    )
    # The triggers lock out writers until the commit: what they do not see is shared out here.
    for table, paid in TRIGGERS.items():
        op.execute(
            f"CREATE TRIGGER share_run AFTER INSERT ON {table} FOR EACH ROW WHEN ({paid}) "
            "EXECUTE FUNCTION share_run()"
        )
    for table in PAID:
        op.execute(f"SELECT {CALL.format(row='run')} FROM {table} run WHERE calls > 0")


def downgrade() -> None:
    op.execute("DROP FUNCTION share_run CASCADE")
    op.execute("DROP FUNCTION share_cost")
    op.drop_table("usage_daily")
    op.drop_table("event_costs")
