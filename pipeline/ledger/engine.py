"""Connections to PostgreSQL: their session settings, their time limits, and the end of dead ones.

Every wait has a limit. The server ends a statement at its time limit; where the client has to do it
a moment later, the connection is silent, and then none of the same age is used again.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import asyncpg
import orjson
import structlog
from sqlalchemy import Dialect, event, make_url
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

log = structlog.get_logger()

SESSION: Mapping[str, str] = {
    # A worker that freezes inside a transaction holds its lane's row: nobody could take the lane
    # over, nor accept into it. No transaction of ours is idle between its statements.
    "idle_in_transaction_session_timeout": "5000",
    # A plan is kept from when it was made, and of a table that was small then it reads all rows for
    # ever after, until the table is analyzed. All that is asked often has an index to go by.
    "enable_seqscan": "off",
    # Or a statement whose plan for any values looks dearer than that for these is planned each time
    # it is asked: BM25 took longer to plan than to compute.
    "plan_cache_mode": "force_generic_plan",
    # Whose compiling of a statement costs more than any statement of ours takes.
    "jit": "off",
}
# How the server learns that a client is gone, even in the middle of a statement.
CLIENT_CHECKS: Mapping[str, str] = {
    "client_connection_check_interval": "2000",
    "tcp_user_timeout": "15000",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
# And how the client learns that the server is, where no statement is under way.
KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}

LOCKED = asyncpg.LockNotAvailableError.sqlstate

CONNECT_S, POOL_S = 5.0, 10.0
# The server's error arrives first, unless the connection is silent.
MARGIN_S = 2.0


class SettingsMissing(OSError):
    """A connection pooler such as PgBouncer keeps no session settings, and the role has none."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Seconds: for a statement, and for its wait for a lock where that is less. None: no limit."""

    statement_s: float | None
    lock_s: float | None = None

    @property
    def answer_s(self) -> float | None:
        return None if self.statement_s is None else self.statement_s + MARGIN_S

    def settings(self) -> Mapping[str, str]:
        limits = {"statement_timeout": self.statement_s, "lock_timeout": self.lock_s}
        return {name: str(round(s * 1000)) for name, s in limits.items() if s is not None}


# What stages and requests do all the time; adds, which must not wait for one locked lane; undo,
# erasure, replay and reindex, whose statements grow with what they change; and migrations.
USUAL, INBOX, LONG, UNLIMITED = (
    SessionLimits(10.0),
    SessionLimits(10.0, lock_s=0.25),
    SessionLimits(600.0),
    SessionLimits(None),
)


@dataclass(slots=True)
class _State:
    """What is known of one engine's connections: those older than `suspect_before` may be dead, and
    a `pooler` stands between them and the server.
    """

    suspect_before: float = 0.0
    pooler: bool = False


_STATES: WeakKeyDictionary[Dialect, _State] = WeakKeyDictionary()


def connect(
    url: str, *, pool_size: int, name: str = "memlane", limits: SessionLimits = USUAL
) -> AsyncEngine:
    """An engine for any `postgresql://` URL, whichever driver it names. `name`: what the server
    calls its connections.
    """
    engine = create_async_engine(
        make_url(url).set(drivername="postgresql+asyncpg"),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_S,
        # The same few again and again: a backend that was just asked has all it needs in the caches
        # of its core. Taken in turn, they answer 6 % fewer searches (measured, 2 cores).
        pool_use_lifo=True,
        connect_args={
            "timeout": CONNECT_S,
            "command_timeout": limits.answer_s,
            # Poolers pass on this one parameter and refuse others.
            "server_settings": {"application_name": name},
        },
        # Errors would repeat what users said.
        hide_parameters=True,
        json_deserializer=orjson.loads,
    )
    state = _STATES[engine.dialect] = _State()
    settings = {**SESSION, **CLIENT_CHECKS, **limits.settings()}
    event.listen(engine.sync_engine, "connect", partial(_connected, state, settings))
    event.listen(engine.sync_engine, "checkout", partial(_checked_out, state))
    event.listen(engine.sync_engine, "handle_error", _failed)
    return engine


def suspect_all(dialect: Dialect) -> None:
    """Have no connection used again that is open now."""
    if state := _STATES.get(dialect):
        state.suspect_before = time.monotonic()


def behind_pooler(engine: AsyncEngine) -> bool:
    """Whether a pooler such as PgBouncer hands out the server's sessions, known once a connection
    was made: no session is then any one client's.
    """
    state = _STATES.get(engine.dialect)
    return state is not None and state.pooler


def _connected(state: _State, settings: Mapping[str, str], connection: Any, record: Any) -> None:
    record.info["since"] = time.monotonic()
    connection.run_async(partial(_set_up, state, settings))


async def _set_up(
    state: _State, settings: Mapping[str, str], driver: asyncpg.Connection[Any]
) -> None:
    _keep_alive(driver)
    state.pooler = await driver.fetchval("SELECT pg_backend_pid()") != driver.get_server_pid()
    if not state.pooler:
        await driver.execute("; ".join(f"SET {name} = '{settings[name]}'" for name in settings))
        return
    query = "SELECT name, setting FROM pg_settings WHERE name = ANY ($1)"
    held = {row["name"]: row["setting"] for row in await driver.fetch(query, list(SESSION))}
    if missing := {name: value for name, value in SESSION.items() if held.get(name) != value}:
        commands = " ".join(f"ALTER ROLE CURRENT_USER SET {k} = '{v}';" for k, v in missing.items())
        log.error("session_settings_missing", commands=commands)
        raise SettingsMissing(
            f"Behind a connection pooler, the role needs its settings: {commands}"
        )


def _keep_alive(driver: asyncpg.Connection[Any]) -> None:
    transport = driver._transport  # type: ignore[attr-defined]  # noqa: SLF001  asyncpg has no option for it
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # not all of them are known to every system
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _checked_out(state: _State, connection: Any, record: Any, _: Any) -> None:
    """Have the pool replace a connection that is closed or suspect, before it is used."""
    driver = connection.driver_connection
    if driver.is_closed() or record.info["since"] <= state.suspect_before:
        driver.terminate()  # without a farewell that a silent server would not answer
        raise DisconnectionError


def _failed(context: ExceptionContext) -> None:
    if is_stale(context.original_exception):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False
        suspect_all(context.dialect)


def is_stale(error: BaseException) -> bool:
    """Whether the server did not answer within its own time limit, or is a standby by now: after a
    failover, connections to the primary of before stay open and refuse to write.
    """
    known = getattr(error, "sqlstate", None) == asyncpg.ReadOnlySQLTransactionError.sqlstate
    return known or isinstance(error, TimeoutError)


def is_locked(error: BaseException | None) -> bool:
    """Whether a statement gave up its wait for a lock."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == LOCKED
