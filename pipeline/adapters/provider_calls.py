"""Retries around one call to a model provider, and the settings of such a call.

Shared by all adapters that call providers, through LiteLLM or over plain HTTP.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
# Headers of OpenAI's and Anthropic's limits, each with a count that remains and a time of reset.
# Source: https://platform.openai.com/docs/guides/rate-limits
# Source: https://docs.claude.com/en/api/rate-limits
LIMITS = (
    "x-ratelimit-{}-requests",
    "x-ratelimit-{}-tokens",
    "anthropic-ratelimit-requests-{}",
    "anthropic-ratelimit-tokens-{}",
    "anthropic-ratelimit-input-tokens-{}",
    "anthropic-ratelimit-output-tokens-{}",
)
LONGEST_RESET_S = 7.0 * 86_400
# Gemini has no such headers. Source: google.rpc.RetryInfo in google/rpc/error_details.proto
_RETRY_INFO = re.compile(r"""["']retryDelay["']\s*:\s*["'](\d{1,9}(?:\.\d{1,9})?s)["']""")
LONGEST_READ = 10_000
_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)"
_DURATION = re.compile("".join(f"(?:{_NUMBER}{unit})?" for unit in ("d", "h", "m", "s", "ms")))
_UNITS_S = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


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


async def retried(once: Callable[[float], Awaitable[T]], remote: RemoteModel) -> T:
    """Await `once(limit_s)` until it succeeds, or the model's tries or seconds are used up.

    Errors: those of the last try.
    """
    policy, began = remote.retry, time.monotonic()
    try:
        return await once(remote.timeout_s)
    except ModelUnavailable as error:
        first = error

    # Built after a failure only: tenacity costs 0.4 ms of CPU for each call that it runs.
    left_s = policy.total_s - (time.monotonic() - began)
    retrying = AsyncRetrying(
        stop=stop_after_attempt(policy.tries) | stop_before_delay(left_s),
        wait=_WaitAsRequested(policy.wait),
        retry=retry_if_exception(lambda error: _mends_in_seconds(error, policy)),
        before_sleep=partial(_log_retry, remote.name),
        reraise=True,
    )

    async def attempt() -> T:
        if retrying.statistics["attempt_number"] == 1:
            raise first
        return await once(min(remote.timeout_s, policy.total_s - (time.monotonic() - began)))

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


def retry_after_s(
    headers: Mapping[str, str], text: str = "", *, throttled: bool = False
) -> float | None:
    """Seconds until a retry, as the provider asks in a refusal; None if it does not.

    `text`: the refusal, for Gemini's RetryInfo. `throttled`: the limits that are used up count too;
    the latest of their resets. A longer time than a year is a year: 1e300 seconds has no date.
    """
    info = _RETRY_INFO.search(text[:LONGEST_READ])
    times = [_seconds(headers.get("retry-after-ms", ""), unit_s=0.001)]
    times += [_seconds(headers.get("retry-after", "")), _seconds(info[1] if info else "")]
    if throttled:
        resets = [
            _seconds(headers.get(name.format("reset"), ""))
            for name in LIMITS
            if headers.get(name.format("remaining"), "0").startswith(("0", "-"))
        ]
        # A longer one is another form of time: some gateways send Unix times.
        waits = [reset_s for reset_s in resets if reset_s <= LONGEST_RESET_S]
        times.append(max(waits, default=math.nan))
    requested_s = next(filter(math.isfinite, times), None)
    return None if requested_s is None else min(max(0.0, requested_s), YEAR_S)


def _seconds(value: str, *, unit_s: float = 1.0) -> float:
    """Seconds of a number, a duration such as 1m30s, or until a date; NaN for anything else."""
    with suppress(ValueError):
        return float(value) * unit_s
    duration = _DURATION.fullmatch(value)
    if value and duration:
        parts = zip(duration.groups(), _UNITS_S, strict=True)
        return sum(float(number or 0) * seconds for number, seconds in parts)
    for read in (parsedate_to_datetime, _rfc_3339):
        with suppress(ValueError, OverflowError):
            return read(value).timestamp() - time.time()
    return math.nan


def _rfc_3339(value: str) -> datetime:
    return datetime.fromisoformat(value).astimezone(UTC)
