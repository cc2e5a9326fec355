"""A further API process that waits until the others are busy, and then becomes one of them.

`python -m api.standby --ready-file PATH --busy-file PATH`. Until then it imports nothing of the
API: 12 MB instead of 130. The first process creates the busy file, see `announce`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

# Share of a core above which a process is busy, for BUSY_S seconds in a row. Beside busy workers it
# gets less than half a core.
BUSY_SHARE, BUSY_S = 0.3, 3
LOOK_EVERY_S = 0.5


async def announce(busy_file: Path, *, every_s: float = 1.0, share: float = BUSY_SHARE) -> None:
    """Create the file once this process has used this share of a core for some seconds."""
    busy, used_s, at_s = 0, time.process_time(), time.monotonic()
    while busy < BUSY_S:
        await asyncio.sleep(every_s)
        now_used_s, now_s = time.process_time(), time.monotonic()
        busy = busy + 1 if now_used_s - used_s > share * (now_s - at_s) else 0
        used_s, at_s = now_used_s, now_s
    busy_file.touch()  # noqa: ASYNC240  one system call


def main() -> None:
    """Wait for the busy file, then run the API in this process."""
    parser = argparse.ArgumentParser(prog="api.standby", description=__doc__)
    parser.add_argument("--ready-file", type=Path, required=True)
    parser.add_argument("--busy-file", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.ready_file.touch()
    while not arguments.busy_file.exists():
        time.sleep(LOOK_EVERY_S)  # noqa: TID251  this process has no event loop
    command = (sys.executable, "-m", "api", "--ready-file", str(arguments.ready_file))
    os.execv(sys.executable, command)  # noqa: S606  the same program, with fixed arguments


if __name__ == "__main__":
    main()
