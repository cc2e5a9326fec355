"""nothing twice, and a way back: idempotency keys, replay, undo"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('idempotency_keys',
    sa.Column('project_id', sa.Uuid(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('digest', sa.LargeBinary(), nullable=False),
    sa.Column('event_id', sa.Uuid(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'key', name=op.f('pk_idempotency_keys'))
    )
    op.add_column('events', sa.Column('replays', sa.SmallInteger(), server_default='0', nullable=False))
    op.add_column('events', sa.Column('replayed_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('events', sa.Column('undone_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('memory_history', sa.Column('expiration_date', sa.Date(), nullable=True))
    op.add_column('memory_history', sa.Column('undoes', sa.Uuid(), nullable=True))
    # Only the newest date was kept until now; it is the best guess for the states before.
    op.execute('UPDATE memory_history SET expiration_date = m.expiration_date '
               'FROM memories m WHERE m.id = memory_history.memory_id')
    # What a person did carried the event before it; from now on it carries none.
    op.execute("UPDATE memory_history SET event_id = NULL, message_ordinal = NULL "
               "WHERE reason IN ('Edited by request.', 'Deleted by request.')")
    op.create_index('ix_memory_history_event', 'memory_history', ['event_id'], unique=False, postgresql_where=sa.text('event_id IS NOT NULL'))
    op.add_column('relations', sa.Column('ended_by', sa.Uuid(), nullable=True))
    op.create_index('ix_relations_event', 'relations', ['event_id'], unique=False)
    op.create_index('ix_relations_ended', 'relations', ['ended_by'], unique=False, postgresql_where=sa.text('ended_by IS NOT NULL'))


def downgrade() -> None:
    op.drop_index('ix_relations_ended', table_name='relations', postgresql_where=sa.text('ended_by IS NOT NULL'))
    op.drop_index('ix_relations_event', table_name='relations')
    op.drop_column('relations', 'ended_by')
    op.drop_index('ix_memory_history_event', table_name='memory_history', postgresql_where=sa.text('event_id IS NOT NULL'))
    op.drop_column('memory_history', 'undoes')
    op.drop_column('memory_history', 'expiration_date')
    op.drop_column('events', 'undone_at')
    op.drop_column('events', 'replayed_at')
    op.drop_column('events', 'replays')
    op.drop_table('idempotency_keys')
