"""Traces as OTLP over HTTP, by the SDK of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Link, SpanKind, StatusCode, get_current_span
from opentelemetry.trace import Span as OpenSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pipeline import __version__, tracing

# Longest time of one attempt to send spans, and of the last one when the process ends.
SEND_S = 3
W3C = TraceContextTextMapPropagator()


class RecordedSpan(tracing.TraceSpan):
    """A span of OpenTelemetry. `texts`: texts of users are recorded."""

    def __init__(self, span: OpenSpan, *, texts: bool) -> None:
        self._span = span
        self._texts = texts

    @property
    def traceparent(self) -> str | None:
        """As of the port; None also if no span runs."""
        context = self._span.get_span_context()
        if not context.is_valid:
            return None
        sampled = int(context.trace_flags.sampled)
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{sampled:02x}"

    def rename(self, name: str) -> None:
        """As of the port."""
        self._span.update_name(name)

    def set(self, attributes: tracing.Attributes) -> None:
        """As of the port."""
        self._span.set_attributes(_given(attributes))

    def text(self, name: str, value: str) -> None:
        """As of the port."""
        if self._texts:
            self.set({name: value})

    def fail(self, code: str) -> None:
        """As of the port."""
        self._span.set_status(StatusCode.ERROR)
        self._span.set_attribute("error.type", code)


class OtlpTracer:
    """The Tracer port. A thread sends the spans; they are dropped while it cannot keep up.

    `share`: of the traces that begin here; a trace that began elsewhere is recorded if it is there.
    """

    def __init__(
        self, exporter: SpanExporter, *, process: str, share: float = 1.0, texts: bool = False
    ) -> None:
        """Name this process in all spans."""
        resource = Resource.create(
            {"service.name": "memlane", "service.version": __version__, "memlane.process": process}
        )
        self._provider = TracerProvider(
            resource=resource, sampler=ParentBased(TraceIdRatioBased(share))
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, export_timeout_millis=1000 * SEND_S)
        )
        self._tracer = self._provider.get_tracer("memlane", __version__)
        self._texts = texts

    @contextmanager
    def span(
        self,
        name: str,
        attributes: tracing.Attributes,
        *,
        kind: tracing.Kind,
        parent: str | None,
        links: Sequence[str],
    ) -> Iterator[tracing.TraceSpan]:
        """As of the port."""
        with self._tracer.start_as_current_span(
            name,
            context=_context(parent),
            kind=SpanKind[kind],
            attributes=_given(attributes),
            links=_links(links),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield RecordedSpan(span, texts=self._texts)

    def record(
        self,
        name: str,
        attributes: tracing.Attributes,
        *,
        started_ns: int,
        ended_ns: int,
        parent: str,
        links: Sequence[str],
    ) -> None:
        """As of the port."""
        span = self._tracer.start_span(
            name,
            context=_context(parent),
            attributes=_given(attributes),
            links=_links(links),
            start_time=started_ns,
        )
        span.end(ended_ns)

    def current(self) -> tracing.TraceSpan:
        """As of the port."""
        return RecordedSpan(get_current_span(), texts=self._texts)

    def flush(self) -> None:
        """Send the spans that have ended."""
        self._provider.force_flush(1000 * SEND_S)


def exporter_to(url: str, headers: Mapping[str, str]) -> SpanExporter:
    """Send spans to this address, with these headers."""
    return OTLPSpanExporter(url, headers=dict(headers), timeout=SEND_S)


def _given(attributes: tracing.Attributes) -> dict[str, str | int | float | bool]:
    return {name: value for name, value in attributes.items() if value is not None}


def _context(parent: str | None) -> Context | None:
    """The context of a traceparent. None, also for an invalid one: that of the span that runs."""
    return None if parent is None else W3C.extract({tracing.HEADER: parent})


def _links(parents: Sequence[str]) -> list[Link]:
    contexts = [get_current_span(_context(parent)).get_span_context() for parent in parents]
    return [Link(context) for context in contexts if context.is_valid]
