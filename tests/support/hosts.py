"""Memlane's processes as on several hosts, without the local stack's supervisor.

Each process has its own directory and process group.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.compose import services

ROOT = Path(__file__).resolve().parents[2]
ENDED_WITHIN_S = 60


@dataclass
class Hosts:
    """Hosts with common `settings`: the URLs of the servers."""

    root: Path
    settings: Mapping[str, str]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, host: str, service: str, **settings: str) -> Path:
        """Start a service of compose.yaml on a host; return the host's directory.

        A worker gets the name of its host.
        """
        place = self.root / host
        place.mkdir()
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("MEMLANE_")}  # noqa: TID251
        own = {"PYTHONPATH": str(ROOT), "MEMLANE_DATA_DIR": str(place)}
        module, *arguments = services()[service].command[2:]
        if service == "worker":
            arguments[0] = host
        paths = [
            word.replace("/run/memlane", str(place)).replace("/var/lib/memlane", str(place))
            for word in arguments
        ]
        with (self.root / f"{host}.log").open("wb") as log:
            self.running[host] = subprocess.Popen(
                [sys.executable, "-m", module, *paths],
                cwd=place,
                env=inherited | own | dict(self.settings) | settings,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return place

    def send(self, host: str, number: signal.Signals) -> None:
        """Signal the whole process group of a host."""
        os.killpg(self.running[host].pid, number)

    async def ended(self, host: str) -> int:
        """Wait for the end of a host's process; return its exit code."""
        return await asyncio.to_thread(self.running.pop(host).wait, ENDED_WITHIN_S)

    def log(self, host: str) -> str:
        return (self.root / f"{host}.log").read_text(errors="replace")


@contextlib.contextmanager
def hosts(root: Path, settings: Mapping[str, str]) -> Iterator[Hosts]:
    """Hosts without processes; processes that still run at the end are killed."""
    made = Hosts(root, settings)
    try:
        yield made
    finally:
        for process in made.running.values():
            process.kill()
            process.wait()
