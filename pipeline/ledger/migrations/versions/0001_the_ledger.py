"""the ledger"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('entities',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('project_id', sa.Uuid(), nullable=False),
    sa.Column('lane_id', sa.Uuid(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('name_key', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_entities')),
    sa.UniqueConstraint('lane_id', 'name_key', name=op.f('uq_entities_lane_id_name_key'))
    )
    op.create_table('lanes',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('project_id', sa.Uuid(), nullable=False),
    sa.Column('user_id', sa.Text(), nullable=True),
    sa.Column('agent_id', sa.Text(), nullable=True),
    sa.Column('app_id', sa.Text(), nullable=True),
    sa.Column('run_id', sa.Text(), nullable=True),
    sa.Column('accepted_seq', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('settled_seq', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('stage', sa.Text(), server_default='extract', nullable=False),
    sa.Column('batch_id', sa.Uuid(), nullable=True),
    sa.Column('fence', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('owner', sa.Uuid(), nullable=True),
    sa.Column('due_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('attempts', sa.SmallInteger(), server_default='0', nullable=False),
    sa.Column('waits', sa.SmallInteger(), server_default='0', nullable=False),
    sa.Column('wait_code', sa.Text(), nullable=True),
    sa.Column('width', sa.SmallInteger(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.CheckConstraint("(state = 'IDLE') = (due_at IS NULL)", name=op.f('ck_lanes_due')),
    sa.CheckConstraint("state IN ('IDLE', 'QUEUED', 'RUNNING', 'WAITING')", name=op.f('ck_lanes_state')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_lanes'))
    )
    op.create_index('ix_lanes_due', 'lanes', ['due_at'], unique=False, postgresql_where=sa.text("state <> 'IDLE'"))
    op.create_index('ix_lanes_owner', 'lanes', ['project_id', 'user_id'], unique=False)
    op.create_table('memories',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('project_id', sa.Uuid(), nullable=False),
    sa.Column('lane_id', sa.Uuid(), nullable=False),
    sa.Column('user_id', sa.Text(), nullable=True),
    sa.Column('agent_id', sa.Text(), nullable=True),
    sa.Column('app_id', sa.Text(), nullable=True),
    sa.Column('run_id', sa.Text(), nullable=True),
    sa.Column('text', sa.Text(), nullable=False),
    sa.Column('text_hash', sa.LargeBinary(), nullable=False),
    sa.Column('metadata', postgresql.JSONB(astext_type=sa.Text()), server_default='{}', nullable=False),
    sa.Column('attributed_to', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), server_default='ACTIVE', nullable=False),
    sa.Column('immutable', sa.Boolean(), server_default='false', nullable=False),
    sa.Column('expiration_date', sa.Date(), nullable=True),
    sa.Column('embedding', sa.LargeBinary(), nullable=False),
    sa.Column('embedder', sa.Text(), nullable=False),
    sa.Column('version', sa.Integer(), server_default='1', nullable=False),
    sa.Column('projected_version', sa.Integer(), server_default='0', nullable=False),
    sa.Column('event_id', sa.Uuid(), nullable=True),
    sa.Column('message_ordinal', sa.SmallInteger(), nullable=True),
    sa.Column('valid_from', sa.DateTime(timezone=True), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.CheckConstraint("state IN ('ACTIVE', 'RETIRED')", name=op.f('ck_memories_state')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_memories'))
    )
    op.create_index('ix_memories_feed', 'memories', ['project_id', 'created_at'], unique=False)
    op.create_index('ix_memories_unprojected', 'memories', ['id'], unique=False, postgresql_where=sa.text('projected_version <> version'))
    op.create_index('ix_memories_user', 'memories', ['project_id', 'user_id', 'created_at'], unique=False)
    op.create_index('uq_memories_active_text', 'memories', ['lane_id', 'text_hash'], unique=True, postgresql_where=sa.text("state = 'ACTIVE'"))
    op.create_table('memory_history',
    sa.Column('memory_id', sa.Uuid(), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('project_id', sa.Uuid(), nullable=False),
    sa.Column('event', sa.Text(), nullable=False),
    sa.Column('old_text', sa.Text(), nullable=True),
    sa.Column('new_text', sa.Text(), nullable=True),
    sa.Column('metadata', postgresql.JSONB(astext_type=sa.Text()), server_default='{}', nullable=False),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('event_id', sa.Uuid(), nullable=True),
    sa.Column('message_ordinal', sa.SmallInteger(), nullable=True),
    sa.Column('valid_from', sa.DateTime(timezone=True), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('memory_id', 'version', name=op.f('pk_memory_history'))
    )
    op.create_table('messages',
    sa.Column('lane_id', sa.Uuid(), nullable=False),
    sa.Column('seq', sa.BigInteger(), nullable=False),
    sa.Column('ordinal', sa.SmallInteger(), nullable=False),
    sa.Column('role', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('content', sa.Text(), nullable=False),
    sa.Column('said_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('lane_id', 'seq', 'ordinal', name=op.f('pk_messages'))
    )
    op.create_table('projects',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('organization_id', sa.Uuid(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('custom_instructions', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_projects'))
    )
    op.create_table('receipts',
    sa.Column('event_id', sa.Uuid(), nullable=False),
    sa.Column('ordinal', sa.SmallInteger(), nullable=False),
    sa.Column('outcome', sa.Text(), nullable=False),
    sa.Column('memory_id', sa.Uuid(), nullable=True),
    sa.Column('text', sa.Text(), nullable=False),
    sa.Column('previous_text', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('message_ordinal', sa.SmallInteger(), nullable=False),
    sa.PrimaryKeyConstraint('event_id', 'ordinal', name=op.f('pk_receipts'))
    )
    op.create_table('stage_runs',
    sa.Column('batch_id', sa.Uuid(), nullable=False),
    sa.Column('stage', sa.Text(), nullable=False),
    sa.Column('output', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('model', sa.Text(), server_default='', nullable=False),
    sa.Column('calls', sa.Integer(), server_default='0', nullable=False),
    sa.Column('prompt_tokens', sa.Integer(), server_default='0', nullable=False),
    sa.Column('completion_tokens', sa.Integer(), server_default='0', nullable=False),
    sa.Column('cost_usd', sa.Float(), nullable=True),
    sa.Column('ms', sa.Float(), nullable=False),
    sa.Column('finished_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('batch_id', 'stage', name=op.f('pk_stage_runs'))
    )
    op.create_table('api_keys',
    sa.Column('digest', sa.LargeBinary(), nullable=False),
    sa.Column('project_id', sa.Uuid(), nullable=False),
    sa.Column('prefix', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_api_keys_project_id')),
    sa.PrimaryKeyConstraint('digest', name=op.f('pk_api_keys'))
    )
    op.create_table('events',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('project_id', sa.Uuid(), nullable=False),
    sa.Column('lane_id', sa.Uuid(), nullable=False),
    sa.Column('seq', sa.BigInteger(), nullable=False),
    sa.Column('event_type', sa.Text(), server_default='ADD', nullable=False),
    sa.Column('status', sa.Text(), server_default='PENDING', nullable=False),
    sa.Column('options', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('tokens', sa.Integer(), nullable=False),
    sa.Column('batch_id', sa.Uuid(), nullable=True),
    sa.Column('failure_code', sa.Text(), nullable=True),
    sa.Column('failure_detail', sa.Text(), nullable=True),
    sa.Column('graph_status', sa.Text(), nullable=True),
    sa.Column('note', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("status IN ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')", name=op.f('ck_events_status')),
    sa.ForeignKeyConstraint(['lane_id'], ['lanes.id'], name=op.f('fk_events_lane_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_events')),
    sa.UniqueConstraint('lane_id', 'seq', name=op.f('uq_events_lane_id_seq'))
    )
    op.create_index('ix_events_batch', 'events', ['batch_id'], unique=False, postgresql_where=sa.text('batch_id IS NOT NULL'))
    op.create_index('ix_events_in_flight', 'events', ['status'], unique=False, postgresql_where=sa.text("status IN ('PENDING', 'RUNNING')"))
    op.create_index('ix_events_feed', 'events', ['project_id', 'created_at'], unique=False)
    op.create_table('relations',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('project_id', sa.Uuid(), nullable=False),
    sa.Column('lane_id', sa.Uuid(), nullable=False),
    sa.Column('source_id', sa.Uuid(), nullable=False),
    sa.Column('relation', sa.Text(), nullable=False),
    sa.Column('destination_id', sa.Uuid(), nullable=False),
    sa.Column('event_id', sa.Uuid(), nullable=False),
    sa.Column('valid_from', sa.DateTime(timezone=True), nullable=False),
    sa.Column('valid_to', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('expired_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['destination_id'], ['entities.id'], name=op.f('fk_relations_destination_id')),
    sa.ForeignKeyConstraint(['source_id'], ['entities.id'], name=op.f('fk_relations_source_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_relations'))
    )
    op.create_index('uq_relations_current', 'relations', ['lane_id', 'source_id', 'relation', 'destination_id'], unique=True, postgresql_where=sa.text('expired_at IS NULL'))


def downgrade() -> None:
    op.drop_index('uq_relations_current', table_name='relations', postgresql_where=sa.text('expired_at IS NULL'))
    op.drop_table('relations')
    op.drop_index('ix_events_feed', table_name='events')
    op.drop_index('ix_events_batch', table_name='events', postgresql_where=sa.text('batch_id IS NOT NULL'))
    op.drop_table('events')
    op.drop_table('api_keys')
    op.drop_table('stage_runs')
    op.drop_table('receipts')
    op.drop_table('projects')
    op.drop_table('messages')
    op.drop_table('memory_history')
    op.drop_index('uq_memories_active_text', table_name='memories', postgresql_where=sa.text("state = 'ACTIVE'"))
    op.drop_index('ix_memories_user', table_name='memories')
    op.drop_index('ix_memories_unprojected', table_name='memories', postgresql_where=sa.text('projected_version <> version'))
    op.drop_index('ix_memories_feed', table_name='memories')
    op.drop_table('memories')
    op.drop_index('ix_lanes_owner', table_name='lanes')
    op.drop_index('ix_lanes_due', table_name='lanes', postgresql_where=sa.text("state <> 'IDLE'"))
    op.drop_table('lanes')
    op.drop_table('entities')
