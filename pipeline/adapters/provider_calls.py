"""Retries around one call to a model provider, and the settings of such a call.

Shared by all adapters that call providers, through LiteLLM or over plain HTTP.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.stop import stop_before_delay
from tenacity.wait import wait_base, wait_random_exponential

from pipeline.domain.errors import ModelUnavailable, SettingRejected

T = TypeVar("T")

log = structlog.get_logger(__name__)

# 408 timeout, 409 conflict, 425 too early: transient, as the OpenAI SDK treats them.
PASSING_STATUSES = frozenset({408, 409, 425})
YEAR_S = 366.0 * 86_400


class Throttled(ModelUnavailable):
    """HTTP 429. It is retried within the call only if the provider asks for a short wait."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Retries for errors that pass within seconds.

    These are connection errors, timeouts, 5xx, and 429 with a short Retry-After. No retry starts,
    or runs, after `total_s`; the first attempt has the client's whole timeout. `wait`: the wait
    after an attempt; a longer Retry-After replaces it.
    """

    tries: int = 3
    total_s: float = 45.0
    retry_after_max_s: float = 10.0
    wait: wait_base = field(default_factory=lambda: wait_random_exponential(multiplier=0.5, max=8))


DEFAULT_RETRY = RetryPolicy()


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model at a provider: its LiteLLM name, such as `openai/gpt-4o-mini`, and how to call it.

    `api_base`, `api_key`: None for the provider's defaults. `organization`: an OpenAI organization.
    `timeout_s`: timeout of one call. `setting`: the group of settings that names the model.
    """

    name: str
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    retry: RetryPolicy = DEFAULT_RETRY
    organization: str | None = None
    setting: str = "MEMLANE_LLM"


async def retried(
    once: Callable[[float], Awaitable[T]], policy: RetryPolicy, *, timeout_s: float, model: str
) -> T:
    """Await `once(limit_s)` until it succeeds, or the policy's tries or seconds are used up.

    Errors: those of the last try.
    """
    began = time.monotonic()
    try:
        return await once(timeout_s)
    except ModelUnavailable as error:
        first = error

    # Built after a failure only: tenacity costs 0.4 ms of CPU for each call that it runs.
    left_s = policy.total_s - (time.monotonic() - began)
    retrying = AsyncRetrying(
        stop=stop_after_attempt(policy.tries) | stop_before_delay(left_s),
        wait=_WaitAsRequested(policy.wait),
        retry=retry_if_exception(lambda error: _mends_in_seconds(error, policy)),
        before_sleep=partial(_log_retry, model),
        reraise=True,
    )

    async def attempt() -> T:
        if retrying.statistics["attempt_number"] == 1:
            raise first
        return await once(min(timeout_s, policy.total_s - (time.monotonic() - began)))

    return await retrying(attempt)


def _log_retry(model: str, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.info(
        "model_call_retried",
        model=model,
        attempt=state.attempt_number,
        wait_s=round(state.upcoming_sleep, 3),
        error=str(error),  # an adapter's text: status and class name, no content
    )


def _mends_in_seconds(error: BaseException, policy: RetryPolicy) -> bool:
    """True if a retry within the call can succeed."""
    if not isinstance(error, ModelUnavailable) or isinstance(error, SettingRejected):
        return False
    if error.retry_after_s is None:
        return not isinstance(error, Throttled)
    return error.retry_after_s <= policy.retry_after_max_s


class _WaitAsRequested(wait_base):
    """The jittered wait, or the provider's Retry-After if that is longer."""

    def __init__(self, jittered: wait_base) -> None:
        self._jittered = jittered

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        requested_s = error.retry_after_s if isinstance(error, ModelUnavailable) else None
        return max(self._jittered(retry_state), requested_s or 0.0)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds from `Retry-After`, a number or an HTTP date; None if absent or unreadable.

    A longer time than a year is a year: a time of 1e300 seconds has no date.
    """
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        seconds = _until(value)
    return min(max(0.0, seconds), YEAR_S) if math.isfinite(seconds) else None


def _until(http_date: str) -> float:
    try:
        return parsedate_to_datetime(http_date).timestamp() - time.time()
    except ValueError:
        return math.nan
