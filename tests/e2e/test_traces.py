"""Traces of a real stack: one for each event, from all processes, and no add waits for them."""

from __future__ import annotations

from pathlib import Path

from tests.support.collector import Collector
from tests.support.stack import Stack, wait_until


async def test_one_trace_has_the_request_and_the_stages_of_an_event(tmp_path: Path) -> None:
    collector = Collector()
    with Stack(tmp_path / "stack", {"MEMLANE_TRACES_URL": collector.url}) as stack:
        async with stack.client() as client:
            # The collector does not answer yet: its spans are lost, and nothing else is.
            unseen = await client.add("maya", "I live in Berlin.")
            assert (await client.ended(unseen))["status"] == "SUCCEEDED"
            async with collector:
                event_id = await client.add("maya", "I work at a bakery.")
                assert (await client.ended(event_id))["status"] == "SUCCEEDED"

                async def whole() -> bool:
                    names = [span.name for span in collector.trace_of(event_id)]
                    return "POST /v3/memories/add/" in names and "create_memory" in names

                await wait_until(whole, within_s=60, what="the spans of the event")
    trace = collector.trace_of(event_id)
    processes = {span.name: span.process for span in trace}
    assert processes["POST /v3/memories/add/"] == "api"
    assert processes["memlane extract"].startswith("worker")
    known = {span.span_id for span in trace}
    assert [span.name for span in trace if span.parent_id not in known] == [trace[0].name]
