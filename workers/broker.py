"""kombu's Redis transport, with the one correction that Memlane needs of it.

Source: kombu 5.7.0, transport/redis.py.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis as kombu_redis


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
