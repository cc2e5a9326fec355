"""Setup of a child before its program runs."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.stack.child import spawn
from deploy.stack.command import Command, inherited_environment
from deploy.stack.launch import AUTOGROUP
from deploy.stack.layout import Layout

PRIORITY = f"""
import os, pathlib
group = pathlib.Path({str(AUTOGROUP)!r})
print(os.nice(0), group.read_text().split()[-1] if group.exists() else "none")
"""


@pytest.mark.parametrize("nice", [0, 5])
async def test_a_nice_value_counts_among_all_processes(tmp_path: Path, nice: int) -> None:
    """The child has a session of its own: where the kernel groups by session, the group has it."""
    layout = Layout(tmp_path)
    layout.create()
    command = Command((sys.executable, "-c", PRIORITY), inherited_environment(), Path.cwd())
    process = await spawn(replace(command, nice=nice), layout, "worker-1")
    assert await asyncio.wait_for(process.wait(), 60) == 0
    own, group = layout.log_file("worker-1").read_text().split()
    assert int(own) == os.nice(0) + nice
    assert group in (str(nice), "none")
