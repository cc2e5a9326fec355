"""One trace for each event: the request, the stages, the models, the changed memories."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pipeline import tracing
from pipeline.adapters.model_rules import RulesModel
from pipeline.adapters.traces_otlp import OtlpTracer
from pipeline.domain.events import StageName
from pipeline.models.measured import MeasuredModel
from pipeline.stores import Ledger
from tests.support.api_service import ADD, MAYA, Service, serving

SENTENCE = "My name is Maya, and I live in Berlin."
CLIENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SEARCH = "POST /v3/memories/search/"


class Spans:
    """The spans that have ended."""

    def __init__(self, *, texts: bool = False) -> None:
        self._exporter = InMemorySpanExporter()
        self._tracer = OtlpTracer(self._exporter, process="test", texts=texts)
        tracing.use(self._tracer)

    def all(self) -> list[ReadableSpan]:
        self._tracer.flush()
        return list(self._exporter.get_finished_spans())

    def of(self, event_id: str) -> list[ReadableSpan]:
        """The spans of the trace of an event."""
        [request] = [
            span
            for span in self.all()
            if span.name.startswith("POST") and _given(span, "memlane.event.id") == event_id
        ]
        return [span for span in self.all() if span.context.trace_id == request.context.trace_id]


def _given(span: ReadableSpan, name: str) -> object:
    return (span.attributes or {}).get(name)


@pytest.fixture
def spans() -> Iterator[Spans]:
    yield Spans()
    tracing.use(None)


@pytest.fixture
async def traced(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger, traces_url="http://127.0.0.1:9/v1/traces") as service:
        service.engine.with_model(MeasuredModel(RulesModel()))
        yield service


async def test_an_event_has_one_trace_from_its_request_to_its_memories(
    traced: Service, spans: Spans
) -> None:
    event_id = await traced.add(SENTENCE)
    trace = spans.of(event_id)
    names = [span.name for span in trace]
    assert names[0] == "POST /v3/memories/add/"
    for stage in (StageName.EXTRACT, StageName.RETRIEVE, StageName.APPLY):
        assert f"memlane {stage}" in names
    assert "chat local/rules" in names
    memories = [span for span in trace if span.name == "create_memory"]
    stored = {row["id"] for row in await traced.listed()}
    assert {_given(span, "gen_ai.memory.record.id") for span in memories} == stored
    assert len({span.context.span_id for span in trace}) == len(trace)


async def test_no_span_has_a_text_of_a_user(traced: Service, spans: Spans) -> None:
    await traced.add(SENTENCE)
    await traced.search("Where does Maya live?")
    await traced.client.get("/v1/memories/?user_id=maya")
    texts = "".join(span.to_json() for span in spans.all())
    assert not [word for word in ("Berlin", "Maya", "maya", "Where") if word in texts]


async def test_texts_are_recorded_if_wanted(traced: Service) -> None:
    spans = Spans(texts=True)
    try:
        await traced.add(SENTENCE)
        await traced.search("Where do I live?")
        texts = "".join(span.to_json() for span in spans.all())
    finally:
        tracing.use(None)
    assert "User lives in Berlin" in texts
    assert "Where do I live?" in texts


async def test_a_request_follows_the_trace_of_its_client(traced: Service, spans: Spans) -> None:
    body = {"messages": [{"role": "user", "content": SENTENCE}]} | MAYA
    await traced.client.post(ADD, json=body, headers={"traceparent": CLIENT})
    await traced.engine.drain()
    assert {f"{span.context.trace_id:032x}" for span in spans.all()} == {CLIENT[3:35]}


async def test_events_of_one_batch_keep_their_traces(traced: Service, spans: Spans) -> None:
    ids = []
    for text in (SENTENCE, "I like tea."):
        body = {"messages": [{"role": "user", "content": text}]} | MAYA
        ids.append((await traced.client.post(ADD, json=body)).json()["event_id"])
    await traced.engine.drain()
    first, second = (spans.of(event_id) for event_id in ids)
    [shared] = [span for span in first if span.name == "memlane extract"]
    [copy] = [span for span in second if span.name == "memlane extract"]
    assert _given(shared, "memlane.batch.events") == 2
    assert [link.context.span_id for link in copy.links] == [shared.context.span_id]
    assert [link.context.trace_id for link in shared.links] == [copy.context.trace_id]
    assert [_given(span, "memlane.event.id") for span in (shared, copy)] == ids


async def test_a_search_is_traced_with_its_store_and_number(traced: Service, spans: Spans) -> None:
    await traced.add(SENTENCE)
    hits = await traced.search("Where do I live?")
    [search] = [span for span in spans.all() if span.name == "search_memory"]
    [request] = [span for span in spans.all() if span.name == SEARCH]
    assert search.parent is not None
    assert search.parent.span_id == request.context.span_id
    assert _given(search, "memlane.results") == len(hits)
    assert _given(search, "gen_ai.memory.store.id") == str(traced.engine.project.id)
    assert _given(request, "http.response.status_code") == 200


async def test_without_traces_nothing_is_stored(traced: Service) -> None:
    await traced.add(SENTENCE)
    spans = Spans()
    try:
        await traced.engine.drain()
        await traced.add("I like tea.")
    finally:
        tracing.use(None)
    assert len([span for span in spans.all() if span.name == "memlane extract"]) == 1
