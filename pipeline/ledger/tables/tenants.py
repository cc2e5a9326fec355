"""Tenants: organizations, projects, members and API keys; users, agents, apps and runs."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from pipeline.ledger.tables.columns import metadata, now, partial, time

organizations = Table(
    "organizations",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    # True for the server's first organization, which may create others.
    Column("operator", Boolean, nullable=False, server_default="false"),
    now("created_at"),
)

projects = Table(
    "projects",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("organization_id", ForeignKey("organizations.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("description", Text),
    # Defaults of the options of an extraction.
    Column("custom_instructions", Text),
    Column("agent_custom_instructions", Text),
    Column("includes", Text),
    Column("excludes", Text),
    # {"name": "description", …}; NULL: the built-in categories.
    Column("custom_categories", JSONB(none_as_null=True)),
    # `decay`, `default_cut`, `allowed_origins`, and settings of other platforms without effect.
    Column("settings", JSONB, nullable=False, server_default="{}"),
    # True: events, receipts and history are sealed. Only earlier releases use `sealed_until`.
    Column("tamper_evidence", Boolean),
    time("sealed_until"),
    # Mode of the adds that name none; NULL: consolidate.
    Column("mode", Text),
    # {"project": {"tokens", "usd", "per"}, "user": {…}}; NULL: no limits.
    Column("budget", JSONB(none_as_null=True)),
    # {"every_hours", "idle_minutes"}: the schedule of the curator; NULL: only on request.
    Column("curator", JSONB(none_as_null=True)),
    # {"messages", "tokens", "seconds"}: turns wait for each other up to these; NULL: they do not.
    Column("gather", JSONB(none_as_null=True)),
    # {"entity_types": {"name": "description", …}, "relation_types": {…}}; NULL: the built-in ones.
    Column("graph_types", JSONB(none_as_null=True)),
    # Attributes by name, each `one` or `several`: values that a subject has of it at a time.
    Column("custom_attributes", JSONB(none_as_null=True)),
    # {"enabled", "schema", "custom_instructions"} of the profiles of users; NULL: there are none.
    Column("profile_settings", JSONB(none_as_null=True)),
    # Graph of the adds that do not say; NULL: that of the server.
    Column("enable_graph", Boolean),
    # Start of its deletion: adds are refused until it ends, for ten minutes at most.
    time("deleting_at"),
    now("created_at"),
    now("updated_at"),
    partial("ix_projects_curator", "id", where="curator IS NOT NULL"),
    partial(
        "ix_projects_origins",
        text("(settings -> 'allowed_origins')"),
        postgresql_using="gin",
        where="settings ? 'allowed_origins'",
    ),
)

members = Table(
    "members",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("email", Text, primary_key=True),
    Column("role", Text, nullable=False),
    now("created_at"),
    CheckConstraint("role IN ('READER', 'OWNER')", name="role"),
)

api_keys = Table(
    "api_keys",
    metadata,
    # SHA-256 of the key; the key itself is shown once and never stored.
    Column("digest", LargeBinary, primary_key=True),
    # The key's id in lists and when it is revoked.
    Column("id", Uuid, nullable=False, unique=True, server_default=func.gen_random_uuid()),
    Column("project_id", ForeignKey("projects.id"), nullable=False, index=True),
    Column("name", Text, nullable=False, server_default=""),
    Column("prefix", Text, nullable=False),
    Column("scope", Text, nullable=False),
    # Email of the member it belongs to: it has at most the access of the member's role, and is
    # revoked when the member is removed.
    Column("member", Text),
    # The key with which it was created; NULL if the server created it.
    Column("created_by", Uuid, index=True),
    now("created_at"),
    time("expires_at"),
    time("revoked_at"),
    CheckConstraint("scope IN ('read', 'write', 'admin')", name="scope"),
)

# Sessions of the console, and one-time links that begin them. Rows of a deleted key go with it.
console_sessions = Table(
    "console_sessions",
    metadata,
    # SHA-256 of the token, which only the browser has.
    Column("digest", LargeBinary, primary_key=True),
    Column("key_id", ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False, index=True),
    # True: opens one session. False: is a session.
    Column("link", Boolean, nullable=False),
    now("created_at"),
    time("expires_at", nullable=False, index=True),
)

# Tokens that give one user access to their own memories. Rows of a deleted key go with it.
user_tokens = Table(
    "user_tokens",
    metadata,
    # SHA-256 of the token, which is shown once.
    Column("digest", LargeBinary, primary_key=True),
    Column("id", Uuid, nullable=False, unique=True, server_default=func.gen_random_uuid()),
    # The key that made it: the token has at most the access of the key, and ends with it.
    Column("key_id", ForeignKey("api_keys.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("user_id", Text, nullable=False),
    # Some of read, correct and delete.
    Column("rights", ARRAY(Text), nullable=False),
    now("created_at"),
    time("expires_at", nullable=False, index=True),
    Index("ix_user_tokens_user", "project_id", "user_id"),
)

# Names and metadata of users, agents, apps and runs. An owner with memories needs no row.
owners = Table(
    "owners",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("metadata", JSONB, nullable=False, server_default="{}"),
    now("created_at"),
    now("updated_at"),
    CheckConstraint("kind IN ('user', 'agent', 'app', 'run')", name="kind"),
    Index("ix_owners_newest", "project_id", "kind", text("created_at DESC"), "id"),
)
