"""docs/benchmarks/growth.*: figures as JSON, a table and a plot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot

from deploy.docs.tables import table

FOLDER = Path("docs/benchmarks")
RECORD, PAGE, PLOT = (FOLDER / f"growth.{end}" for end in ("json", "md", "png"))
EVENTS_RECORD = FOLDER / "growth_events.json"
INTRO = """# Growth

Cost of requests and of the sweeper's statements, by number of memories of one project: a scope has
5 memories and 10 events. `ms`: best of five runs or more, the API in one process
beside PostgreSQL on the same cores. `rows`: the most rows that one node of a plan reads, returned
or not; it does not depend on the load of the machine, and is shown alone for a run on a machine
with other work. `make bench ARGS=growth` writes this page. Load averages when the measurements
began: {loads}.

A page has up to 100 rows. Counts stop 10,000 rows behind the page, the changes of a project 1,000.

"""
Run = Mapping[str, Any]
# Load average up to which times are shown: the fill, which ends before, causes up to two.
QUIET = 2.0


EVENTS_INTRO = """
## Number of events

The same 200,000 scopes with 1,000,000 memories, and 5 or 50 events each. `.venv/bin/python -m
tests.bench.growth --events` measures it. Load averages: {loads}.

"""


def record(runs: Sequence[Run], file: Path) -> None:
    """Keep the figures of a measurement."""
    file.write_text(json.dumps(list(runs), indent=1) + "\n", encoding="utf-8")


def write() -> None:
    """Write page and plot of the recorded figures."""
    runs: Sequence[Run] = json.loads(RECORD.read_text("utf-8"))
    by_events = json.loads(EVENTS_RECORD.read_text("utf-8")) if EVENTS_RECORD.exists() else []
    PAGE.write_text(page(runs) + events_part(by_events), encoding="utf-8")
    if _several(runs):
        plot(runs)


def page(runs: Sequence[Run]) -> str:
    """The page as Markdown."""
    heads = [f"{run.get('label', format(run['memories'], ','))}: ms / rows" for run in runs]
    names = list(runs[-1]["figures"])
    rows = [(name, *(_cell(name, run) for run in runs)) for name in names]
    loads = ", ".join(str(run["load"]) for run in runs)
    intro = INTRO.format(loads=loads)
    image = f"![Time by number of memories]({PLOT.name})\n\n" if _several(runs) else ""
    largest = sorted(runs[-1]["tables"].items(), key=lambda part: -part[1])[:10]
    sizes = [
        (name, f"{size / 1e6:,.0f}", f"{size / runs[-1]['memories']:,.0f}")
        for name, size in largest
    ]
    of = f"{runs[-1]['memories']:,}"
    tables = table((f"table with its indexes, {of} memories", "MB", "bytes a memory"), sizes)
    return intro + image + table(("request or statement", *heads), rows) + "\n" + tables


def events_part(runs: Sequence[Run]) -> str:
    """The part of the page about the number of events; empty if nothing is recorded."""
    if not runs:
        return ""
    heads = [f"{run['events']:,} events: ms / rows" for run in runs]
    rows = [(name, *(_cell(name, run) for run in runs)) for name in runs[-1]["figures"]]
    intro = EVENTS_INTRO.format(loads=", ".join(str(run["load"]) for run in runs))
    return intro + table(("request or statement", *heads), rows)


def _several(runs: Sequence[Run]) -> bool:
    """Tell if the runs have several sizes, which a plot can compare."""
    return len({run["memories"] for run in runs}) > 1


def _cell(name: str, run: Run) -> str:
    figure = run["figures"].get(name)
    if figure is None:
        return ""
    rows = f"{figure['rows']:,.0f}"
    return rows if run["load"] > QUIET else f"{figure['ms']:,.0f} / {rows}"


def plot(runs: Sequence[Run]) -> None:
    """Draw the time of each request by number of memories, both logarithmic."""
    figure, axes = pyplot.subplots(figsize=(8, 5))
    memories = [run["memories"] for run in runs]
    for name in runs[-1]["figures"]:
        times = [run["figures"].get(name, {}).get("ms") for run in runs]
        if None not in times:
            axes.plot(memories, times, marker=".", linewidth=1, color="tab:blue", alpha=0.5)
    axes.set(xscale="log", yscale="log", xlabel="memories", ylabel="ms, best of 5")
    axes.axhline(100, color="tab:red", linewidth=0.8, linestyle="--")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(PLOT, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
