"""Errors of the ledger's calls.

    SQLAlchemy's DBAPIError
    ├── LedgerUnavailable   not the content's fault: a later try can succeed
    └── StatementRefused    PostgreSQL refused the content of a statement: no retry helps
        └── ValueRefused        a value is out of the range that can be stored

pipeline.ledger.engine and pipeline.ledger.statements raise them, for every connection of a pool.
"""

from __future__ import annotations

import asyncpg
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

StatementRefused = DBAPIError
ValueRefused = DataError

# Classes of SQLSTATE: data, integrity constraint, program limit.
CONTENT = ("22", "23", "54")
# Another transaction changed the same rows: foreign key, unique and exclusion constraint.
CONCURRENT = ("23503", "23505", "23P01")
# The constraint that no two active memories of a scope have the same text.
ACTIVE_TEXT = "uq_memories_active_text"

# SQLSTATE of statement_timeout and of lock_timeout.
OUT_OF_TIME = ("57014", "55P03")
# States of a ledger that answers reads and refuses writes, by SQLSTATE.
DISK_FULL, READ_ONLY = "DiskFull", "ReadOnly"
REFUSES_WRITES = {"53100": DISK_FULL, "25006": READ_ONLY}


class LedgerUnavailable(DBAPIError):
    """PostgreSQL did not execute a statement, for a reason other than the statement's content.

    `reached`: it refused the statement and the connection is intact: a time limit, a deadlock, a
    full disk, a standby. Else it is out of reach, or did not answer. `sent`: the statement was
    sent.
    """

    def __init__(self, cause: BaseException, *, reached: bool = False, sent: bool = True) -> None:
        super().__init__(None, None, cause, connection_invalidated=not reached)
        self._sent = sent

    @property
    def reached(self) -> bool:
        """True if the connection is intact."""
        return not self.connection_invalidated

    @property
    def out_of_time(self) -> bool:
        """True if PostgreSQL ended the statement at a time limit."""
        return self.reached and sqlstate(self) in OUT_OF_TIME

    @property
    def refuses_writes(self) -> str | None:
        """DISK_FULL or READ_ONLY, if PostgreSQL refused a write for this reason."""
        return REFUSES_WRITES.get(sqlstate(self))

    @property
    def may_have_committed(self) -> bool:
        """True if the connection was lost, or there was no answer, after the statement was sent."""
        return self._sent and not self.reached and not self.refuses_writes

    @property
    def reason(self) -> str:
        """Name of the driver's error, for logs."""
        return type(self.orig).__name__


def translated(error: DBAPIError) -> DBAPIError:
    """Return LedgerUnavailable for an error of the driver, or the error if it is of the content."""
    lost = error.connection_invalidated
    content = isinstance(error, (IntegrityError, DataError)) or sqlstate(error)[:2] in CONTENT
    if isinstance(error, LedgerUnavailable) or error.orig is None or (content and not lost):
        return error
    return LedgerUnavailable(error.orig, reached=not lost)


def read_only() -> LedgerUnavailable:
    """The error of a ledger that is a standby, or whose transactions are read-only."""
    cause = asyncpg.ReadOnlySQLTransactionError("The ledger is read-only.")
    return LedgerUnavailable(cause, reached=True)


def is_out_of_reach(error: BaseException) -> bool:
    """Tell if the ledger did not answer, so that other statements would fail as well."""
    return isinstance(error, LedgerUnavailable) and not error.reached


def sqlstate(error: DBAPIError) -> str:
    """Return PostgreSQL's five-character code of an error; XX000 (internal error) without one."""
    return str(getattr(error.orig, "sqlstate", None) or "XX000")


def is_taken_text(error: DBAPIError) -> bool:
    """Tell if another active memory of the scope has the text: another write has just stored it."""
    return broken_constraint(error) == ACTIVE_TEXT


def broken_constraint(error: DBAPIError) -> str | None:
    """Return the name of the constraint that a statement would break; None for another error."""
    # SQLAlchemy's driver keeps the name only in the error behind its own.
    causes = (error.orig, getattr(error.orig, "__cause__", None))
    names = (getattr(cause, "constraint_name", None) for cause in causes)
    return next((str(name) for name in names if name), None)
