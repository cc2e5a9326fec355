"""Rate limit of a key: a token bucket that holds one minute's requests."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from api.auth.rate_limit import MOST_KEYS, Allowance, RateLimit
from pipeline.domain.errors import Overloaded

KEY = uuid4()


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def taken(limit: RateLimit, key: UUID = KEY) -> Allowance:
    allowance = limit.take(key)
    assert allowance is not None
    return allowance


def test_without_a_limit_nothing_is_counted() -> None:
    assert RateLimit(0).take(KEY) is None


@pytest.mark.parametrize("per_minute", [1, 3, 60, 7_777])
def test_a_minutes_requests_pass_at_once_and_no_more(per_minute: int) -> None:
    limit = RateLimit(per_minute, Clock())
    left = [taken(limit).remaining for _ in range(per_minute)]
    assert left == list(reversed(range(per_minute)))
    with pytest.raises(Overloaded) as refused:
        taken(limit).require()
    assert isinstance(refused.value.retry_after_s, int)
    assert refused.value.retry_after_s >= 1


def test_a_request_after_the_stated_wait_is_let_through() -> None:
    clock = Clock()
    limit = RateLimit(2, clock)
    taken(limit), taken(limit)
    refused = taken(limit)
    assert refused.retry_after_s == 30
    clock.now += refused.retry_after_s
    taken(limit).require()
    assert taken(limit).retry_after_s == 30


def test_a_refused_request_costs_nothing() -> None:
    clock = Clock()
    limit = RateLimit(1, clock)
    taken(limit)
    assert {taken(limit).retry_after_s for _ in range(50)} == {60}


def test_an_idle_key_has_its_whole_minute_again_and_no_more() -> None:
    clock = Clock()
    limit = RateLimit(3, clock)
    for _ in range(3):
        taken(limit)
    clock.now += 3_600
    assert taken(limit).remaining == 2


def test_keys_do_not_pay_for_each_other() -> None:
    limit = RateLimit(1, Clock())
    taken(limit)
    assert taken(limit).retry_after_s
    assert not taken(limit, uuid4()).retry_after_s


def test_the_headers_are_whole_numbers() -> None:
    assert taken(RateLimit(4, Clock())).headers() == {
        "X-RateLimit-Limit": "4",
        "X-RateLimit-Remaining": "3",
        "X-RateLimit-Reset": "15",
    }


def test_buckets_that_are_full_again_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.auth.rate_limit.MOST_KEYS", 10)
    clock = Clock()
    limit = RateLimit(60, clock)
    for _ in range(10):
        taken(limit, uuid4())
    clock.now += 2
    taken(limit)
    assert len(limit._full_at) == 1


@dataclass(frozen=True)
class CountedKey:
    """A key that counts its hashes: a limit that copies all its buckets hashes each key again."""

    number: int
    hashes: list[int]

    def __hash__(self) -> int:
        self.hashes.append(self.number)
        return self.number


def test_a_request_does_not_visit_all_keys_in_use() -> None:
    limit, hashes = RateLimit(60, Clock()), list[int]()
    for number in range(2 * MOST_KEYS):
        limit.take(CountedKey(number, hashes))
    assert len(hashes) < 10 * 2 * MOST_KEYS
