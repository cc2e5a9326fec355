"""Cost of requests and background statements at 10,000, 100,000 and 1,000,000 memories.

    python -m tests.bench.growth [--lanes N …]     fill new databases of an own server, measure
    python -m tests.bench.growth --database URL    measure a filled database, record nothing
    python -m tests.bench.growth --events          1,000,000 and 10,000,000 events of 200,000 lanes
    python -m tests.bench.growth --page            write the page of the recorded figures again

`make bench ARGS=growth` runs the first. A lane has 5 memories and 10 events; with `--events`, 5 or
50, which takes 20 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import uvloop

from deploy.stack.servers import Postgres
from pipeline.ledger.engine import connect
from pipeline.migrate import migrate
from tests.bench.growth import report
from tests.bench.growth.fill import EVENTS_EACH, MEMORIES_EACH, fill, sizes
from tests.bench.growth.requests import Figures, measure, project_of
from tests.support.engine import build_ledger

LANES = (2_000, 20_000, 200_000)
# Events of each of 200,000 lanes, and the requests and jobs that are measured with them.
EVENTS = (5, 50)
# Seconds within which the load of the fill passes, and measurements of each database.
QUIET_WITHIN_S, TURNS = 300, 2
OF_EVENTS = (
    *("add, new scope", "add, known scope", "claim of a lane", "events, project"),
    *("events of a user", "events of an agent", "events of an app", "events of an old app"),
    *("events, FAILED", "history feed", "sweep", "load of the gate", "load of the sweeper"),
)


@dataclass(frozen=True, slots=True)
class Filled:
    """A filled database. `tables`: bytes by table, of those over 1 MB."""

    url: str
    project_id: UUID
    lanes: int
    events_each: int
    tables: Mapping[str, int]


async def filled(server_url: str, lanes: int, events_each: int = EVENTS_EACH) -> Filled:
    """Fill a new database with this many lanes."""
    name = f"growth_{lanes}_{events_each}"
    connection = await asyncpg.connect(server_url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    url = server_url.rpartition("/")[0] + "/" + name
    engine = connect(url, pool_size=1)
    await migrate(engine)
    await engine.dispose()
    ledger = build_ledger(url)
    project, _ = await ledger.projects.create("large")
    await ledger.close()
    await fill(url, project.id, lanes=lanes, events_each=events_each)
    tables = {table: size for table, size in (await sizes(url)).items() if size > 1_000_000}
    return Filled(url, project.id, lanes, events_each, tables)


def measured(databases: Sequence[Filled], *, only: Collection[str] | None) -> list[dict[str, Any]]:
    """The best times over databases that are measured in turns, and the most rows read.

    A machine that is slower for some minutes then makes no difference between them.
    """
    for _ in range(QUIET_WITHIN_S):
        if os.getloadavg()[0] < 1:
            break
        time.sleep(1)  # noqa: TID251  the load of the fill passes
    load = round(os.getloadavg()[0], 1)
    turns = [
        [uvloop.run(measure(each.url, each.project_id, only=only)) for each in databases]
        for _ in range(TURNS)
    ]
    return [
        {
            "memories": each.lanes * MEMORIES_EACH,
            "events": each.lanes * each.events_each,
            "load": load,
            "tables": each.tables,
            "figures": best([turn[number] for turn in turns]),
        }
        for number, each in enumerate(databases)
    ]


def best(turns: Sequence[Figures]) -> Figures:
    """The lowest time and the most rows of each figure."""
    return {
        name: {
            "ms": min(turn[name]["ms"] for turn in turns),
            "rows": max(turn[name]["rows"] for turn in turns),
        }
        for name in turns[0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES)
    parser.add_argument("--database")
    parser.add_argument("--events", action="store_true")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.database:
        project_id = uvloop.run(project_of(given.database))
        print(json.dumps(uvloop.run(measure(given.database, project_id)), indent=2))
        return
    if not given.page:
        contents = (
            [(LANES[-1], each) for each in EVENTS]
            if given.events
            else [(lanes, EVENTS_EACH) for lanes in given.lanes]
        )
        with tempfile.TemporaryDirectory() as folder, Postgres(Path(folder) / "data") as server:
            databases = [uvloop.run(filled(server.url, *content)) for content in contents]
            runs = measured(databases, only=OF_EVENTS if given.events else None)
        report.record(runs, report.EVENTS_RECORD if given.events else report.RECORD)
    report.write()


if __name__ == "__main__":
    main()
