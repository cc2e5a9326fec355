"""`python -m workers.reindex`: build the configured vector index, or repair the one in use.

Exit code 0: the index in use is repaired. 3: another index is complete; processes with these
settings use it after `pipeline.migrate`.
"""

from __future__ import annotations

import sys
import time

import uvloop
from pydantic import ValidationError

from pipeline import bootstrap, settings, telemetry
from pipeline.domain.errors import Conflict, InvalidInput, TransientError
from pipeline.migrate import add_pgvector, require_ledger
from pipeline.reindex.service import reindex
from pipeline.reindex.store import ReindexProgress
from pipeline.startup import REFUSED, sentence

MENDED, WHOLE = 0, 3
LINE_EVERY_S = 1.0


class ProgressLines:
    """Callback that prints a line of progress each second."""

    def __init__(self) -> None:
        self._began = self._printed = time.monotonic()
        self._before: int | None = None

    def __call__(self, progress: ReindexProgress) -> None:
        now = time.monotonic()
        if self._before is None:
            self._before = progress.done
        if now - self._printed < LINE_EVERY_S and progress.done < progress.total:
            return
        rate = (progress.done - self._before) / max(now - self._began, 0.001)
        print_line(f"{progress.done:,} of {progress.total:,} texts, {rate:,.0f}/s")
        self._printed = now


def print_line(line: str) -> None:
    """Write a line to stdout without buffering."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def run() -> int:
    """Build or repair the index. Returns the exit code.

    Errors: Conflict, InvalidInput, TransientError.
    """
    configured = settings.load()
    telemetry.configure_logs(configured.log_level, process="reindex")
    bootstrap.trace(configured, process="reindex")
    stores = bootstrap.stores(configured)
    try:
        await require_ledger(stores.ledger.engine)
        if configured.vectors == "pgvector":
            await add_pgvector(stores.ledger.engine)
        print_line(f"Index: {stores.index.name}")
        if stores.mirroring is not None:
            count = await stores.mirroring.rebuild()
            print_line(f"Graph server: {count:,} entities and relations")
        another = await reindex(
            stores.ledger.indexes, stores.indexes, stores.embedder, tell=ProgressLines()
        )
    finally:
        await stores.close()
    print_line("The new index is complete." if another else "The index is complete.")
    return WHOLE if another else MENDED


if __name__ == "__main__":
    try:
        sys.exit(uvloop.run(run()))
    except (Conflict, TransientError) as error:
        sys.exit(str(error))
    except (InvalidInput, ValidationError) as error:
        sys.stderr.write(f"{sentence(error)}\n")
        sys.exit(REFUSED)
