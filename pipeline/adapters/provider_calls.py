"""Retries around one network call to a model provider, with the errors named by what helps.

Shared by the adapters that call providers: through LiteLLM, and over plain HTTP.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TypeVar

import structlog

from pipeline.domain.errors import ModelUnavailable

T = TypeVar("T")

log = structlog.get_logger(__name__)

# 408 timeout, 409 conflict, 425 too early: transient, as the OpenAI SDK treats them.
PASSING_STATUSES = frozenset({408, 409, 425})


class Throttled(ModelUnavailable):
    """429: tried again in the call only where the provider names a short wait."""


def jittered_s(attempt: int) -> float:
    """Seconds to wait after this attempt: random, up to 0.5 s, then twice as long each time, 8 s at
    most.
    """
    return random.uniform(0.0, min(8.0, 0.5 * 2 ** (attempt - 1)))  # noqa: S311  not a secret


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Retries for what seconds can mend: connection errors, timeouts, 5xx, and 429 with a short
    Retry-After.

    No retry begins, or runs, past `total_s`; the first attempt has the client's whole timeout.
    `wait_s`: seconds to wait after an attempt, which are counted from 1.
    """

    tries: int = 3
    total_s: float = 45.0
    retry_after_max_s: float = 10.0
    wait_s: Callable[[int], float] = jittered_s


DEFAULT_RETRY = RetryPolicy()


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model at a provider: its LiteLLM name, such as `openai/gpt-4o-mini`, and how to call it.

    `api_base`, `api_key`: None for the provider's defaults. `organization`: an OpenAI organization.
    `timeout_s`: timeout of one call.
    """

    name: str
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    retry: RetryPolicy = DEFAULT_RETRY
    organization: str | None = None


async def retried(
    once: Callable[[float], Awaitable[T]], policy: RetryPolicy, *, timeout_s: float, model: str
) -> T:
    """Await `once(limit_s)` until it succeeds, or until the policy's tries or seconds are used up.

    Errors: those of the last try.
    """
    began = time.monotonic()
    limit_s = timeout_s
    for attempt in count(1):
        try:
            return await once(limit_s)
        except ModelUnavailable as error:
            wait_s = max(policy.wait_s(attempt), error.retry_after_s or 0.0)
            left_s = policy.total_s - (time.monotonic() - began) - wait_s
            if attempt >= policy.tries or left_s <= 0 or not _mends_in_seconds(error, policy):
                raise
            log.info(
                "model_call_retried",
                model=model,
                attempt=attempt,
                wait_s=round(wait_s, 3),
                error=str(error),  # written by an adapter: a status and a class name, no content
            )
        await asyncio.sleep(wait_s)
        limit_s = min(timeout_s, left_s)
    raise AssertionError("unreachable")


def _mends_in_seconds(error: ModelUnavailable, policy: RetryPolicy) -> bool:
    if error.retry_after_s is None:
        return not isinstance(error, Throttled)
    return error.retry_after_s <= policy.retry_after_max_s


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds from `Retry-After`: a number or an HTTP date. None where absent or unreadable."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        seconds = _until(value)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _until(http_date: str) -> float:
    try:
        return parsedate_to_datetime(http_date).timestamp() - time.time()
    except ValueError:
        return math.nan
