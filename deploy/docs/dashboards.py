"""deploy/monitoring/dashboards: a dashboard for Grafana with a panel for every metric.

Counters are shown as rates, and with labels only while they count; histograms as percentiles.
Gauges of the ledger have the same value in each API process, and 0 in the others, so their maximum
is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from string import ascii_uppercase
from typing import Any

from prometheus_client.metrics import MetricWrapperBase

from deploy.docs.metrics import family_name, metrics

# Rows in this order, with the starts of their metrics; others are in the last row.
ROWS: dict[str, Sequence[str]] = {
    "Objectives and queue": ("queue", "ledger", "event"),
    "API": ("http", "adds", "search", "loop"),
    "Workers": ("stage", "fenced", "stale", "lanes", "kicks"),
    "Models": ("model", "embedder"),
    "Sweeper and others": (),
}
OBJECTIVES = {
    "Adds slower than 100 ms": "memlane:adds_missed:ratio_1h",
    "Adds that failed": "memlane:adds_failed:ratio_1h",
    "Time with late events": "memlane:late:ratio_1h",
}
QUANTILES = (0.5, 0.95, 0.99)
# Grafana's grid has 24 columns.
WIDTH, HEIGHT, COLUMNS = 8, 7, 24
SOURCE = {"type": "prometheus", "uid": "${source}"}


def dashboard() -> str:
    """The dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    for title in ROWS:
        panels.append(
            _placed({"type": "row", "title": title, "collapsed": False}, COLUMNS, 1, panels)
        )
        for panel in _panels(title):
            panels.append(_placed(panel, WIDTH, HEIGHT, panels))
    for number, panel in enumerate(panels, start=1):
        panel["id"] = number
    body = {
        "title": "Memlane",
        "uid": "memlane",
        "tags": ["memlane"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": panels,
    }
    return json.dumps(body, indent=1) + "\n"


def _panels(title: str) -> Iterator[dict[str, Any]]:
    if title == next(iter(ROWS)):
        queries = [(query, name) for name, query in OBJECTIVES.items()]
        yield _panel("Share of the objectives' misses, 1 h", "", queries, "percentunit")
    for metric in sorted(metrics(), key=family_name):
        if _row_of(metric) == title:
            yield _panel_of(metric)


def _row_of(metric: MetricWrapperBase) -> str:
    """Title of the row that shows a metric."""
    name = family_name(metric).removeprefix("memlane_")
    titles = (row for row, starts in ROWS.items() if name.startswith(tuple(starts)))
    return next(titles, list(ROWS)[-1])


def _panel_of(metric: MetricWrapperBase) -> dict[str, Any]:
    """The panel of a metric: rates of a counter, percentiles of a histogram, a gauge's maximum."""
    [family] = metric.describe()
    labels = metric._labelnames  # noqa: SLF001  no public name
    title = family.name.removeprefix("memlane_").replace("_", " ")
    by = f" by ({', '.join(labels)})" if labels else ""
    legend = " ".join(f"{{{{{label}}}}}" for label in labels) or title
    match family.type:
        case "counter":
            # A counter has a series for each value that its labels may take, and most never count.
            moved = " > 0" if labels else ""
            queries = [(f"sum{by} (rate({family.name}_total[5m])){moved}", legend)]
            return _panel(f"{title}, per second", family.documentation, queries, "cps")
        case "histogram":
            return _panel(title, family.documentation, _percentiles(family.name, labels), "s")
    unit = "s" if family.name.endswith("_seconds") else "short"
    return _panel(title, family.documentation, [(f"max{by} ({family.name})", legend)], unit)


def _percentiles(name: str, labels: Sequence[str]) -> list[tuple[str, str]]:
    """Queries and legends: three percentiles, or the 95th by label."""
    groups = ", ".join(("le", *labels))
    rates = f"sum by ({groups}) (rate({name}_bucket[5m]))"
    if labels:
        legend = " ".join(f"{{{{{label}}}}}" for label in labels)
        return [(f"histogram_quantile(0.95, {rates})", f"p95 {legend}")]
    return [(f"histogram_quantile({q}, {rates})", f"p{q * 100:g}") for q in QUANTILES]


def _panel(title: str, text: str, queries: list[tuple[str, str]], unit: str) -> dict[str, Any]:
    """A chart. `queries`: PromQL with the legend of its series."""
    return {
        "type": "timeseries",
        "title": title,
        "description": text,
        "datasource": SOURCE,
        "fieldConfig": {
            "defaults": {"unit": unit, "min": 0, "noValue": "none in this time"},
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": ref, "expr": query, "legendFormat": legend, "datasource": SOURCE}
            for ref, (query, legend) in zip(ascii_uppercase, queries, strict=False)
        ],
    }


def _placed(
    panel: dict[str, Any], width: int, height: int, before: list[dict[str, Any]]
) -> dict[str, Any]:
    """The panel at the right of the last one, or below if the line is full."""
    x = y = 0
    if before:
        last = before[-1]["gridPos"]
        x, y = last["x"] + last["w"], last["y"]
        if x + width > COLUMNS:
            x, y = 0, last["y"] + last["h"]
    return {**panel, "gridPos": {"x": x, "y": y, "w": width, "h": height}}
