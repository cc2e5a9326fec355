"""A collector of traces for tests: it takes OTLP over HTTP and keeps the spans."""

from __future__ import annotations

import socket
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

LOOPBACK = ("127.0.0.1", 0)


@dataclass(frozen=True, slots=True)
class CollectedSpan:
    """A span, with the process that has sent it. Times are in seconds since 1970."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    started: float
    ended: float
    process: str
    attributes: dict[str, Any]


@dataclass(slots=True)
class Collector:
    """It has its port at once, and answers inside `async with`. `spans`: all that have arrived."""

    spans: list[CollectedSpan] = field(default_factory=list)
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(LOOPBACK))
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1/traces"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/traces", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.SockSite(self._runner, self._listener).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def trace_of(self, event_id: str) -> list[CollectedSpan]:
        """The spans of the trace in which an event was added, oldest first."""
        traces = defaultdict(list)
        for span in self.spans:
            traces[span.trace_id].append(span)
        for spans in traces.values():
            if any(_adds(span, event_id) for span in spans):
                return sorted(spans, key=lambda span: span.started)
        return []

    async def _take(self, request: web.Request) -> web.Response:
        message = ExportTraceServiceRequest()
        message.ParseFromString(await request.read())
        for resource in message.resource_spans:
            process = _values(resource.resource.attributes)["memlane.process"]
            for scope in resource.scope_spans:
                self.spans += [_span(span, process) for span in scope.spans]
        return web.Response(content_type="application/x-protobuf")


def _adds(span: CollectedSpan, event_id: str) -> bool:
    return span.name.startswith("POST") and span.attributes.get("memlane.event.id") == event_id


def _span(span: Any, process: str) -> CollectedSpan:
    return CollectedSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        started=span.start_time_unix_nano / 1e9,
        ended=span.end_time_unix_nano / 1e9,
        process=process,
        attributes=_values(span.attributes),
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}
