"""Stores find no row of another tenant, for any ids."""

from __future__ import annotations

from uuid import uuid4

from pipeline.domain.filters import EventFilter, parse
from pipeline.domain.passages import PassageKey
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.versions import Snapshot
from pipeline.search.where import Where
from tests.support.engine import Engine

OTHER = ProjectId(uuid4())


async def test_ids_of_one_tenant_open_nothing_for_another(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    await engine.drain()
    ledger, own = engine.ledger, Scope(engine.project.id, user_id="maya")
    tree = parse({"user_id": "maya"})
    [memory], count = await ledger.memories.page(
        own.project_id, tree, expired=True, limit=9, offset=0
    )
    assert count == 1
    keys = [PassageKey(memory.id), PassageKey(event_id, 0)]
    other = Scope(OTHER, user_id="maya")

    now = await ledger.now()
    times = (Snapshot(as_of=now), Snapshot(valid_at=now), Snapshot(superseded=True, merged=True))

    async def seen(scope: Scope) -> list[int]:
        project_id = scope.project_id
        where = Where.of(project_id, tree, facts=True, turns=True, expired=True)
        return [
            (await ledger.memories.page(project_id, tree, expired=True, limit=9, offset=0))[1],
            *[
                (
                    await ledger.versions.page(
                        project_id, tree, snapshot=snapshot, expired=True, limit=9, offset=0
                    )
                )[1]
                for snapshot in times
            ],
            (await ledger.events.page(project_id, EventFilter(), limit=9, offset=0)).count,
            len(await ledger.passages.read(where, keys)),
            len(await ledger.histories.inputs(project_id, [memory.id])),
            len(await ledger.memories.last_changed_by(scope, [memory.id], [event_id])),
        ]

    assert await seen(own) == [1, 1, 1, 1, 1, 2, 1, 1]
    assert await seen(other) == [0, 0, 0, 0, 0, 0, 0, 0]


async def test_the_turns_beside_a_passage_are_read_for_its_own_tenant(engine: Engine) -> None:
    first = await engine.add("I like jazz.")
    await engine.add("I like chess.")
    await engine.drain()
    keys, around = [PassageKey(first, 0)], engine.ledger.passages.around
    assert [turn.text for turn in (await around(engine.project.id, keys, turns=1))[keys[0]]]
    assert not await around(OTHER, keys, turns=1)


async def test_a_replay_of_all_events_stays_in_its_tenant(engine: Engine) -> None:
    event_id = await engine.add("I like jazz.")
    cancelled, _ = await engine.ledger.cancellation.cancel(engine.project.id, event_id)
    assert cancelled
    replay_all, ended = (
        engine.ledger.dead_letters.replay_all,
        EventFilter(statuses=["CANCELLED"]),
    )
    assert not (await replay_all(OTHER, ended, limit=9)).event_ids
    assert (await replay_all(engine.project.id, ended, limit=9)).event_ids == [event_id]
