"""Group commit of adds: which share a commit, which wait, and which are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import cast
from uuid import UUID, uuid4

import asyncpg
import pytest
from sqlalchemy.exc import DataError, DBAPIError

from pipeline.domain.errors import Overloaded
from pipeline.domain.events import AddOptions
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.lanes.accept import Accepted, Add, Adds
from pipeline.lanes.group_commit import GroupCommit

PROJECT = ProjectId(uuid4())
WITHIN_S = 30.0


def add(user_id: str, text: str = "hello") -> Add:
    scope = Scope(PROJECT, user_id=user_id)
    return Add(uuid4(), scope, [Message(Role.USER, text)], AddOptions(), tokens=1)


def refusal() -> DBAPIError:
    return DataError(None, None, asyncpg.DataError("a value"))


class Slow:
    """Store whose commits last until the test ends them; `held` lanes have locked rows."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.held: set[UUID] = set()
        self.begun = asyncio.Condition()

    async def accept(self, adds: Sequence[Add]) -> list[Accepted]:
        texts = [add.messages[0].content for add in adds]
        self.groups.append(texts)
        async with self.begun:
            self.begun.notify_all()
        for word in texts:
            if word in self.ends:
                await self.ends[word].wait()
        if any(add.scope.lane_id in self.held for add in adds):
            raise DBAPIError(None, None, asyncpg.LockNotAvailableError("locked"))
        if "refused" in texts:
            raise refusal()
        return [Accepted(add.event_id) for add in adds]

    async def locked(self, lane_ids: Collection[UUID]) -> set[UUID]:
        return self.held & set(lane_ids)

    async def until(self, *texts: str) -> None:
        """Return once each of these texts is in a group."""
        async with asyncio.timeout(WITHIN_S), self.begun:
            await self.begun.wait_for(
                lambda: set(texts) <= {word for g in self.groups for word in g}
            )


request: ContextVar[str | None] = ContextVar("request", default=None)


class Contexts(Slow):
    """Store that notes the request in whose context each group is written."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str | None] = []

    async def accept(self, adds: Sequence[Add]) -> list[Accepted]:
        self.requests.append(request.get())
        return await super().accept(adds)


@pytest.fixture
def slow() -> Slow:
    return Slow()


def group_commit_of(slow: Slow, **options: float) -> GroupCommit:
    return GroupCommit(cast("Adds", slow), **options)  # type: ignore[arg-type]


async def test_a_group_belongs_to_no_request() -> None:
    """It has adds of several projects, so it must not wait for connections in the turn of one."""
    store = Contexts()
    request.set("first")
    await group_commit_of(store).accept(add("maya"))
    assert store.requests == [None]


async def test_a_later_add_of_a_lane_is_not_written_before_its_earlier_one(slow: Slow) -> None:
    group_commit, slow.ends = group_commit_of(slow), {"first": asyncio.Event()}
    first = asyncio.create_task(group_commit.accept(add("maya", "first")))
    await slow.until("first")
    later = [
        asyncio.create_task(group_commit.accept(add("maya", text))) for text in ("second", "third")
    ]
    await group_commit.accept(add("noor", "other"))  # committed by the second writer
    assert slow.groups == [["first"], ["other"]]
    slow.ends["first"].set()
    await asyncio.gather(first, *later)
    assert slow.groups == [["first"], ["other"], ["second", "third"]]


async def test_a_locked_lane_holds_up_no_other(slow: Slow) -> None:
    group_commit = group_commit_of(slow)
    locked = add("locked", "mine")
    slow.held = {locked.scope.lane_id}
    waiting = [asyncio.create_task(group_commit.accept(locked)) for _ in range(3)]
    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(*(group_commit.accept(add(f"user-{n}")) for n in range(100)))
    assert not any(task.done() for task in waiting)
    slow.held = set()
    await asyncio.gather(*waiting)


async def test_a_lane_that_stays_locked_is_refused_and_open_again_afterwards(slow: Slow) -> None:
    group_commit = group_commit_of(slow, locked_for_s=0.0)
    locked = add("locked")
    slow.held = {locked.scope.lane_id}
    with pytest.raises(Overloaded, match="undo") as refused:
        await group_commit.accept(locked)
    assert refused.value.server_wide
    slow.held = set()
    await group_commit.accept(add("locked"))


async def test_one_bad_add_fails_alone(slow: Slow) -> None:
    group_commit, slow.ends = (
        group_commit_of(slow),
        {"first": asyncio.Event(), "second": asyncio.Event()},
    )
    busy = [asyncio.create_task(group_commit.accept(add(word, word))) for word in slow.ends]
    await slow.until(*slow.ends)
    together = [
        asyncio.create_task(group_commit.accept(add(text, text))) for text in ("a", "refused", "b")
    ]
    await asyncio.sleep(0)
    for end in slow.ends.values():
        end.set()
    results = await asyncio.gather(*together, return_exceptions=True)
    assert [isinstance(result, DataError) for result in results] == [False, True, False]
    assert ["a", "refused", "b"] in slow.groups
    await asyncio.gather(*busy)


async def test_a_locked_lane_waits_beside_a_bad_add() -> None:
    """PostgreSQL refuses the bad add before it comes to the locked row."""

    class Refusing(Slow):
        async def accept(self, adds: Sequence[Add]) -> list[Accepted]:
            if len(adds) > 1 and any(add.messages[0].content == "refused" for add in adds):
                self.groups.append([add.messages[0].content for add in adds])
                raise refusal()
            return await super().accept(adds)

    store = Refusing()
    group_commit = group_commit_of(store)
    store.ends = {"first": asyncio.Event(), "second": asyncio.Event()}
    busy = [asyncio.create_task(group_commit.accept(add(word, word))) for word in store.ends]
    await store.until(*store.ends)
    store.held = {add("locked").scope.lane_id}
    users = {"mine": "locked", "refused": "bad", "other": "jon", "mine too": "locked"}
    together = [
        asyncio.create_task(group_commit.accept(add(user, text))) for text, user in users.items()
    ]
    await asyncio.sleep(0)
    for end in store.ends.values():
        end.set()
    async with asyncio.timeout(WITHIN_S):
        results = await asyncio.gather(together[1], together[2], return_exceptions=True)
    assert [isinstance(result, DataError) for result in results] == [True, False]
    assert list(users) in store.groups
    assert not any(together[place].done() for place in (0, 3))
    store.held = set()
    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(together[0], together[3], *busy)
    assert ["mine too"] not in store.groups


async def test_what_a_caller_no_longer_waits_for_is_not_written(slow: Slow) -> None:
    group_commit, slow.ends = group_commit_of(slow), {"first": asyncio.Event()}
    first = asyncio.create_task(group_commit.accept(add("maya", "first")))
    await slow.until("first")
    given_up = asyncio.create_task(group_commit.accept(add("maya", "given up")))
    await asyncio.sleep(0)
    given_up.cancel()
    slow.ends["first"].set()
    await first
    await group_commit.accept(add("maya", "last"))
    assert slow.groups == [["first"], ["last"]]


async def test_the_queue_is_bounded(slow: Slow) -> None:
    group_commit, slow.ends = group_commit_of(slow, most_waiting=3), {"hello": asyncio.Event()}
    waiting = [asyncio.create_task(group_commit.accept(add("maya"))) for _ in range(3)]
    await slow.until("hello")
    with pytest.raises(Overloaded):
        await group_commit.accept(add("noor"))
    slow.ends["hello"].set()
    await asyncio.gather(*waiting)
    await group_commit.accept(add("noor"))


class LongTexts(Slow):
    """Store that accepts adds without their terms; `threads` ends the cut."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = asyncio.Event()
        self.fails = False

    async def accept(self, adds: Sequence[Add]) -> list[Accepted]:
        return [replace(row, has_terms=False) for row in await super().accept(adds)]

    async def add_terms(self, adds: Sequence[Add]) -> None:
        await self.threads.wait()
        if self.fails:
            raise refusal()


async def test_no_commit_waits_for_the_terms_of_an_earlier_text() -> None:
    store = LongTexts()
    group_commit = group_commit_of(store)
    adds = [asyncio.create_task(group_commit.accept(add("maya", word))) for word in ("a", "b", "c")]
    await store.until("a", "b", "c")
    assert not any(task.done() for task in adds)
    store.threads.set()
    await asyncio.gather(*adds)


async def test_an_add_without_terms_is_accepted_all_the_same() -> None:
    store = LongTexts()
    store.fails = True
    store.threads.set()
    accepted = await group_commit_of(store).accept(add("maya"))
    assert not accepted.has_terms


@pytest.mark.parametrize("steps", range(12))
async def test_an_add_is_written_that_arrives_while_both_writers_end(
    slow: Slow, steps: int
) -> None:
    """`steps` of the event loop lie between the end of the two commits and the last add."""
    group_commit = group_commit_of(slow)
    slow.ends = dict.fromkeys(("first", "second"), asyncio.Event())
    earlier = []
    for text in slow.ends:  # a writer each
        earlier.append(asyncio.create_task(group_commit.accept(add(text, text))))
        await slow.until(text)
    slow.ends["first"].set()
    for _ in range(steps):
        await asyncio.sleep(0)
    async with asyncio.timeout(WITHIN_S):
        await group_commit.accept(add("last", "last"))
    await asyncio.gather(*earlier)
