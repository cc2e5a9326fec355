"""Workers that run but make no progress: they exit, so that the supervisor restarts them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.support.stack import Stack

STUCK_S = 2.0
WORKER = ("-m", "tests.support.stuck_worker", "{name}", "--ready-file", "{ready_file}")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    settings = {"MEMLANE_STUCK_S": str(STUCK_S)}
    folder = tmp_path_factory.mktemp("stuck") / "stack"
    with Stack(folder, settings, programs={"worker": WORKER}) as running:
        yield running


@pytest.mark.parametrize(
    ("how", "reason"),
    [(signal.SIGUSR2, "nothing_taken"), (signal.SIGALRM, "loop_silent")],
    ids=["consumer", "event-loop"],
)
async def test_a_worker_that_hangs_is_replaced_and_its_events_are_done(
    stack: Stack, how: signal.Signals, reason: str
) -> None:
    log = stack.data_dir / "logs" / "worker-1.log"
    async with stack.client() as client:
        await client.ended(await client.add("before", "I like tea."))
        begin = log.stat().st_size
        hung = stack.kill("worker-1", how)
        event = await client.ended(await client.add(reason, "I like tea."), within_s=45)
    assert event["status"] == "SUCCEEDED"
    assert stack.pid("worker-1") != hung
    lines = log.read_bytes()[begin:].decode().splitlines()
    [entry] = [line for line in lines if '"worker_stuck"' in line]
    assert f'"{reason}"' in entry
