"""Kill the chat backend, the API, the worker and the database while turns pass the outbox."""

from __future__ import annotations

from pathlib import Path

from tests.support.outbox_run import counted, run
from tests.support.stack import Stack


async def test_no_turn_is_lost_doubled_or_reordered(tmp_path: Path) -> None:
    async with Stack(tmp_path / "data") as stack:
        report = await run(stack, tmp_path, turns=200, kills=6, seed=31)
    assert report.sound, report
    assert report.turns == 200
    assert report.unnoted <= report.kills["client"]


def test_the_count_sees_each_fault() -> None:
    accepted = {"a": ["1", "4", "3"], "b": ["2", "2"]}
    report = counted(["1", "2", "3", "5"], accepted, {})
    assert (report.lost, report.doubled, report.reordered, report.unnoted) == (1, 1, 1, 1)
