"""The plan of an upgrade: which tables each pending migration locks, and for how long about.

Each migration is rendered as SQL, as by Alembic's offline mode, and its statements are read:
nothing runs in the database. A lock lasts until the end of its transaction, so its time is that of
all later work in the transaction. Times follow from numbers of rows and are rough: they tell a
moment from a minute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import Script
from sqlalchemy.dialects import postgresql

# Rows per second of each kind of work, on two cores and a local disk: orders of magnitude, no
# measurement. A moment has none.
RATES = {"scan": 1_000_000, "index": 300_000, "rewrite": 100_000, "change": 30_000}
VOLATILE = ("gen_random_uuid", "clock_timestamp", "random()", "STORED", "SERIAL", "IDENTITY")


class Lock(IntEnum):
    """Effect of a lock on others, from the weakest to the strongest."""

    NOTHING = 0
    ROWS = 1
    WRITES = 2
    ALL = 3


class LockedWork(StrEnum):
    """Kind of work; its time follows the rows of the table, except for a moment."""

    MOMENT = "moment"
    SCAN = "scan"
    INDEX = "index"
    REWRITE = "rewrite"
    CHANGE = "change"


EFFECTS = {
    Lock.NOTHING: "stays open",
    Lock.ROWS: "changed rows are locked",
    Lock.WRITES: "closed to writes",
    Lock.ALL: "closed to reads and writes",
}


@dataclass(frozen=True, slots=True)
class StatementEffect:
    """One statement of a migration: its table, its lock, and its work."""

    table: str
    lock: Lock
    work: LockedWork


@dataclass(frozen=True, slots=True)
class TableLock:
    """A table that a migration locks. `seconds`: rough time until the lock is released."""

    table: str
    lock: Lock
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """Locks of one migration. `unread`: statements whose effect is not known."""

    revision: str
    title: str
    locks: tuple[TableLock, ...]
    unread: int = 0


INDEX = re.compile(
    r"CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(?:IF NOT EXISTS )?(\S+) ON (?:ONLY )?(\w+)",
    re.IGNORECASE,
)
DROPPED = re.compile(r"DROP INDEX (CONCURRENTLY )?(?:IF EXISTS )?(\w+)", re.IGNORECASE)
ALTER = re.compile(r"ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(\w+) (.*)", re.IGNORECASE | re.DOTALL)
TRIGGER = re.compile(r"(CREATE|DROP) (?:\w+ ){0,2}TRIGGER .*? ON (\w+)", re.IGNORECASE | re.DOTALL)
LOCKED = re.compile(
    r"LOCK TABLE (\w+) IN (?:SHARE|SHARE ROW EXCLUSIVE|EXCLUSIVE) MODE", re.IGNORECASE
)
TABLE = re.compile(
    r"(?:(?:CREATE|DROP|LOCK)(?: UNLOGGED)? TABLE|TRUNCATE(?: TABLE)?)"
    r" (?:IF (?:NOT )?EXISTS )?(\w+)",
    re.IGNORECASE,
)
CHANGE = re.compile(r"\b(?:UPDATE|INSERT INTO|DELETE FROM) (?:ONLY )?(\w+)", re.IGNORECASE)
# A new foreign key closes the table that it refers to, too.
REFERENCE = re.compile(r"\bREFERENCES (\w+)", re.IGNORECASE)
# Statements that lock no table for longer than a moment.
HARMLESS = re.compile(
    r"(CREATE (OR REPLACE )?FUNCTION|DROP (FUNCTION|ROUTINE)|COMMENT|SET|SELECT|ALTER INDEX"
    r"|BEGIN|COMMIT)\b|--|$",
    re.IGNORECASE,
)


NO_INDEXES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Catalog:
    """Number of rows of each table, and the table of each index, by name."""

    rows: Mapping[str, int]
    indexes: Mapping[str, str]


def rendered(script: Script) -> list[str]:
    """The statements of a migration, with BEGIN and COMMIT where its transactions end."""
    statements: list[str] = []
    context = MigrationContext.configure(
        dialect=postgresql.dialect(),  # type: ignore[no-untyped-call]
        opts={"as_sql": True, "transaction_per_migration": True},
    )
    context.impl.static_output = statements.append  # type: ignore[assignment, method-assign]
    with Operations.context(context):
        script.module.upgrade()
    return [statement.strip().rstrip(";") for statement in statements]


def read(
    statement: str, indexes: Mapping[str, str] = NO_INDEXES
) -> tuple[StatementEffect, ...] | None:
    """Effects of a statement; None if they are not known. `indexes`: the table of each index."""
    if HARMLESS.match(statement):
        return ()
    if (first := _index(statement, indexes) or _table(statement)) is None:
        return None
    others = (
        StatementEffect(table, Lock.WRITES, LockedWork.MOMENT)
        for table in REFERENCE.findall(statement)
    )
    return (first, *others)


def _index(statement: str, indexes: Mapping[str, str]) -> StatementEffect | None:
    if index := INDEX.match(statement):
        return StatementEffect(
            index[3], Lock.NOTHING if index[1] else Lock.WRITES, LockedWork.INDEX
        )
    if dropped := DROPPED.match(statement):
        table = indexes.get(dropped[2], "")
        return StatementEffect(table, Lock.NOTHING if dropped[1] else Lock.ALL, LockedWork.MOMENT)
    return None


def _table(statement: str) -> StatementEffect | None:
    if alter := ALTER.match(statement):
        return _altered(alter[1], alter[2])
    if trigger := TRIGGER.match(statement):
        lock = Lock.WRITES if trigger[1].upper() == "CREATE" else Lock.ALL
        return StatementEffect(trigger[2], lock, LockedWork.MOMENT)
    if locked := LOCKED.match(statement):
        return StatementEffect(locked[1], Lock.WRITES, LockedWork.MOMENT)
    if table := TABLE.match(statement):
        return StatementEffect(table[1], Lock.ALL, LockedWork.MOMENT)
    change = CHANGE.search(statement)
    return StatementEffect(change[1], Lock.ROWS, LockedWork.CHANGE) if change else None


def _altered(table: str, action: str) -> StatementEffect:
    """Effect of ALTER TABLE."""
    upper = action.upper()
    if upper.startswith("VALIDATE"):
        return StatementEffect(table, Lock.NOTHING, LockedWork.SCAN)
    work = LockedWork.MOMENT
    if upper.startswith("ADD CONSTRAINT") and "NOT VALID" not in upper:
        work = LockedWork.INDEX if "UNIQUE" in upper or "PRIMARY KEY" in upper else LockedWork.SCAN
    elif " TYPE " in upper or (
        upper.startswith("ADD COLUMN") and any(word.upper() in upper for word in VOLATILE)
    ):
        work = LockedWork.REWRITE
    elif upper.endswith("SET NOT NULL"):
        work = LockedWork.SCAN
    return StatementEffect(table, Lock.ALL, work)


def plan(script: Script, catalog: Catalog) -> MigrationPlan:
    """Locks of a migration on the tables of the catalog; tables that it creates are left out."""
    title = (script.doc or "").splitlines()[0]
    try:
        statements = rendered(script)
    except (AttributeError, TypeError):  # it reads rows, which only a running one can
        return MigrationPlan(script.revision, title, (), unread=1)
    locks: dict[str, TableLock] = {}
    for part in transactions(statements):
        for lock in _locks(part, catalog):
            known = locks.get(lock.table, lock)
            locks[lock.table] = max(known, lock, key=lambda each: (each.lock, each.seconds))
    unread = sum(read(statement) is None for statement in statements)
    return MigrationPlan(script.revision, title, tuple(locks.values()), unread)


def _locks(statements: Sequence[str], catalog: Catalog) -> Iterator[TableLock]:
    """The locks of one transaction: each is held from its statement to the end."""
    rows = catalog.rows
    steps = [
        step
        for statement in statements
        for step in read(statement, catalog.indexes) or ()
        if step.table in rows
    ]
    for place, step in enumerate(steps):
        left = [later for later in steps[place:] if later.work in RATES]
        seconds = sum((rows[later.table] / RATES[later.work] for later in left), 0.0)
        yield TableLock(step.table, step.lock, rows[step.table], seconds)


def transactions(statements: Sequence[str]) -> Iterator[list[str]]:
    """The statements of each transaction; those outside of one stand alone."""
    part: list[str] = []
    alone = False
    for statement in statements:
        if statement.upper().startswith(("BEGIN", "COMMIT")):
            yield part
            part, alone = [], statement.upper().startswith("COMMIT")
        elif alone:
            yield [statement]
        else:
            part.append(statement)
    yield part
