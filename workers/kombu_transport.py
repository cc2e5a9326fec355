"""kombu and its Redis transport, with the two corrections that Memlane needs of them.

Source: kombu 5.7.0, connection.py and transport/redis.py.
"""

from __future__ import annotations

from typing import Any

from celery.app import amqp
from kombu import connection
from kombu.transport import redis as kombu_redis

# Seconds between two looks for a broker that is away: the first, what is added, and the most.
LOOKS = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": 2.0}


class Connection(connection.Connection):
    """kombu's, but a broker that is back is found within two seconds. kombu lets two seconds more
    pass each time, thirty in the end, and all the while a worker does nothing.
    """

    def ensure_connection(self, *args: Any, **options: Any) -> Any:
        return super().ensure_connection(*args, **{**LOOKS, **options})  # type: ignore[no-untyped-call]


class AMQP(amqp.AMQP):  # type: ignore[misc]
    """Celery AMQP factory that uses our Connection."""

    Connection = Connection


class Channel(kombu_redis.Channel):
    """kombu's, but with one client for as long as its connections live.

    kombu makes one for each command, which costs more than to send it: a hop of a task took 1.0 ms
    of CPU, and takes 0.75. A client of redis-py is no more than a view of its pool, for any thread.
    """

    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[no-untyped-call]
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[no-untyped-call]
        return self._kept


def set_up() -> None:
    """Have every connection of this process made so."""
    kombu_redis.Transport.Channel = Channel
