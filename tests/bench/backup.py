"""Minutes per GB of a backup, its reading back, and a restore: `python -m tests.bench.backup`.

A generated ledger of `--memories` is copied, read back and restored into another database of the
same server, as the commands do; the vector index is not built. `restore` compares the tables with
the manifest and fails if one differs. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import asyncpg

from deploy.backup.backup import back_up
from deploy.backup.restore import check, restore
from deploy.stack.servers import Postgres
from pipeline.ledger.engine import connect
from pipeline.migrate import migrate
from tests.bench.growth.fill import MEMORIES_EACH, fill
from tests.support.engine import build_ledger

SIZE = "SELECT pg_database_size(current_database())"


async def measure(server: Postgres, folder: Path, memories: int) -> dict[str, Any]:
    """Fill the server's database, back it up, and restore it into another one."""
    engine = connect(server.url, pool_size=1)
    await migrate(engine)
    await engine.dispose()
    ledger = build_ledger(server.url)
    project, _ = await ledger.projects.create("large")
    await ledger.close()
    await fill(server.url, project.id, lanes=memories // MEMORIES_EACH)
    connection = await asyncpg.connect(server.url)
    gigabytes = await connection.fetchval(SIZE) / 1e9
    await connection.execute("CREATE DATABASE restored")
    await connection.close()
    times = [time.perf_counter()]
    manifest = await back_up(server.url, folder / "backup")
    times.append(time.perf_counter())
    await asyncio.to_thread(check, folder / "backup")
    times.append(time.perf_counter())
    await restore(server.url.rpartition("/")[0] + "/restored", folder / "backup")
    times.append(time.perf_counter())
    steps = zip(("backup", "verify", "restore"), times, times[1:], strict=False)
    return {
        "memories": memories,
        "load": round(os.getloadavg()[0], 1),
        "gigabytes": round(gigabytes, 2),
        "archive_gigabytes": round(manifest.size_bytes / 1e9, 2),
        "rows": sum(table.rows for table in manifest.tables.values()),
        "minutes_per_gb": {
            name: round((end - start) / 60 / gigabytes, 2) for name, start, end in steps
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.backup", description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    memories = parser.parse_args().memories
    with tempfile.TemporaryDirectory() as folder, Postgres(Path(folder) / "server") as server:
        figures = asyncio.run(measure(server, Path(folder), memories))  # noqa: TID251  an entry
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
