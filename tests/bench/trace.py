"""A picture of the trace of one event: `python -m tests.bench.trace`, docs/pictures/trace.png.

A stack with a hosted-style model and embedder that take 200 ms a call, and a collector of traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import uvloop

from tests.bench.hosted import hosted, provider, stack
from tests.support.collector import CollectedSpan, Collector
from tests.support.stack import wait_until

mpl.use("Agg")
from matplotlib import pyplot

PICTURE = Path("docs/pictures/trace.png")
LATENCY_MS = 200
COLORS = {"POST": "#1864ab", "memlane": "#5c940d", "chat": "#e67700", "embeddings": "#c2255c"}
OTHERS = "#495057"


async def traced() -> list[CollectedSpan]:
    """The spans of one event that adds two facts."""
    collector = Collector()
    settings = {"MEMLANE_TRACES_URL": collector.url, "MEMLANE_GRAPH": "on"}
    with provider(latency_ms=LATENCY_MS) as url, stack(hosted(url, **settings)) as running:
        async with running.client() as client, collector:
            await client.ended(await client.add("noor", "I like tea."))
            event_id = await client.add("noor", "I live in Porto, and I work at a bakery.")
            await client.ended(event_id)

            async def whole() -> bool:
                return any(span.name == "memlane relate" for span in collector.trace_of(event_id))

            await wait_until(whole, within_s=60, what="the last stage of the event")
    return collector.trace_of(event_id)


def draw(spans: Sequence[CollectedSpan]) -> None:
    """Draw the spans as bars below each other, in the order in which they began."""
    figure, axes = pyplot.subplots(figsize=(11, 0.34 * len(spans) + 1))
    begun, end = spans[0].started, max(span.ended for span in spans)
    for place, span in enumerate(spans):
        left, width = 1000 * (span.started - begun), 1000 * (span.ended - span.started)
        color = COLORS.get(span.name.split()[0], OTHERS)
        axes.barh(place, max(width, 1.5), left=left, color=color, height=0.62)
        axes.text(left + max(width, 1.5) + 6, place, f"{width:.0f} ms", va="center", fontsize=8)
    labels = [f"{span.name}   {span.process}" for span in spans]
    axes.set_yticks(range(len(spans)), labels, fontsize=8)
    axes.set_xlim(0, 1080 * (end - begun))
    axes.set_xlabel("milliseconds since the request")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    draw(uvloop.run(traced()))
