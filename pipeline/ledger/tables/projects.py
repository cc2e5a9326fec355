"""The tables around a project, and what all tables have in common."""

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
    return Column(name, DateTime(timezone=True), **options)  # type: ignore[arg-type]


def now(name: str) -> Column[object]:
    return time(name, nullable=False, server_default=func.now())


def scope_ids() -> tuple[Column[str], ...]:
    return tuple(Column(name, Text) for name in ("user_id", "agent_id", "app_id", "run_id"))


organizations = Table(
    "organizations",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    # The one the server was started with: it may found others.
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
    # What the project asks of extraction where a call does not say otherwise.
    Column("custom_instructions", Text),
    Column("agent_custom_instructions", Text),
    Column("includes", Text),
    Column("excludes", Text),
    # {"name": "description", …}; NULL = the built-in ones.
    Column("custom_categories", JSONB(none_as_null=True)),
    # What clients of other platforms set and read back; nothing acts on it.
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
    # SHA-256 of the key: the key itself is shown once and kept nowhere.
    Column("digest", LargeBinary, primary_key=True),
    # What it is called by where it is listed or revoked.
    Column("id", Uuid, nullable=False, unique=True, server_default=func.gen_random_uuid()),
    Column("project_id", ForeignKey("projects.id"), nullable=False, index=True),
    Column("name", Text, nullable=False, server_default=""),
    Column("prefix", Text, nullable=False),
    Column("scope", Text, nullable=False),
    # Whose it is; it may do no more than the member's role and goes when the member does.
    Column("member", Text),
    # The key that made it; NULL where the server did.
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
    # SHA-256 of what was asked: the same key with another body is a mistake of the client's.
    Column("digest", LargeBinary, nullable=False),
    Column("event_id", Uuid, nullable=False),
    now("created_at"),
    Index("ix_idempotency_keys_created_at", "created_at"),
)

# A replay of a scope's whole log. Its id is the id of a project that has no key and no row: no
# caller can see what the copy of the log comes to there.
shadows = Table(
    "shadows",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", Uuid, nullable=False),
    *scope_ids(),
    # What it asks for in place of what is configured.
    Column("custom_instructions", Text),
    Column("llm_model", Text),
    Column("embedder_model", Text),
    Column("recorded", Boolean, nullable=False, server_default="false"),
    # How far the log has been copied, in the numbers of the scope's lane.
    Column("copied_seq", BigInteger, nullable=False, server_default="0"),
    now("created_at"),
    time("switched_at"),
    Index("ix_shadows_project", "project_id", "created_at"),
)

# A user, agent, app or run exists by having memories; a row here only adds what else is known.
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

# A provider that is out of reach: while its row stands, one caller at a time may ask again.
cooldowns = Table(
    "cooldowns",
    metadata,
    Column("provider", Text, primary_key=True),
    Column("failures", Integer, nullable=False, server_default="1"),
    time("probe_at", nullable=False),
    now("since"),
    # The one project whose calls failed; NULL: calls of several, or the provider named a time.
    Column("project_id", Uuid),
    # What the last call failed with: no text of a user.
    Column("cause", Text),
)
