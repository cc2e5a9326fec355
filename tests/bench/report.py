"""docs/benchmarks/hosted.*: figures as JSON, tables and plots.

    python -m tests.bench.report      writes tables and plots of the recorded figures again

`python -m tests.bench.hosted` records figures; benches that were not run keep the recorded ones.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl

from deploy.docs.tables import table

mpl.use("Agg")
from matplotlib import pyplot

FOLDER = Path("docs/benchmarks")
RECORD = "hosted.json"
Figures = Mapping[str, Any]
CALLERS = ("1_callers", "16_callers", "64_callers")
SEARCHES = {
    "search-chroma": "hosted embedder, Chroma",
    "search-pgvector": "hosted embedder, pgvector",
    "search-floats": "hosted embedder that sends floats, Chroma",
    "search-minilm": "`local/minilm`, Chroma",
}
DRAINS = {
    "drain-default": "one worker for each core",
    "drain-one-worker": "one worker",
}
MEM0 = "mem0ai 2.2.1, library, pgvector"
INTRO = """# Hosted path

HTTP, with a model and an embedder behind an OpenAI-compatible stand-in (1,536 dimensions) on the
same machine. Client, stand-in and all servers share the cores. Searches run over 10,000 memories
of 50 users. Each figure is the median of three runs of `.venv/bin/python -m tests.bench.hosted`. On
a shared machine the same code differs by a third within a day: compare the rows of one recording.
"""
EMPTY = "\nNo run is recorded.\n"


def record(figures: Figures) -> None:
    """Merge the figures of a run into the record, then write tables and plots."""
    path = FOLDER / RECORD
    known = json.loads(path.read_text("utf-8")) if path.exists() else {"benches": {}}
    report = {
        "at": datetime.now(UTC).date().isoformat(),  # noqa: TID251  a report's date
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "benches": known["benches"] | dict(figures),
    }
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    write(report)


def write(report: Figures) -> None:
    """Write the page and its plots."""
    (FOLDER / "hosted.md").write_text(page(report), encoding="utf-8")
    benches = report["benches"]
    _bars("search.png", "searches a second, 16 callers", _rates(benches))
    _bars("drain.png", "events a second", _drain_rates(benches))


def page(report: Figures | None) -> str:
    """Markdown page of the recorded figures."""
    if not report:
        return INTRO + EMPTY
    benches = report["benches"]
    where = f"\nRecorded {report['at']}, {report['cores']} cores, Python {report['python']}.\n"
    parts = [INTRO + where, _searches(benches), _drains(benches), _accepts(benches)]
    return "\n".join(part for part in [*parts, _verbatim(benches)] if part)


def _searches(benches: Figures) -> str:
    rows = [
        (label, *map(_latency, callers), *map(_rate, callers[1:]), _total(callers[0]))
        for name, label in SEARCHES.items()
        if (bench := benches.get(name))
        for callers in [[bench[key] for key in CALLERS]]
    ]
    if peer := _peer(benches):
        single, sixteen = peer["search_1_caller"], peer["search_16_callers"]
        rows.append(
            (
                MEM0,
                _latency(single),
                _latency(sixteen),
                "",
                _rate(sixteen),
                "",
                f"{single['cpu_ms']}",
            )
        )
    head = (
        "search, p50 / p95 in ms", "1 caller", "16 callers", "64 callers", "16 callers, a second",
        "64 callers, a second", "CPU ms a search",
    )  # fmt: skip
    return _section("Search", head, rows, "search.png", "Searches a second with 16 callers")


def _drains(benches: Figures) -> str:
    rows = [
        (f"{label}, {kind}", f"{run['events_per_s']}", f"{run['cpu_ms_per_event']['total']}")
        for name, label in DRAINS.items()
        if name in benches
        for kind, key in (("distinct users", "distinct_users"), ("16 users", "few_users"))
        for run in [benches[name][key]]
    ]
    if slow := benches.get("drain-slow-model", {}).get("slow_model"):
        label = "one worker for each core, model 500 ms, 128 callers"
        rows.append((label, f"{slow['events_per_s']}", f"{slow['cpu_ms_per_event']['total']}"))
    if peer := _peer(benches):
        run = peer["distinct_users_16_callers"]
        rows.append((f"{MEM0}, 16 callers", f"{run['per_s']}", f"{run['cpu_ms']}"))
    head = ("drain, model 0 ms", "events a second", "CPU ms an event")
    return _section("Drain", head, rows, "drain.png", "Events a second")


def _accepts(benches: Figures) -> str:
    rows = [
        (label, *(_latency(benches[name]["accept_under_load"][key]) for key in CALLERS))
        for name, label in DRAINS.items()
        if name in benches
    ]
    head = ("accept while workers drain, p50 / p95 in ms", "1 caller", "16 callers", "64 callers")
    return _section("Accept", head, rows)


def _verbatim(benches: Figures) -> str:
    if not (bench := benches.get("verbatim-minilm")):
        return ""
    row = ("`local/minilm`", _latency(bench["1_caller"]), _latency(bench["8_callers"]))
    head = ("`infer=false`, answered when stored, p50 / p95 in ms", "1 caller", "8 callers")
    return _section("Verbatim adds", head, [row])


def _section(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], plot: str = "", alt: str = ""
) -> str:
    if not rows:
        return ""
    image = f"\n![{alt}]({plot})\n" if plot else ""
    return f"## {title}\n\n{table(head, rows)}{image}"


def _peer(benches: Figures) -> Figures | None:
    peer: Figures = benches.get("mem0-library", {})
    return peer if "search_1_caller" in peer else None


def _latency(run: Figures) -> str:
    return f"{run['p50_ms']:.0f} / {run['p95_ms']:.0f}"


def _rate(run: Figures) -> str:
    return f"{run['per_s']:.0f}"


def _total(run: Figures) -> str:
    return f"{run['cpu_ms']['total']}"


def _rates(benches: Figures) -> list[tuple[str, float]]:
    rates = [
        (label, benches[name]["16_callers"]["per_s"])
        for name, label in SEARCHES.items()
        if name in benches
    ]
    peer = _peer(benches)
    return rates + ([(MEM0, peer["search_16_callers"]["per_s"])] if peer else [])


def _drain_rates(benches: Figures) -> list[tuple[str, float]]:
    rates = [
        (f"{label}, distinct users", benches[name]["distinct_users"]["events_per_s"])
        for name, label in DRAINS.items()
        if name in benches
    ]
    peer = _peer(benches)
    return rates + ([(MEM0, peer["distinct_users_16_callers"]["per_s"])] if peer else [])


def _bars(name: str, title: str, bars: Iterable[tuple[str, float]]) -> None:
    """Plot a horizontal bar for each value; without values there is no plot."""
    if not (pairs := list(bars)):
        return
    labels, values = zip(*reversed(pairs), strict=True)
    figure, axes = pyplot.subplots(figsize=(8, 0.5 + 0.45 * len(pairs)))
    drawn = axes.barh([label.replace("`", "") for label in labels], values, color="#4051b5")
    axes.bar_label(drawn, fmt="%.0f", padding=3)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FOLDER / name, dpi=120, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)


def recorded() -> Figures | None:
    """The recorded figures, or None if there are none."""
    path = FOLDER / RECORD
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else None


if __name__ == "__main__":
    if report := recorded():
        write(report)
    else:
        (FOLDER / "hosted.md").write_text(page(None), encoding="utf-8")
