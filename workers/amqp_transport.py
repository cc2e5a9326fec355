"""Hints over RabbitMQ: kombu's channel, with low priority, confirmed publishing and time limits.

RabbitMQ pushes messages to the worker. With a prefetch of one message and its acknowledgement after
the task, a worker has one hint at a time, and has a place for its stage before the next one comes.

Source: kombu 5.7.0, transport/pyamqp.py; py-amqp 5.4.2, channel.py.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from amqp.exceptions import NotFound  # type: ignore[import-untyped]
from kombu.transport import pyamqp

from pipeline.settings import Settings
from workers.fair_queues import RECHECK_S, LowGate, is_low

# Seconds to wait for an answer of the server.
ANSWER_S = 5.0
# Let both sides notice that the other one is gone while no message is sent.
KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}


class AmqpChannel(pyamqp.Channel):
    """A channel that consumes from the queues of low priority only while their gate is open."""

    # None for a channel that only publishes.
    gate: LowGate | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Options of the consumers of low priority by tag; they start paused.
        self._low_consumers: dict[str, Mapping[str, Any]] = {}
        self._low_consumes = False

    def message_to_python(self, raw_message: Any) -> Any:
        """Note the queue of a received message."""
        if self.gate is not None:
            self.gate.took(raw_message.delivery_info["routing_key"])
        return super().message_to_python(raw_message)  # type: ignore[no-untyped-call]

    def basic_consume(self, queue: str = "", consumer_tag: str = "", **options: Any) -> Any:
        """Start a consumer; one of low priority once the gate is open."""
        if self.gate is None or not is_low(queue):
            return super().basic_consume(queue=queue, consumer_tag=consumer_tag, **options)
        self._low_consumers[consumer_tag] = {"queue": queue, **options, "nowait": True}
        return consumer_tag

    def basic_cancel(self, consumer_tag: str, **options: Any) -> Any:
        """End a consumer for good."""
        self._low_consumers.pop(consumer_tag, None)
        return super().basic_cancel(consumer_tag, **options)

    def basic_ack(self, delivery_tag: int, **options: Any) -> None:
        """Acknowledge a message: the server may then send the next one.

        Until then it sends none, so the queues of the next message are decided before.
        """
        self.adjust()
        super().basic_ack(delivery_tag, **options)

    def adjust(self) -> None:
        """Pause or resume the consumers of low priority, as the gate says now."""
        if self.gate is None or not self._low_consumers:
            return
        if (wanted := self.gate.is_open()) is self._low_consumes:
            return
        self._low_consumes = wanted
        for tag, options in self._low_consumers.items():
            if wanted:
                super().basic_consume(consumer_tag=tag, **options)
            else:
                super().basic_cancel(tag, nowait=True)

    def basic_publish_confirm(self, *arguments: Any, **options: Any) -> Any:
        """Publish a message and wait until the server has it. Errors: TimeoutError."""
        limits = {"timeout": ANSWER_S, "confirm_timeout": ANSWER_S}
        return super().basic_publish_confirm(*arguments, **{**options, **limits})

    def wait(self, method: Any, timeout: float | None = None, **options: Any) -> Any:
        """Wait for a method of the server, by default for ANSWER_S. Errors: TimeoutError."""
        return super().wait(method, timeout=timeout or ANSWER_S, **options)

    def leave_mark(self, name: str) -> bool:
        """Create a queue in the server. True if it was not there: a restarted server has none."""
        try:
            self.queue_declare(name, passive=True)
        except NotFound:  # the server has closed this channel
            with self.connection.channel() as other:
                other.queue_declare(name, durable=False, auto_delete=False)
            return True
        return False


class AmqpConnection(pyamqp.Connection):
    """A connection whose channels are ours."""

    Channel = AmqpChannel


class AmqpTransport(pyamqp.Transport):
    """Transport of amqp:// and amqps:// URLs."""

    Connection = AmqpConnection

    def create_channel(self, connection: Any) -> Any:
        """Open a channel with the process's gate for low priority."""
        channel = connection.channel()
        channel.gate = self.client.transport_options.get("low_gate")  # type: ignore[union-attr]
        return channel

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Receive messages in the loop, and look regularly at the gate."""
        super().register_with_event_loop(connection, loop)  # type: ignore[no-untyped-call]

        def adjust() -> None:
            for channel in (connection.channels or {}).values():
                if isinstance(channel, AmqpChannel):
                    channel.adjust()

        loop.call_repeatedly(RECHECK_S, adjust)


def celery_settings(settings: Settings, low_fits: Callable[[], bool]) -> Mapping[str, Any]:
    """Celery's settings for this broker."""
    options = {
        "low_gate": LowGate(low_fits),
        # Without it, a hint that is sent to a dead server is lost without an error.
        "confirm_publish": True,
        "socket_settings": {
            getattr(socket, name): value
            for name, value in KEEPALIVE.items()
            if hasattr(socket, name)  # not every system has all of them
        },
    }
    return {
        "broker_transport_options": options,
        "broker_use_ssl": _tls(settings),
        # A full worker sends no heartbeats, because its only thread waits for a place.
        "broker_heartbeat": 0,
        # After the stage has a place. A worker that dies before returns the hint at once.
        "task_acks_late": True,
        # In memory only: a confirmation does not wait for the disk. The sweeper notices a restart
        # of the server, and publishes all due hints.
        "task_default_delivery_mode": "transient",
    }


def _tls(settings: Settings) -> Mapping[str, Any] | None:
    """Arguments of TLS for amqps:// URLs: the server's certificate and host name are checked."""
    if settings.broker_scheme != "amqps":
        return None
    certificates = {"ca_certs": str(settings.broker_ca)} if settings.broker_ca else {}
    # kombu replaces None by the host of the URL.
    return {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": None, **certificates}
