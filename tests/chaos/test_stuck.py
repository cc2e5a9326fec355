"""Workers that run but make no progress: they exit, so that the supervisor restarts them."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.stack import Stack

STUCK_S = 2.0
WORKER = ("-m", "tests.support.stuck_worker", "{name}", "--ready-file", "{ready_file}")


@pytest.mark.parametrize(
    ("how", "reason"),
    [(signal.SIGUSR2, "nothing_taken"), (signal.SIGALRM, "loop_silent")],
    ids=["consumer", "event-loop"],
)
async def test_a_worker_that_hangs_is_replaced_and_its_events_are_done(
    tmp_path: Path, how: signal.Signals, reason: str
) -> None:
    settings = {"MEMLANE_STUCK_S": str(STUCK_S)}
    with Stack(tmp_path / "stack", settings, programs={"worker": WORKER}) as stack:
        async with stack.client() as client:
            await client.ended(await client.add("before", "I like tea."))
            hung = stack.kill("worker-1", how)
            event = await client.ended(await client.add("maya", "I like tea."), within_s=45)
        assert event["status"] == "SUCCEEDED"
        assert stack.pid("worker-1") != hung
        log = (stack.data_dir / "logs" / "worker-1.log").read_text()
        [entry] = [line for line in log.splitlines() if '"worker_stuck"' in line]
        assert f'"{reason}"' in entry
