"""kombu's connection and Redis channel, with changes: reconnection, client reuse and low priority.

Source: kombu 5.7.0, connection.py and transport/redis.py.
"""

from __future__ import annotations

from typing import Any

from celery.app import amqp
from kombu import connection
from kombu.transport import redis as kombu_redis

# Seconds between attempts to reach a broker that is down: first pause, increment and maximum.
LOOKS = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": 2.0}

# Seconds until a worker looks again if it has a place for a stage of low priority.
RECHECK_S = 0.1


class Connection(connection.Connection):
    """kombu's connection, which reconnects within two seconds after the broker is back.

    kombu makes each pause two seconds longer, up to thirty; in that time a worker does nothing.
    """

    def ensure_connection(self, *args: Any, **options: Any) -> Any:
        """Wait for the broker, with pauses of at most two seconds."""
        return super().ensure_connection(*args, **{**LOOKS, **options})  # type: ignore[no-untyped-call]


class AMQP(amqp.AMQP):  # type: ignore[misc]
    """Celery AMQP factory that uses our Connection."""

    Connection = Connection


class Channel(kombu_redis.Channel):
    """kombu's Redis channel, with one client for the life of its connection pool.

    kombu creates a client for each command, which costs more than the command: CPU of one hint 1.0
    -> 0.75 ms. A redis-py client is only a view of its pool and safe for threads.
    """

    _client_of_pool: Any = None

    def _brpop_start(self, timeout: float | None = None) -> None:
        """Wait for a hint; shortly, if the queues of low priority are left out for the moment."""
        if timeout is None and getattr(self._queue_cycle, "restricted", False):
            timeout = RECHECK_S
        super()._brpop_start(timeout)  # type: ignore[no-untyped-call]

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[no-untyped-call]
        if self._client_of_pool is None or self._client_of_pool.connection_pool is not self.pool:
            self._client_of_pool = super()._create_client()  # type: ignore[no-untyped-call]
        return self._client_of_pool


def set_up() -> None:
    """Make kombu use this channel for all Redis connections of the process."""
    kombu_redis.Transport.Channel = Channel
