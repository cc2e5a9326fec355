"""What the gate sees of the ledger."""

from __future__ import annotations

from pipeline.ledger.load import LoadView
from tests.support.engine import Engine


async def test_the_load_counts_what_waits_and_what_was_done(engine: Engine) -> None:
    view = LoadView(engine.ledger.engine)
    for n in range(3):
        await engine.add(f"I like dish {n}.", user_id="maya")
    await engine.add("I like jazz.", user_id="jon")
    load = await view.look(scope_events=3)
    assert load.projects == {engine.project.id: 4}
    assert load.deep == {engine.scope("maya").lane_id: 3}
    assert load.lanes == {engine.project.id: 2}
    assert (load.ready, load.drained_per_s) == (4, 0)
    await engine.drain()
    load = await view.look(scope_events=3)
    assert (load.projects, load.deep, load.ready) == ({}, {}, 0)
    assert load.drained_per_s == 0.4  # 4 in the last 10 s
