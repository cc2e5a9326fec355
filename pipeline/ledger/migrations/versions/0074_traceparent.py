"""traceparent of events: the span of the request that added an event (W3C Trace Context)

So all stages of an event, in any process and after any restart, belong to one trace.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0074"
down_revision = "0073"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("events", Column("traceparent", Text))


def downgrade() -> None:
    op.drop_column("events", "traceparent")
