"""Connections to PostgreSQL: session settings, time limits, and removal of dead connections.

Every wait has a limit. The server ends a statement at its time limit. If no answer arrives a short
time later, the client's own limit ends the wait; the connection is then taken as dead, and no
connection opened before that moment is used again.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import asyncpg
import orjson
import structlog
from sqlalchemy import URL, Dialect, event, make_url
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from pipeline.ledger import nice_backend
from pipeline.ledger.byte_cache import ByteCache
from pipeline.ledger.failures import DISK_FULL, LedgerUnavailable, translated
from pipeline.ledger.fair_pool import FairPool

log = structlog.get_logger()

SESSION: Mapping[str, str] = {
    # A worker that freezes inside a transaction keeps its lane's row locked: no other worker could
    # take the lane over, and no event could be accepted. Our transactions never idle for long.
    "idle_in_transaction_session_timeout": "5000",
    # A cached plan made while a table was small would scan the whole table until the next ANALYZE.
    # Every frequent query has an index.
    "enable_seqscan": "off",
    # With "auto", a statement is planned at every execution if its generic plan looks more
    # expensive than a custom one: planning BM25 took longer than executing it.
    "plan_cache_mode": "force_generic_plan",
    # JIT compilation takes longer than any of our statements.
    "jit": "off",
    # A comparison of a date with a time, and a cast of a time to a date, take the session's zone.
    "TimeZone": "UTC",
}
# The zone by its name in the packages of Debian and Ubuntu.
ALSO_UTC = "Etc/UTC"
# Let the server notice that a client is gone, even in the middle of a statement.
CLIENT_CHECKS: Mapping[str, str] = {
    "client_connection_check_interval": "2000",
    "tcp_user_timeout": "15000",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
# Let the client notice that the server is gone while no statement is running.
KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}

LOCKED = asyncpg.LockNotAvailableError.sqlstate

CONNECT_S, POOL_S = 5.0, 10.0
# Transactions in which another connection may get our session from a pooler.
POOLER_LOOKS = 3
Connect = Callable[[], "Awaitable[asyncpg.Connection[Any]]"]
# The server's error arrives first, unless the connection is silent.
MARGIN_S = 2.0


class SettingsMissing(OSError):
    """A connection pooler such as PgBouncer drops session settings, and the role has none."""


class StatementsLost(OSError):
    """A connection pooler gives each transaction another session, without its prepared statements.

    PgBouncer keeps them since 1.21, with `max_prepared_statements`.
    """


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Time limits in seconds of a statement, and of its wait for a lock. None: no limit."""

    statement_s: float | None
    lock_s: float | None = None

    @property
    def answer_s(self) -> float | None:
        """Time limit in seconds for the server's answer: later than the server's own limit."""
        return None if self.statement_s is None else self.statement_s + MARGIN_S

    def settings(self) -> Mapping[str, str]:
        """The limits as PostgreSQL settings, in milliseconds."""
        limits = {"statement_timeout": self.statement_s, "lock_timeout": self.lock_s}
        return {name: str(round(s * 1000)) for name, s in limits.items() if s is not None}


# Statements that SQLAlchemy has compiled, with the objects they were built of: about 48 bytes for
# each character of their SQL. Its own cache counts statements, and those of one large filter take
# 2.5 MB.
STATEMENTS = ByteCache(24_000_000, lambda compiled: 48 * len(compiled.string))

# USUAL: stages and requests. ADDS: adds, which must not wait for a locked lane. LONG: undo,
# erasure, replay and reindex, whose statements change many rows. UNLIMITED: migrations.
USUAL, ADDS, LONG, UNLIMITED = (
    SessionLimits(10.0),
    SessionLimits(10.0, lock_s=0.25),
    SessionLimits(600.0),
    SessionLimits(None),
)


@dataclass(slots=True)
class _State:
    """State of an engine's connections.

    Those older than `suspect_before` may be dead. `pooler`: a pooler is between them and the
    server. `statements_kept`: it keeps the prepared statements of a client. `disk_full`: a
    statement met a full disk.
    """

    suspect_before: float = 0.0
    pooler: bool = False
    statements_kept: bool = False
    disk_full: bool = False


_STATES: WeakKeyDictionary[Dialect, _State] = WeakKeyDictionary()


def connect(
    url: str, *, pool_size: int, name: str = "memlane", limits: SessionLimits = USUAL
) -> AsyncEngine:
    """Create an engine for a `postgresql://` URL; the driver in the URL is ignored.

    `name`: application name of its connections, as the server shows it.
    """
    address, tls = _address(url)
    engine = create_async_engine(
        address,
        poolclass=FairPool,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_S,
        # Reuse the most recent connection: its backend has its data in the CPU caches. In turn,
        # connections answer 6 % fewer searches (measured, 2 cores).
        pool_use_lifo=True,
        connect_args={
            "dsn": tls,
            "timeout": CONNECT_S,
            "command_timeout": limits.answer_s,
            # The only parameter that poolers pass on; they refuse others.
            "server_settings": {"application_name": name},
        },
        # Errors would contain users' texts.
        hide_parameters=True,
        json_deserializer=orjson.loads,
        execution_options={"compiled_cache": STATEMENTS},
    )
    state = _STATES[engine.dialect] = _State()
    settings = {**SESSION, **CLIENT_CHECKS, **limits.settings()}
    again = partial(_connect_again, address, tls)
    event.listen(engine.sync_engine, "connect", partial(_connected, state, settings, again))
    event.listen(engine.sync_engine, "checkout", partial(_checked_out, state))
    event.listen(engine.sync_engine, "handle_error", _failed)
    return engine


def _address(url: str) -> tuple[URL, str | None]:
    """The URL without its options for TLS, and these as a connection string of asyncpg.

    asyncpg reads them as libpq does (`sslmode`, `sslrootcert`), but only from a connection string.
    SQLAlchemy's own name of `sslmode` is `ssl`.
    """
    address = make_url(url).set(drivername="postgresql+asyncpg")
    names = [name for name in address.query if name.startswith("ssl")]
    if not names:
        return address, None
    options = {("sslmode" if name == "ssl" else name): address.query[name] for name in names}
    tls = URL.create("postgresql", query=options).render_as_string()
    return address.difference_update_query(names), tls


def suspect_all(dialect: Dialect) -> None:
    """Mark all open connections of an engine as suspect: the pool replaces them before use."""
    if state := _STATES.get(dialect):
        state.suspect_before = time.monotonic()


def behind_pooler(engine: AsyncEngine) -> bool:
    """Tell if a pooler such as PgBouncer assigns the server's sessions to clients.

    Then no session belongs to one client. Known after the first connection.
    """
    state = _STATES.get(engine.dialect)
    return state is not None and state.pooler


def _connected(
    state: _State, settings: Mapping[str, str], again: Connect, connection: Any, record: Any
) -> None:
    record.info["since"] = time.monotonic()
    connection.run_async(partial(_set_up, state, settings, again))


async def _connect_again(address: URL, tls: str | None) -> asyncpg.Connection[Any]:
    """Open one more connection, which uses no prepared statement."""
    return await asyncpg.connect(
        tls,
        host=address.host,
        port=address.port,
        user=address.username,
        password=address.password,
        database=address.database,
        timeout=CONNECT_S,
        statement_cache_size=0,
    )


async def _set_up(
    state: _State, settings: Mapping[str, str], again: Connect, driver: asyncpg.Connection[Any]
) -> None:
    """Set the session settings of a new connection.

    Errors, behind a pooler: SettingsMissing if the role lacks them; StatementsLost.
    """
    _tune(driver)
    state.pooler = await driver.fetchval("SELECT pg_backend_pid()") != driver.get_server_pid()
    if not state.pooler:
        await driver.execute("; ".join(f"SET {name} = '{settings[name]}'" for name in settings))
        return
    query = "SELECT name, setting FROM pg_settings WHERE name = ANY ($1)"
    current = {row["name"]: row["setting"] for row in await driver.fetch(query, list(SESSION))}
    if current.get("TimeZone") == ALSO_UTC:
        current["TimeZone"] = SESSION["TimeZone"]
    if missing := {name: value for name, value in SESSION.items() if current.get(name) != value}:
        commands = " ".join(f"ALTER ROLE CURRENT_USER SET {k} = '{v}';" for k, v in missing.items())
        log.error("session_settings_missing", commands=commands)
        raise SettingsMissing(
            f"Behind a connection pooler, the role needs its settings: {commands}"
        )
    if not state.statements_kept:
        if await _loses_statements(driver, again):
            log.error("pooler_loses_statements")
            raise StatementsLost(
                "This connection pooler loses prepared statements between transactions: use"
                " PgBouncer 1.21 or newer with max_prepared_statements, pool_mode = session, or no"
                " pooler."
            )
        state.statements_kept = True


async def _loses_statements(driver: asyncpg.Connection[Any], again: Connect) -> bool:
    """Tell if a pooler gives our session to others, and does not rename our statements for that.

    PgBouncer gives the session that was used last to the next transaction: here, of `other`.
    """
    if await driver.fetchval("SELECT bool_or(name LIKE 'PGBOUNCER%') FROM pg_prepared_statements"):
        return False
    query = "SELECT pg_backend_pid()"
    other = await again()
    try:
        for _ in range(POOLER_LOOKS):
            own = await driver.fetchval(query)
            async with other.transaction():
                if await other.fetchval(query) == own:
                    return True
    except asyncpg.InvalidSQLStatementNameError:
        return True
    finally:
        await other.close()
    return False


def _tune(driver: asyncpg.Connection[Any]) -> None:
    """Set the socket's options, and the priority of the backend."""
    transport = driver._transport  # type: ignore[attr-defined]  # noqa: SLF001  asyncpg has no option for it
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    nice_backend.lower(driver, port=sock.getsockname()[1])


def _checked_out(state: _State, connection: Any, record: Any, _: Any) -> None:
    """Have the pool replace a connection that is closed or suspect, before it is used."""
    driver = connection.driver_connection
    if driver.is_closed() or record.info["since"] <= state.suspect_before:
        driver.terminate()  # no orderly close: a silent server would not answer it
        raise DisconnectionError


def _failed(context: ExceptionContext) -> DBAPIError | None:
    """Give up a connection that must not be used again; translate the error."""
    cause, error = context.original_exception, context.sqlalchemy_exception
    if is_stale(cause):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False
        suspect_all(context.dialect)
    if isinstance(cause, OSError) or (isinstance(error, DBAPIError) and context.is_disconnect):
        return LedgerUnavailable(cause)
    return noted(context.dialect, translated(error)) if isinstance(error, DBAPIError) else None


def noted(dialect: Dialect, error: DBAPIError) -> DBAPIError:
    """Return the error; a full disk is noted for its engine."""
    full = isinstance(error, LedgerUnavailable) and error.refuses_writes == DISK_FULL
    if full and (state := _STATES.get(dialect)):
        state.disk_full = True
    return error


def is_full(engine: AsyncEngine) -> bool:
    """Tell if a statement of this engine met a full disk since the last `clear_full`."""
    state = _STATES.get(engine.dialect)
    return state is not None and state.disk_full


def clear_full(engine: AsyncEngine) -> None:
    """Forget that a statement met a full disk."""
    if state := _STATES.get(engine.dialect):
        state.disk_full = False


def is_stale(error: BaseException) -> bool:
    """Tell if the connection must not be used again.

    Either the server did not answer within its own time limit, or it is a standby now: after a
    failover, connections to the former primary stay open and refuse writes.
    """
    known = getattr(error, "sqlstate", None) == asyncpg.ReadOnlySQLTransactionError.sqlstate
    return known or isinstance(error, TimeoutError)


def is_locked(error: BaseException | None) -> bool:
    """Tell if a statement ended because its wait for a lock took too long."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == LOCKED
