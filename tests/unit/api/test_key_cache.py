"""Key cache of an API process: valid keys, wrong keys, and the wrong keys allowed per address."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import pytest

from api.auth.key_cache import WRONG_KEYS_PER_MIN, KeyRing
from pipeline.domain.errors import Overloaded
from pipeline.domain.tenants import Access, OrganizationId, ProjectId
from pipeline.tenants.api_keys import Grant
from pipeline.tenants.projects import Project

PROJECT = Project(ProjectId(UUID(int=2)), OrganizationId(UUID(int=3)), "mine")
GRANT = Grant(UUID(int=1), PROJECT, Access.READ)


@dataclass
class Keys:
    """Ledger that knows some keys and records each lookup."""

    valid: set[str]
    lookups: list[str] = field(default_factory=list)

    async def grant(self, key: str) -> Grant | None:
        self.lookups.append(key)
        return GRANT if key in self.valid else None


def ring(*valid: str) -> tuple[KeyRing, Keys]:
    keys = Keys(set(valid))
    return KeyRing(cast("Any", keys)), keys


async def test_a_wrong_key_is_read_once_and_may_be_repeated() -> None:
    cache, keys = ring()
    for _ in range(500):
        assert await cache.grant("wrong", "10.0.0.1") is None
    assert keys.lookups == ["wrong"]


async def test_an_address_may_try_so_many_wrong_keys_and_no_more() -> None:
    cache, keys = ring("right", "other")
    for n in range(WRONG_KEYS_PER_MIN):
        assert await cache.grant(f"wrong {n}", "10.0.0.1") is None
    with pytest.raises(Overloaded, match="60 API keys") as refused:
        await cache.grant("one more", "10.0.0.1")
    assert refused.value.retry_after_s >= 1
    assert len(keys.lookups) == WRONG_KEYS_PER_MIN
    assert await cache.grant("right", "10.0.0.2") == GRANT


async def test_a_key_that_was_valid_goes_on_working_beside_an_attacker() -> None:
    cache, keys = ring("right")
    assert await cache.grant("right", "proxy") == GRANT
    for n in range(WRONG_KEYS_PER_MIN):
        await cache.grant(f"wrong {n}", "proxy")
    cache.forget()
    assert await cache.grant("right", "proxy") == GRANT
    assert keys.lookups.count("right") == 2


async def test_a_revoked_key_is_counted_as_wrong() -> None:
    cache, keys = ring("right")
    assert await cache.grant("right", "a") == GRANT
    keys.valid.clear()
    cache.forget()
    assert await cache.grant("right", "a") is None
    assert cache.wrong.peek("a") is not None
    assert cast("Any", cache.wrong.peek("a")).remaining == WRONG_KEYS_PER_MIN - 2
