"""kombu's connection, with quick reconnection and our transports.

Source: kombu 5.7.0, connection.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from celery.app import amqp
from kombu import connection
from kombu.transport import pyamqp
from kombu.transport import redis as kombu_redis

from pipeline.settings import Settings
from workers import amqp_transport, redis_transport

# Seconds between attempts to reach a broker that is down: first pause, increment and maximum.
LOOKS = {"interval_start": 0.5, "interval_step": 0.5, "interval_max": 2.0}

# Our transport for each of kombu's.
TRANSPORTS: Mapping[type, type] = {
    kombu_redis.Transport: redis_transport.RedisTransport,
    kombu_redis.SentinelTransport: redis_transport.RedisSentinelTransport,
    pyamqp.Transport: amqp_transport.AmqpTransport,
    pyamqp.SSLTransport: amqp_transport.AmqpTransport,
}


class Connection(connection.Connection):
    """kombu's connection, which reconnects within two seconds after the broker is back.

    kombu makes each pause two seconds longer, up to thirty; in that time a worker does nothing.
    """

    def get_transport_cls(self) -> Any:
        """Our transport for the URL's scheme."""
        transport = super().get_transport_cls()  # type: ignore[no-untyped-call]
        return TRANSPORTS.get(transport, transport)

    def ensure_connection(self, *args: Any, **options: Any) -> Any:
        """Wait for the broker, with pauses of at most two seconds."""
        return super().ensure_connection(*args, **{**LOOKS, **options})  # type: ignore[no-untyped-call]


class AMQP(amqp.AMQP):  # type: ignore[misc]
    """Celery AMQP factory that uses our Connection."""

    Connection = Connection


def celery_settings(settings: Settings, low_fits: Callable[[], bool]) -> Mapping[str, Any]:
    """Celery's settings for the broker of MEMLANE_BROKER_URL."""
    if settings.broker_scheme in ("amqp", "amqps"):
        return amqp_transport.celery_settings(settings, low_fits)
    return redis_transport.celery_settings(settings, low_fits)
