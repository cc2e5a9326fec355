"""A chat backend that is killed at random: `python -m tests.support.outbox_writer`.

It adds turns of several users through the outbox, and notes each turn once `add` has returned.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from functools import partial
from pathlib import Path

from memlane_client import Memlane

from tests.support.stack import wait_until

USERS = 5


def write(url: str, key: str, folder: Path, life: int, turns: int) -> None:
    """Add turns until `turns` are noted, then wait until all are sent."""
    notes = folder / "notes"
    notes.touch()
    file = os.open(notes, os.O_WRONLY | os.O_APPEND)
    with Memlane(key, url, outbox=folder / "outbox") as memlane:
        for number in itertools.count(len(notes.read_bytes().splitlines())):
            if number >= turns:
                break
            label = f"{life:03d}-{number:06d}"
            memlane.add(label, user_id=f"user-{number % USERS}", mode="turns")
            os.write(file, f"{label}\n".encode())
        with asyncio.Runner() as runner:
            sent = partial(is_empty, memlane)
            runner.run(wait_until(sent, within_s=500, what="an empty outbox"))


async def is_empty(memlane: Memlane) -> bool:
    """True if no turn waits. `flush` would not wait for those of a writer that was killed."""
    status = memlane.outbox_status()
    return status is not None and not status.pending


if __name__ == "__main__":
    url, key, folder, life, turns = sys.argv[1:]
    write(url, key, Path(folder), int(life), int(turns))
