"""modes: the mode and the budgets of a project, the mode of an event, the prompt of a model call"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

RUNS = ("stage_runs", "failed_runs")
TEXTS = (("projects", "mode"), ("events", "mode"), ("events", "mode_reason"))


def upgrade() -> None:
    for table, name in TEXTS:
        op.add_column(table, sa.Column(name, sa.Text()))
    op.add_column("projects", sa.Column("budget", postgresql.JSONB()))
    for table in RUNS:
        op.add_column(table, sa.Column("prompt", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    for table in RUNS:
        op.drop_column(table, "prompt")
    op.drop_column("projects", "budget")
    for table, name in TEXTS:
        op.drop_column(table, name)
