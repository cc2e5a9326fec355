"""The dashboard as a picture, with real series: `python -m tests.bench.dashboard_picture FILE.png`.

A fleet with external servers runs under load for `--minutes`, with faults in between: a provider
that answers 500, a webhook that is refused, a killed worker, a stopped vector store. A real
Prometheus scrapes it and evaluates the rules. Each panel of the dashboard in deploy/monitoring is
drawn where Grafana would place it, from the range query that Grafana would send. Prints the panels
without a series, and those whose series never leave 0.

Windows of five minutes are shortened to one, so that a run of some minutes shows the faults.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import matplotlib as mpl

mpl.use("Agg")
from matplotlib import dates, pyplot

from tests.bench.prometheus_queries import MONITORING
from tests.support.alert_fleet import AlertFleet, alert_fleet
from tests.support.prometheus import NoPrometheus, Prometheus, prometheus

# Inches of a cell of Grafana's grid, and the most series that a legend names.
CELL_W, CELL_H, MOST_NAMED = 0.75, 0.42, 8
PAUSE_S = 0.05
WORDS = ("tea", "jazz", "sailing", "chess", "rye bread", "the harbour")
Series = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class DrawnPanel:
    """A panel with the series of its queries, by legend."""

    body: dict[str, Any]
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]]

    @property
    def is_flat(self) -> bool:
        """True if no value differs from 0."""
        return all(value == 0 for _, values in self.series for _, value in values)


def legend(template: str, labels: dict[str, str]) -> str:
    """The name of a series, as Grafana fills it in."""
    return re.sub(r"{{(\w+)}}", lambda match: labels.get(match[1], ""), template)


async def drawn(server: Prometheus, panel: dict[str, Any], since: float) -> DrawnPanel:
    """Run a panel's queries from `since` until now."""
    series = []
    for target in panel.get("targets", ()):
        query = target["expr"].replace("[5m]", "[1m]")
        for row in await server.range(query, since=since, until=time.time()):
            values = [(at, float(value)) for at, value in row["values"] if value != "NaN"]
            series.append((legend(target["legendFormat"], row["metric"]), values))
    return DrawnPanel(panel, series)


def draw(panels: Sequence[DrawnPanel], rows: Sequence[dict[str, Any]], file: Path) -> None:
    """Draw the dashboard: rows are headings, panels charts, where the grid puts them."""
    bottom = max(panel.body["gridPos"]["y"] + panel.body["gridPos"]["h"] for panel in panels)
    width, height = 24 * CELL_W, bottom * CELL_H
    figure = pyplot.figure(figsize=(width, height), dpi=60)
    for row in rows:
        grid = row["gridPos"]
        figure.text(0.01, 1 - (grid["y"] + 0.7) / bottom, row["title"], fontsize=13, weight="bold")
    for panel in panels:
        grid = panel.body["gridPos"]
        left, below = (grid["x"] + 1.0) / 24, 1 - (grid["y"] + grid["h"] - 1.4) / bottom
        axes = figure.add_axes((left, below, (grid["w"] - 1.5) / 24, (grid["h"] - 2.6) / bottom))
        _draw_one(axes, panel)
    figure.savefig(file)
    pyplot.close(figure)


def _draw_one(axes: Any, panel: DrawnPanel) -> None:
    axes.set_title(panel.body["title"], fontsize=9, loc="left")
    axes.tick_params(labelsize=7)
    unit = panel.body["fieldConfig"]["defaults"]["unit"]
    axes.set_ylabel(unit, fontsize=7)
    for name, values in panel.series:
        times = [datetime.fromtimestamp(at, UTC) for at, _ in values]
        axes.plot(times, [value for _, value in values], label=name, linewidth=1)
    clock: Any = dates.DateFormatter
    axes.xaxis.set_major_formatter(clock("%H:%M"))
    axes.set_ylim(bottom=0)
    if panel.series:
        axes.legend(fontsize=6, ncols=2, handles=axes.lines[:MOST_NAMED], loc="upper left")
    else:
        words = panel.body["fieldConfig"]["defaults"]["noValue"]
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color="gray")


async def load(fleet: AlertFleet) -> None:
    """Adds and searches, one after the other, until cancelled. Refused requests are load, too."""
    number = 0
    while True:
        number += 1
        with suppress(httpx.HTTPError):
            await fleet.post_add(f"I like {WORDS[number % 6]} number {number}.", f"u{number % 40}")
            await fleet.search(f"What about {WORDS[number % 6]} {number}?")
        await asyncio.sleep(PAUSE_S)


async def faults(fleet: AlertFleet, part_s: float) -> None:
    """A part of the time without a fault, then each fault for a part, then repair."""
    await asyncio.sleep(part_s)
    fleet.llm.on("any", "500")
    await asyncio.sleep(part_s)
    fleet.llm.rules.clear()
    fleet.webhook_status = 500
    await asyncio.sleep(part_s)
    fleet.webhook_status = 200
    await fleet.kill("worker")
    await asyncio.sleep(part_s / 2)
    await fleet.start("worker")
    await asyncio.to_thread(fleet.chroma.stop)
    await asyncio.sleep(part_s / 2)
    await asyncio.to_thread(fleet.chroma.start)
    await asyncio.sleep(part_s)


async def main(file: Path, minutes: float) -> bool:
    """Draw the dashboard. False if a panel has no series."""
    body = json.loads((MONITORING / "dashboards/memlane.json").read_text("utf-8"))
    charts = [panel for panel in body["panels"] if panel["type"] != "row"]
    rows = [panel for panel in body["panels"] if panel["type"] == "row"]
    async with AsyncExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        fleet = await running.enter_async_context(alert_fleet(folder / "fleet"))
        (folder / "prometheus").mkdir()
        server = await running.enter_async_context(
            prometheus(fleet.targets, folder / "prometheus", every="2s")
        )
        since = time.time()
        loading = asyncio.create_task(load(fleet))
        await faults(fleet, minutes * 60 / 5)
        loading.cancel()
        panels = [await drawn(server, chart, since) for chart in charts]
    draw(panels, rows, file)
    empty = [panel.body["title"] for panel in panels if not panel.series]
    flat = [panel.body["title"] for panel in panels if panel.series and panel.is_flat]
    print(json.dumps({"panels": len(panels), "without_series": empty, "always_0": flat}, indent=1))
    return not empty


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.dashboard_picture")
    parser.add_argument("file", type=Path)
    parser.add_argument("--minutes", type=float, default=5.0)
    given = parser.parse_args()
    try:
        sys.exit(not asyncio.run(main(given.file, given.minutes)))  # noqa: TID251  an entry
    except NoPrometheus as error:
        sys.exit(str(error))
