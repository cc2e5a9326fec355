"""Spans: their names, parents and links; codes of errors, and no text of a user."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pipeline import tracing
from pipeline.adapters.traces_otlp import OtlpTracer
from pipeline.domain.errors import ModelUnavailable

ELSEWHERE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"


class Recorder:
    """A tracer that keeps its spans."""

    def __init__(self, *, texts: bool = False, share: float = 1.0) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = OtlpTracer(self._exporter, process="test", texts=texts, share=share)
        tracing.use(self.tracer)

    def spans(self) -> dict[str, ReadableSpan]:
        self.tracer.flush()
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture(autouse=True)
def off() -> Iterator[None]:
    yield
    tracing.use(None)


def test_a_process_without_traces_records_nothing() -> None:
    with tracing.span("search_memory", {"memlane.results": 1}) as span:
        span.set({"memlane.results": 2})
        span.text("gen_ai.memory.query.text", "Where do I live?")
        span.fail("INTERNAL")
        assert span.traceparent is None
    assert tracing.current().traceparent is None


def test_a_span_inside_another_is_its_child() -> None:
    recorder = Recorder()
    with tracing.span("memlane extract", {}) as outer, tracing.span("chat m", {}, kind="CLIENT"):
        assert tracing.current().traceparent != outer.traceparent
    spans = recorder.spans()
    parent = spans["chat m"].parent
    assert parent is not None
    assert parent.span_id == spans["memlane extract"].context.span_id


def test_a_span_continues_a_trace_and_links_others() -> None:
    recorder = Recorder()
    with tracing.span("memlane apply", {}, parent=ELSEWHERE, links=[OTHER, "nonsense"]) as span:
        assert span.traceparent is not None
        assert span.traceparent[:35] == ELSEWHERE[:35]
    [linked] = recorder.spans()["memlane apply"].links
    assert f"{linked.context.trace_id:032x}" == OTHER[3:35]


@pytest.mark.parametrize("header", ["", "nonsense", "00-0-0-00", ELSEWHERE[:-1], "\0"])
def test_an_invalid_traceparent_begins_a_trace(header: str) -> None:
    recorder = Recorder()
    with tracing.span("POST", {}, parent=header):
        pass
    assert recorder.spans()["POST"].parent is None


def test_a_trace_that_is_not_recorded_elsewhere_is_not_recorded_here() -> None:
    recorder = Recorder()
    with tracing.span("POST", {}, parent=ELSEWHERE[:-1] + "0") as span:
        assert span.traceparent is not None  # the stages of the event must not be recorded either
        assert span.traceparent.endswith("-00")
    assert recorder.spans() == {}


def test_a_share_of_zero_records_nothing() -> None:
    recorder = Recorder(share=0)
    with tracing.span("POST", {}):
        pass
    assert recorder.spans() == {}


@pytest.mark.parametrize(
    ("error", "code"),
    [(ModelUnavailable("I live in Berlin"), "LLM_UNAVAILABLE"), (KeyError("I live"), "KeyError")],
)
def test_an_error_is_recorded_by_its_code_alone(error: Exception, code: str) -> None:
    recorder = Recorder()
    with pytest.raises(type(error)), tracing.span("memlane extract", {}):
        raise error
    span = recorder.spans()["memlane extract"]
    assert not span.status.is_ok
    assert span.attributes == {"error.type": code}
    assert not span.events
    assert "live" not in span.to_json()


@pytest.mark.parametrize("texts", [True, False])
def test_texts_are_recorded_only_if_wanted(texts: bool) -> None:
    recorder = Recorder(texts=texts)
    with tracing.span("search_memory", {"memlane.results": None}) as span:
        span.text("gen_ai.memory.query.text", "Where do I live?")
    attributes = recorder.spans()["search_memory"].attributes
    assert attributes == ({"gen_ai.memory.query.text": "Where do I live?"} if texts else {})
