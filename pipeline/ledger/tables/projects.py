"""The tables around a project, and column helpers of all tables."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    Uuid,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def time(name: str, **options: object) -> Column[object]:
    """A column with a timestamp and its time zone."""
    return Column(name, DateTime(timezone=True), **options)  # type: ignore[arg-type]


def now(name: str) -> Column[object]:
    """A NOT NULL timestamp column with the time of the insert as default."""
    return time(name, nullable=False, server_default=func.now())


def scope_ids() -> tuple[Column[str], ...]:
    """The columns with the entity ids of a scope."""
    return tuple(Column(name, Text) for name in ("user_id", "agent_id", "app_id", "run_id"))


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
    # Settings that clients of other platforms write and read; they have no effect.
    Column("settings", JSONB, nullable=False, server_default="{}"),
    now("created_at"),
    now("updated_at"),
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

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("project_id", Uuid, primary_key=True),
    Column("key", Text, primary_key=True),
    # SHA-256 of the request: the same key with another body is an error of the client.
    Column("digest", LargeBinary, nullable=False),
    Column("event_id", Uuid, nullable=False),
    now("created_at"),
    Index("ix_idempotency_keys_created_at", "created_at"),
)

# Replays of whole scopes. The id is also the id of a project without a row or an API key, so no
# client can read the results in it.
shadows = Table(
    "shadows",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    *scope_ids(),
    # Options that override the configuration.
    Column("custom_instructions", Text),
    Column("llm_model", Text),
    Column("embedder_model", Text),
    Column("recorded", Boolean, nullable=False, server_default="false"),
    # Last seq of the scope's lane that was considered for the copy.
    Column("copied_seq", BigInteger, nullable=False, server_default="0"),
    now("created_at"),
    time("switched_at"),
    Index("ix_shadows_project", "project_id", "created_at"),
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
)

# Unreachable providers: while the row exists, only one caller at a time may call the provider.
cooldowns = Table(
    "cooldowns",
    metadata,
    Column("provider", Text, primary_key=True),
    Column("failures", Integer, nullable=False, server_default="1"),
    time("probe_at", nullable=False),
    now("since"),
    # The only project whose calls failed; NULL if calls of several failed, or if the provider sent
    # a time to wait.
    Column("project_id", Uuid),
    # Error of the last call, without users' texts.
    Column("cause", Text),
)
