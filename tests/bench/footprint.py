"""Start time and idle memory of the default local stack: `python -m tests.bench.footprint`.

Each run adds a row to docs/benchmarks/footprint.json, so that growth shows beside earlier rows.
`--page` writes the page of the recorded rows again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from deploy.docs.tables import table
from tests.support.stack import Stack

FOLDER = Path("docs/benchmarks")
RECORD, PAGE = FOLDER / "footprint.json", FOLDER / "footprint.md"
# Time after which a started stack has loaded its models and does nothing.
IDLE_AFTER_S = 20.0
ROWS_SHOWN = 12
MB = 1e6
Figures = Mapping[str, Any]
INTRO = """# Start time and idle memory

The default local stack of this machine on an installed environment, with `local/rules` and
`local/minilm`. Cold: `memlane up` with a new data directory, which creates the database. Warm: the
next start with the same directory; its CPU time is that of all processes until the stack is ready.
Memory: all processes together, 20 s after the warm start; PSS
counts shared pages once, RSS in each process. Load: load average when the run began; other work on
the machine makes starts slower. Each row is a run of `.venv/bin/python -m tests.bench.footprint`.
"""


def measure() -> Figures:
    """Start a stack cold and warm, and measure its memory at rest."""
    defaults = {"MEMLANE_API_PROCESSES": "", "MEMLANE_WORKERS": ""}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "stack", defaults)
        try:
            cold_s = _start_s(stack)
            stack.down()
            warm_s = _start_s(stack)
            cpu_s = sum(sum(process.cpu_times()[:2]) for process in _processes(stack))
            time.sleep(IDLE_AFTER_S)  # noqa: TID251  idle time is what is measured
            parts = dict(programs(stack))
        finally:
            stack.down()
    return {
        "at": datetime.now(UTC).date().isoformat(),  # noqa: TID251  a report's date
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(load, 1),
        "cold_s": round(cold_s, 1),
        "warm_s": round(warm_s, 1),
        "warm_cpu_s": round(cpu_s, 1),
        "pss_mb": sum(part["pss_mb"] for part in parts.values()),
        "rss_mb": sum(part["rss_mb"] for part in parts.values()),
        "programs": parts,
    }


def _start_s(stack: Stack) -> float:
    began = time.monotonic()
    stack.up()
    return time.monotonic() - began


def programs(stack: Stack) -> Iterator[tuple[str, dict[str, int]]]:
    """Memory in MB by program, without its number; `supervisor` is the parent of all."""
    names = {pid: name.rstrip("-0123456789") for name, pid in stack.pids().items()}
    parts: defaultdict[str, list[psutil.Process]] = defaultdict(list)
    for process in _processes(stack):
        parts[_name(process, names)].append(process)
    for name, processes in sorted(parts.items()):
        sizes = [process.memory_full_info() for process in processes]
        yield (
            name,
            {
                "processes": len(processes),
                "pss_mb": round(sum(size.pss for size in sizes) / MB),
                "rss_mb": round(sum(size.rss for size in sizes) / MB),
            },
        )


def _processes(stack: Stack) -> Sequence[psutil.Process]:
    """The supervisor and all processes that it has started."""
    supervisor = psutil.Process(stack.pid("api")).parent()
    assert supervisor is not None
    return (supervisor, *supervisor.children(recursive=True))


def _name(process: psutil.Process, names: Mapping[int, str]) -> str:
    """Name of the program that a process belongs to: its own, or that of an ancestor."""
    for each in (process, *process.parents()):
        if each.pid in names:
            return names[each.pid]
    return "supervisor"


def recorded() -> Sequence[Figures]:
    """All recorded runs, oldest first."""
    return json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else []


def page(runs: Sequence[Figures]) -> str:
    """Markdown page of the runs."""
    if not runs:
        return INTRO + "\nNo run is recorded.\n"
    rows = [
        (
            run["at"],
            f"{run['cores']}, {run['python']}",
            f"{run['load']}",
            f"{run['cold_s']}",
            f"{run['warm_s']}",
            f"{run.get('warm_cpu_s', '')}",
            f"{run['pss_mb']}",
            f"{run['rss_mb']}",
        )
        for run in runs[-ROWS_SHOWN:]
    ]
    head = ("run", "cores, Python", "load", "cold, s", "warm, s", "CPU, s", "PSS, MB", "RSS, MB")
    programs = [
        (name, f"{part['processes']}", f"{part['pss_mb']}", f"{part['rss_mb']}")
        for name, part in runs[-1]["programs"].items()
    ]
    parts = table(("program, last run", "processes", "PSS, MB", "RSS, MB"), programs)
    return f"{INTRO}\n{table(head, rows)}\n{parts}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.footprint", description=__doc__)
    parser.add_argument("--page", action="store_true", help="measure nothing")
    runs = [*recorded(), *([] if parser.parse_args().page else [measure()])]
    RECORD.write_text(json.dumps(runs, indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(page(runs), encoding="utf-8")
    print(json.dumps(runs[-1:], indent=2))


if __name__ == "__main__":
    main()
