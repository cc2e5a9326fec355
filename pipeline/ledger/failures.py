"""Errors of the ledger's calls, and functions that tell what an error means for the caller.

SQLAlchemy raises its own errors, and asyncpg a plain OSError if no server answers. Callers catch
LEDGER_FAILURES and call these functions; no other module handles SQLAlchemy's errors for this.
"""

from __future__ import annotations

from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError

LEDGER_FAILURES = (SQLAlchemyError, OSError)

# The ledger refuses a value outside of the range that it can store.
ValueRefused = DataError


class Unreachable(DBAPIError):
    """No connection could be made, so the statement was not sent."""


def is_unavailable(error: Exception) -> bool:
    """Tell if the ledger could not be reached, as opposed to refusing a statement."""
    return not isinstance(error, DBAPIError) or error.connection_invalidated


def may_have_committed(error: Exception) -> bool:
    """Tell if the connection was lost, or got no answer, after the statement was sent."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated and not isinstance(error, Unreachable)
    return isinstance(error, TimeoutError)


def sqlstate(error: Exception) -> str:
    """Return PostgreSQL's five-character code of an error; XX000 (internal error) without one."""
    return str(getattr(getattr(error, "orig", None), "sqlstate", None) or "XX000")
