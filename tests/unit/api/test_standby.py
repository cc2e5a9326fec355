"""A further API process waits until the first one is busy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from api import standby


async def test_a_process_that_computes_creates_the_file(tmp_path: Path) -> None:
    busy_file = tmp_path / "busy"
    await standby.announce(busy_file, every_s=0.001, share=0.0)
    assert busy_file.exists()


def test_a_standby_is_ready_at_once_and_becomes_the_api_when_the_first_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready_file, busy_file = tmp_path / "ready", tmp_path / "busy"
    busy_file.touch()
    executed: list[tuple[str, ...]] = []
    monkeypatch.setattr("os.execv", lambda _, command: executed.append(command))
    options = ("--ready-file", str(ready_file), "--busy-file", str(busy_file))
    monkeypatch.setattr(sys, "argv", ["api.standby", *options])
    standby.main()
    assert ready_file.exists()
    assert executed == [(sys.executable, "-m", "api", "--ready-file", str(ready_file))]
