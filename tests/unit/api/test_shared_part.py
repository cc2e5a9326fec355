"""A page part for several consoles: one build for each project or event, no error is kept."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from api.console.shared_part import MANY, SharedFrames, SharedPart
from pipeline.domain.tenants import ProjectId

MINE, OTHER = ProjectId(uuid4()), ProjectId(uuid4())


class Builder:
    """Counts its builds. Each waits until `go` is set."""

    def __init__(self) -> None:
        self.builds = 0
        self.go = asyncio.Event()

    async def build(self) -> bytes:
        self.builds += 1
        await self.go.wait()
        return b"%d" % self.builds


async def test_several_consoles_cause_one_build() -> None:
    shared, builder = SharedPart(kept_s=60), Builder()
    waiting = [asyncio.create_task(shared.html(MINE, builder.build)) for _ in range(5)]
    builder.go.set()
    assert await asyncio.gather(*waiting) == [b"1"] * 5
    assert await shared.html(MINE, builder.build) == b"1"


async def test_a_part_that_is_too_old_is_built_again() -> None:
    shared, builder = SharedPart(kept_s=0), Builder()
    builder.go.set()
    assert await shared.html(MINE, builder.build) == b"1"
    assert await shared.html(MINE, builder.build) == b"2"


async def test_each_project_has_its_own_part() -> None:
    shared, builder = SharedPart(kept_s=60), Builder()
    builder.go.set()
    assert await shared.html(MINE, builder.build) == b"1"
    assert await shared.html(OTHER, builder.build) == b"2"


async def test_an_error_is_not_kept() -> None:
    shared, builder = SharedPart(kept_s=60), Builder()
    builder.go.set()

    async def fails() -> bytes:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await shared.html(MINE, fails)
    assert await shared.html(MINE, builder.build) == b"1"


async def test_a_cancelled_build_does_not_block_the_others() -> None:
    shared, builder = SharedPart(kept_s=60), Builder()
    first = asyncio.create_task(shared.html(MINE, builder.build))
    await asyncio.sleep(0)
    second = asyncio.create_task(shared.html(MINE, builder.build))
    await asyncio.sleep(0)
    first.cancel()
    builder.go.set()
    assert await second == b"2"


async def test_parts_of_projects_that_are_not_looked_at_are_dropped() -> None:
    shared, builder = SharedPart(kept_s=0), Builder()
    builder.go.set()
    for _ in range(3 * MANY):
        await shared.html(ProjectId(uuid4()), builder.build)
    assert len(shared._parts) <= MANY


async def test_followers_of_an_event_cause_one_build_for_each_change() -> None:
    frames, builder, event_id = SharedFrames(), Builder(), uuid4()
    with frames.following(event_id) as first, frames.following(event_id) as second:
        waiting = [
            asyncio.create_task(followed.frame("queued", builder.build))
            for followed in (first, second)
        ]
        builder.go.set()
        assert await asyncio.gather(*waiting) == [b"1", b"1"]
        assert await first.frame("ended", builder.build) == b"2"
        assert await second.frame("ended", builder.build) == b"2"


async def test_the_frame_of_an_event_is_dropped_with_its_last_follower() -> None:
    frames, builder, event_id = SharedFrames(), Builder(), uuid4()
    builder.go.set()
    with frames.following(event_id) as first:
        with frames.following(event_id) as second:
            assert await second.frame("queued", builder.build) == b"1"
        assert await first.frame("queued", builder.build) == b"1"
    with frames.following(event_id) as later:
        assert await later.frame("queued", builder.build) == b"2"
