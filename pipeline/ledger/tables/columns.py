"""The metadata of all tables, and the columns and indexes that several of them have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Computed,
    DateTime,
    Index,
    Integer,
    MetaData,
    Text,
    TextClause,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

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


def terms(*, nullable: bool = False) -> Column[object]:
    """The words of a text, as `pipeline.text.terms` splits it, for searches by words.

    `nullable`: NULL until the text is cut.
    """
    return Column("terms", ARRAY(Text), nullable=nullable, server_default="{}")


def projected() -> tuple[Column[object], ...]:
    """The columns of a row that is mirrored into the vector index.

    `projected_version`: the version in the index; if it differs from `version`, the index is stale,
    and `owed` is true. `owed` is stored because a stored column has statistics: comparing two
    columns, the planner would expect nearly all rows to differ, and scan the table.
    """
    return (
        Column("version", Integer, nullable=False, server_default="1"),
        Column("projected_version", Integer, nullable=False, server_default="0"),
        Column("owed", Boolean, Computed("projected_version <> version", persisted=True)),
    )


def partial(name: str, *columns: str | TextClause, where: str, **options: Any) -> Index:
    """An index of the rows that satisfy the condition `where`."""
    return Index(name, *columns, postgresql_where=text(where), **options)


# Owners, beside users, of which temporary runs are a part.
SHARED_OWNERS = ("agent_id", "app_id")


def by_owner(
    table: str,
    *then: str | TextClause,
    suffix: str = "",
    where: str | None = None,
    names: Sequence[str] = ("agent_id", "app_id", "run_id"),
) -> Iterator[Index]:
    """Indexes by agent, app and run, which are partial: many rows have none of these ids.

    `suffix`: the end of their names. `where`: a further condition. `names`: of the ids.
    """
    for name in names:
        rows = " AND ".join([f"{name} IS NOT NULL", *([where] if where else [])])
        kind = name.removesuffix("_id")
        yield partial(f"ix_{table}_{kind}{suffix}", "project_id", name, *then, where=rows)
