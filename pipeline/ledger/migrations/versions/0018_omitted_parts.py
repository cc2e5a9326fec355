"""omitted parts: what of a message was not kept, for its event's receipt

Messages of OpenAI-style histories have images, audio, files and tool calls. Their text is kept; the
rest is listed here, by part and reason, and not in the event's options: events share a batch where
their options are equal.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("messages", sa.Column("omitted", postgresql.JSONB()))


def downgrade() -> None:
    op.drop_column("messages", "omitted")
