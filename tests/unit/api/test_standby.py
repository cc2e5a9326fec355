"""A further API process waits until the first one is busy."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from api import standby
from deploy.stack.waiting import wait_until


async def test_a_process_that_computes_creates_the_file(tmp_path: Path) -> None:
    busy_file = tmp_path / "busy"
    announcing = asyncio.create_task(standby.announce(busy_file, every_s=0.01))
    while not announcing.done():
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        await asyncio.sleep(0)
    assert busy_file.exists()


def test_a_standby_becomes_the_api_once_the_first_process_is_busy(tmp_path: Path) -> None:
    """It stops with the API's own error, since nothing else is configured."""
    ready_file, busy_file = tmp_path / "ready", tmp_path / "busy"
    command = [sys.executable, "-m", "api.standby"]
    command += ["--ready-file", str(ready_file), "--busy-file", str(busy_file)]
    environment = {"MEMLANE_PORT": "none"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert wait_until(ready_file.exists, 60)
        assert process.poll() is None
        busy_file.touch()
        _, errors = process.communicate(timeout=120)
    assert process.returncode
    assert "MEMLANE_PORT" in errors
