"""Hints over Redis, Valkey or Redis Sentinel: kombu's channel, with client reuse and low priority.

Source: kombu 5.7.0, transport/redis.py.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kombu.transport import redis as kombu_redis

from pipeline.settings import Settings
from workers.fair_queues import RECHECK_S, TakeOrder


class _Changes:
    """The changes to kombu's channels, in front of kombu's class.

    One client serves for the life of its connection pool. kombu creates a client for each command,
    which costs more than the command: CPU of one hint 1.0 -> 0.75 ms. A redis-py client is only a
    view of its pool and safe for threads.
    """

    _client_of_pool: Any = None

    def _brpop_start(self, timeout: float | None = None) -> None:
        """Wait for a hint; shortly, if the queues of low priority are left out for the moment."""
        if timeout is None and getattr(self._queue_cycle, "restricted", False):  # type: ignore[attr-defined]
            timeout = RECHECK_S
        super()._brpop_start(timeout)  # type: ignore[misc]

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._client_of_pool is None or self._client_of_pool.connection_pool is not self.pool:  # type: ignore[attr-defined]
            self._client_of_pool = super()._create_client()  # type: ignore[misc]
        return self._client_of_pool

    def leave_mark(self, name: str) -> bool:
        """Set a key in the server. True if it was not there: the server was wiped or replaced."""
        return bool(self.client.set(name, "1", nx=True))  # type: ignore[attr-defined]


class RedisChannel(_Changes, kombu_redis.Channel):
    """Channel of one Redis server."""


class RedisSentinelChannel(_Changes, kombu_redis.SentinelChannel):
    """Channel of the Redis server that Sentinel names as the master."""


class RedisTransport(kombu_redis.Transport):
    """Transport of redis:// and rediss:// URLs."""

    Channel = RedisChannel


class RedisSentinelTransport(kombu_redis.SentinelTransport):
    """Transport of sentinel:// URLs."""

    Channel = RedisSentinelChannel


def celery_settings(settings: Settings, low_fits: Callable[[], bool]) -> Mapping[str, Any]:
    """Celery's settings for this broker."""
    options: dict[str, Any] = {
        # kombu records unacknowledged messages in Redis, to deliver them again minutes after their
        # worker died: a third of a message's cost. The ledger's leases detect a dead worker within
        # seconds.
        "ack_emulation": False,
        # Without these, a read from a half-open socket never returns.
        "health_check_interval": 10,
        "socket_keepalive": True,
        "socket_timeout": 15,
        "socket_connect_timeout": 3,
        # See workers.fair_queues.
        "queue_order_strategy": partial(TakeOrder, low_fits),
        # No priorities: by default, each queue is four keys in every BRPOP.
        "priority_steps": [0],
    }
    if settings.broker_sentinel_master is not None:
        options["master_name"] = settings.broker_sentinel_master
        options["sentinel_kwargs"] = _of_sentinels(settings)
    return {"broker_transport_options": options, "broker_use_ssl": _tls(settings)}


def _of_sentinels(settings: Settings) -> Mapping[str, Any]:
    """Arguments of the connections to the Sentinel processes themselves."""
    limits = {"socket_timeout": 3, "socket_connect_timeout": 3}
    if settings.broker_sentinel_password is None:
        return limits
    return {**limits, "password": settings.broker_sentinel_password.get_secret_value()}


def _tls(settings: Settings) -> Mapping[str, Any] | None:
    """Arguments of TLS for rediss:// URLs: the server's certificate and host name are checked."""
    if settings.broker_scheme != "rediss":
        return None
    certificates = {"ssl_ca_certs": str(settings.broker_ca)} if settings.broker_ca else {}
    return {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True, **certificates}
