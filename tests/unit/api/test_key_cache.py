"""Key cache of an API process: valid keys, wrong keys, and the wrong keys allowed per address."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import pytest

from api.auth.key_cache import WRONG_KEYS_PER_MIN, KeyRing
from pipeline.domain.errors import Overloaded
from pipeline.domain.tenants import Access, OrganizationId, ProjectId
from pipeline.tenants.api_keys import Grant
from pipeline.tenants.projects import Project
from pipeline.tenants.secret import Secret

PROJECT = Project(ProjectId(UUID(int=2)), OrganizationId(UUID(int=3)), "mine")
GRANT = Grant(UUID(int=1), PROJECT, Access.READ)


@dataclass
class Keys:
    """Ledger that knows some keys and records the keys of each query."""

    valid: set[str]
    queries: list[set[bytes]] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def grants(self, digests: Collection[bytes]) -> dict[bytes, Grant]:
        self.queries.append(set(digests))
        self.begun.set()
        await self.ready.wait()
        return dict.fromkeys({digest(key) for key in self.valid} & set(digests), GRANT)


def digest(key: str) -> bytes:
    return Secret(key).digest


def ring(*valid: str, ready: bool = True) -> tuple[KeyRing, Keys]:
    keys = Keys(set(valid))
    if ready:
        keys.ready.set()
    return KeyRing(cast("Any", keys)), keys


async def test_a_wrong_key_is_read_once_and_may_be_repeated() -> None:
    cache, keys = ring()
    for _ in range(500):
        assert await cache.grant("wrong", "10.0.0.1") is None
    assert keys.queries == [{digest("wrong")}]


async def test_an_address_with_too_many_wrong_keys_is_told_to_wait() -> None:
    cache, _ = ring("right", "other")
    for n in range(WRONG_KEYS_PER_MIN):
        assert await cache.grant(f"wrong {n}", "10.0.0.1") is None
    with pytest.raises(Overloaded, match="60 API keys") as refused:
        await cache.grant("one more", "10.0.0.1")
    assert refused.value.retry_after_s >= 1
    assert await cache.grant("another", "10.0.0.2") is None


async def test_wrong_keys_never_keep_a_right_one_out_not_even_one_that_is_new() -> None:
    cache, keys = ring("right")
    for n in range(10 * WRONG_KEYS_PER_MIN):
        with contextlib.suppress(Overloaded):
            await cache.grant(f"wrong {n}", "proxy")
    assert await cache.grant("right", "proxy") == GRANT
    keys.valid.add("fresh")
    assert await cache.grant("fresh", "proxy") == GRANT


async def test_lookups_that_wait_share_one_query() -> None:
    cache, keys = ring("right", ready=False)
    first = asyncio.create_task(cache.grant("wrong", "a"))
    await keys.begun.wait()
    waiting = [asyncio.create_task(cache.grant(f"wrong {n}", "a")) for n in range(200)]
    right = asyncio.create_task(cache.grant("right", "a"))
    gone = asyncio.create_task(cache.grant("gone", "a"))
    await asyncio.sleep(0)
    gone.cancel()
    keys.ready.set()
    assert await right == GRANT
    assert await first is None
    await asyncio.gather(*waiting, return_exceptions=True)
    assert [len(query) for query in keys.queries] == [1, 202]


async def test_a_revoked_key_is_counted_as_wrong() -> None:
    cache, keys = ring("right")
    assert await cache.grant("right", "a") == GRANT
    keys.valid.clear()
    cache.forget()
    assert await cache.grant("right", "a") is None
    second = cache.wrong.take("a")
    assert second is not None
    assert second.remaining == WRONG_KEYS_PER_MIN - 2
