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
from collections.abc import Collection
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from deploy.stack.servers import Postgres
from pipeline.ledger.engine import connect
from pipeline.migrate import migrate
from tests.bench.growth import report
from tests.bench.growth.fill import EVENTS_EACH, MEMORIES_EACH, fill, sizes
from tests.bench.growth.requests import measure, project_of
from tests.support.engine import build_ledger

LANES = (2_000, 20_000, 200_000)
# Events of each of 200,000 lanes, and the requests and jobs that are measured with them.
EVENTS = (5, 50)
OF_EVENTS = (
    *("add, new scope", "add, known scope", "claim of a lane", "events, project"),
    *("events of a user", "events of an agent", "events of an app", "events of an old app"),
    *("events, FAILED", "history feed", "sweep", "load of the gate", "load of the sweeper"),
)


async def measured(
    server_url: str,
    lanes: int,
    *,
    events_each: int = EVENTS_EACH,
    only: Collection[str] | None = None,
) -> dict[str, Any]:
    """Fill a new database with this many lanes, and measure."""
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
    return {
        "memories": lanes * MEMORIES_EACH,
        "events": lanes * events_each,
        "load": round(os.getloadavg()[0], 1),
        "tables": tables,
        "figures": await measure(url, project.id, only=only),
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
    if given.events:
        with tempfile.TemporaryDirectory() as folder, Postgres(Path(folder) / "data") as server:
            lanes = LANES[-1]
            of_events = [
                uvloop.run(measured(server.url, lanes, events_each=each, only=OF_EVENTS))
                for each in EVENTS
            ]
        report.record(of_events, report.EVENTS_RECORD)
    elif not given.page:
        with tempfile.TemporaryDirectory() as folder, Postgres(Path(folder) / "data") as server:
            runs = [uvloop.run(measured(server.url, lanes)) for lanes in given.lanes]
        report.record(runs, report.RECORD)
    report.write()


if __name__ == "__main__":
    main()
