"""Queue of a lane's next hint: by the present load of its project, if that is known."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import pytest

from pipeline.domain.events import StageName
from pipeline.domain.lanes import Hint, LaneClass
from pipeline.ledger.failures import LedgerUnavailable
from workers.busy_lanes import OLDEST_S, READ_EVERY_S, BusyLanes

CROWDED, QUIET = UUID(int=1), UUID(int=2)
HINT = Hint(uuid4(), 1, StageName.EXTRACT, project_id=CROWDED)


@dataclass
class Ledger:
    """Numbers of busy lanes, and a clock."""

    numbers: Mapping[LaneClass, int] = field(default_factory=dict)
    now: float = 0.0
    reads: int = 0
    is_down: bool = False

    async def lanes(self) -> Mapping[LaneClass, int]:
        self.reads += 1
        if self.is_down:
            raise LedgerUnavailable(OSError("down"))
        return self.numbers


@pytest.fixture
def ledger() -> Ledger:
    return Ledger({(CROWDED, False): 400, (CROWDED, True): 20, (QUIET, False): 40})


@pytest.fixture
async def busy(ledger: Ledger) -> BusyLanes:
    """The numbers after the first reading."""
    lanes = BusyLanes(ledger, lambda: ledger.now)
    assert lanes.queue_for(HINT, "mem.lane") == "mem.lane"  # nothing is known yet
    await read(lanes)
    return lanes


async def read(lanes: BusyLanes) -> None:
    """Wait for the reading that has begun."""
    assert lanes._reading is not None
    await lanes._reading


async def test_lanes_of_a_burst_leave_the_queue_that_they_woke_up_in(busy: BusyLanes) -> None:
    assert busy.queue_for(HINT, "mem.lane") == "mem.lane.100"
    assert busy.queue_for(replace(HINT, project_id=QUIET), "mem.lane.1000") == "mem.lane.10"
    assert busy.queue_for(replace(HINT, low=True), "mem.lane") == "mem.low.10"


@pytest.mark.parametrize(
    ("low", "before", "after"),
    [(False, "mem.low.10", "mem.lane.10"), (True, "mem.lane", "mem.low")],
)
async def test_a_project_without_a_number_keeps_its_queue_by_priority(
    busy: BusyLanes, before: str, after: str, *, low: bool
) -> None:
    for project_id in (None, UUID(int=3)):
        hint = replace(HINT, project_id=project_id, low=low)
        assert busy.queue_for(hint, before) == after


async def test_the_numbers_are_read_once_a_second_while_hints_are_published(
    busy: BusyLanes, ledger: Ledger
) -> None:
    for _ in range(100):
        busy.queue_for(HINT, "mem.lane")
        await asyncio.sleep(0)
    assert ledger.reads == 1
    ledger.now += READ_EVERY_S
    ledger.numbers = {(CROWDED, False): 3}
    busy.queue_for(HINT, "mem.lane.100")
    await read(busy)
    assert ledger.reads == 2
    assert busy.queue_for(HINT, "mem.lane.100") == "mem.lane"


async def test_an_old_reading_is_not_used(busy: BusyLanes, ledger: Ledger) -> None:
    ledger.is_down = True
    ledger.now += READ_EVERY_S
    assert busy.queue_for(HINT, "mem.lane") == "mem.lane.100"
    await read(busy)
    ledger.now += OLDEST_S
    assert busy.queue_for(HINT, "mem.lane") == "mem.lane"
    await read(busy)
