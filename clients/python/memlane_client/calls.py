"""Requests with retries and a circuit breaker, as generators without input and output.

A flow yields a `Call` and receives its response, or a `Pause` and is resumed after it. Both clients
and the outbox drive the same flows (`drive`, `drive_async`), so each rule is written once.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from memlane_client.errors import CircuitOpen, MemlaneError, Unavailable, Unreachable, error_of

T = TypeVar("T")

CONNECT_S = 5.0
READ_S = 30.0


def timeout(seconds: float) -> httpx.Timeout:
    """The timeout of a client whose requests are answered within this time."""
    return httpx.Timeout(seconds, connect=min(seconds, CONNECT_S))


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `wait_s`: seconds that the server may hold it, in addition to the timeout.

    `repeatable`: a second request has no further effect.
    """

    method: str
    path: str
    body: Any = None
    params: Mapping[str, str | int | float] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    repeatable: bool = True

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The request for this client's base URL."""
        return http.build_request(
            self.method,
            self.path,
            json=self.body,
            params=self.params or None,
            headers=self.headers,
            timeout=httpx.Timeout(
                (http.timeout.read or READ_S) + self.wait_s, connect=http.timeout.connect
            ),
        )


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds to wait before the flow goes on."""

    seconds: float


Flow = Generator[Call | Pause, httpx.Response | None, T]


@dataclass(frozen=True, slots=True)
class Retries:
    """Exponential backoff with jitter. `longest_s` also bounds an accepted Retry-After."""

    attempts: int = 4
    first_s: float = 0.2
    longest_s: float = 10.0

    def pause_s(self, attempt: int, retry_after_s: float | None = None) -> float:
        """Seconds after this attempt, counted from 1."""
        if retry_after_s is not None:
            return retry_after_s
        ceiling: float = min(self.longest_s, self.first_s * 2 ** min(attempt - 1, 20))
        return ceiling * random.uniform(0.5, 1.0)  # noqa: S311  jitter is no secret


@dataclass(slots=True)
class Circuit:
    """Circuit breaker: open after `threshold` failures in a row, for `open_s` seconds.

    After that one request at a time is let through; its success closes the circuit.
    """

    threshold: int = 5
    open_s: float = 5.0
    clock: Callable[[], float] = time.monotonic
    _failures: int = 0
    _open_until: float = 0.0

    def check(self) -> None:
        """Errors: CircuitOpen."""
        now = self.clock()
        if self._failures < self.threshold:
            return
        if now < self._open_until:
            left_s = self._open_until - now
            raise CircuitOpen(
                f"Memlane did not respond; the next request is sent in {left_s:.1f} s"
            )
        self._open_until = now + self.open_s  # this request is the probe

    def succeeded(self) -> None:
        """Close the circuit."""
        self._failures = 0

    def failed(self) -> None:
        """Count a failure."""
        self._failures += 1
        if self._failures >= self.threshold:
            self._open_until = self.clock() + self.open_s


def send(call: Call, *, retries: Retries, circuit: Circuit) -> Flow[httpx.Response]:
    """Send a call; repeat it while that may help. Errors: ApiError, Unreachable."""
    attempts = retries.attempts if call.repeatable else 1
    for attempt in range(1, attempts + 1):
        circuit.check()
        failure: MemlaneError
        retry_after_s = None
        try:
            response = yield call
        except httpx.RequestError as error:
            circuit.failed()
            failure = Unreachable(f"no response: {type(error).__name__}")
        else:
            assert response is not None
            problem = error_of(response)
            if not isinstance(problem, Unavailable):
                circuit.succeeded()
                if problem is None:
                    return response
                raise problem
            if problem.status != httpx.codes.TOO_MANY_REQUESTS:
                circuit.failed()
            failure, retry_after_s = problem, problem.retry_after_s
        pause_s = retries.pause_s(attempt, retry_after_s)
        if attempt == attempts or pause_s > retries.longest_s:
            raise failure
        yield Pause(pause_s)
    raise AssertionError("the last attempt returns or raises")


def drive(
    flow: Flow[T],
    http: httpx.Client,
    *,
    pause: Callable[[float], object] = time.sleep,
) -> T:
    """Run a flow to its end, in this thread."""
    try:
        step = next(flow)
        while True:
            if isinstance(step, Pause):
                pause(step.seconds)
                step = next(flow)
                continue
            try:
                response = http.send(step.request(http))
            except httpx.RequestError as error:
                step = flow.throw(error)
            else:
                step = flow.send(response)
    except StopIteration as end:
        result: T = end.value
        return result


async def drive_async(
    flow: Flow[T],
    http: httpx.AsyncClient,
    *,
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> T:
    """Run a flow to its end, in this event loop."""
    try:
        step = next(flow)
        while True:
            if isinstance(step, Pause):
                await pause(step.seconds)
                step = next(flow)
                continue
            try:
                response = await http.send(step.request(http))
            except httpx.RequestError as error:
                step = flow.throw(error)
            else:
                step = flow.send(response)
    except StopIteration as end:
        result: T = end.value
        return result
