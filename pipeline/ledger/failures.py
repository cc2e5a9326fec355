"""What a call of the ledger raises when it fails, and what each error means for the caller.

SQLAlchemy raises its own errors, and asyncpg a plain OSError where no server answers. Callers catch
LEDGER_FAILURES and ask these functions; no other module names SQLAlchemy's errors for that.
"""

from __future__ import annotations

from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError

LEDGER_FAILURES = (SQLAlchemyError, OSError)

# The ledger answers, and refuses a value that is out of the range it can store.
ValueRefused = DataError


class Unreachable(DBAPIError):
    """No connection could be made, so the statement was not sent."""


def is_unavailable(error: Exception) -> bool:
    """Whether the ledger could not be reached, as opposed to refusing a statement."""
    return not isinstance(error, DBAPIError) or error.connection_invalidated


def may_have_committed(error: Exception) -> bool:
    """Whether the connection was lost, or fell silent, after the statement was sent."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated and not isinstance(error, Unreachable)
    return isinstance(error, TimeoutError)


def sqlstate(error: Exception) -> str:
    """PostgreSQL's five-character code of an error; XX000 (internal error) where it has none."""
    return str(getattr(getattr(error, "orig", None), "sqlstate", None) or "XX000")
