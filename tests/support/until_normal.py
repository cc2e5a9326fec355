"""Seconds until a service works normally again after a fault, as its users see it.

Probes are adds of new users, sent at a fixed rate, each repeated with its idempotency key until it
is accepted, then followed to its end. A probe is slow if it takes three times as long as those
before the fault, and a second at least. The service is normal once the last slow probe has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import httpx

EVERY_S = 0.25
LOOK_EVERY_S, LOOK_S = 1.0, 1.5
ANSWER_S, PAUSE_S = 4.0, 0.2
SLOW_S, SLOW_TIMES = 1.0, 3.0
LATEST_S = 180.0


@dataclass(slots=True)
class Probe:
    """Time of the first request, and of the event's end."""

    user: str
    sent_at: float
    ended_at: float | None = None
    status: str = ""

    @property
    def took_s(self) -> float:
        return (self.ended_at or float("inf")) - self.sent_at


@dataclass
class Prober:
    """Sends probes to the API processes that are ready, in turn, as a load balancer does."""

    urls: Sequence[str]
    key: str
    name: str = "probe"
    probes: list[Probe] = field(default_factory=list)
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    _ready: list[str] = field(default_factory=list)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def run(self, stopped: asyncio.Event) -> None:
        """Send probes until `stopped`, then wait for the last ones."""
        numbers = count()
        self._ready = list(self.urls)
        async with httpx.AsyncClient(
            headers={"Authorization": f"Token {self.key}"}, timeout=ANSWER_S
        ) as http:
            looks = [asyncio.create_task(self._look(http, url)) for url in self.urls]
            while not stopped.is_set():
                number = next(numbers)
                probe = Probe(f"{self.name}-{number}", self.now())
                self.probes.append(probe)
                task = asyncio.create_task(self._follow(http, probe, number))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
                await asyncio.sleep(EVERY_S)
            if self._running:
                await asyncio.wait(self._running, timeout=LATEST_S)
            for look in looks:
                look.cancel()

    async def _look(self, http: httpx.AsyncClient, url: str) -> None:
        """Take an API process in or out, by its /readyz."""
        while True:
            try:
                ready = (await http.get(f"{url}/readyz", timeout=LOOK_S)).status_code == 200
            except httpx.TransportError:
                ready = False
            healthy = {*self._ready, url} if ready else {*self._ready} - {url}
            self._ready = [each for each in self.urls if each in healthy]
            await asyncio.sleep(LOOK_EVERY_S)

    def _place(self, number: int) -> str:
        """The API process for an attempt; any of them if none is ready."""
        places = self._ready or self.urls
        return places[number % len(places)]

    async def _follow(self, http: httpx.AsyncClient, probe: Probe, number: int) -> None:
        event_id: str | None = None
        while probe.ended_at is None:
            url = self._place(number)
            number += 1
            try:
                if event_id is None:
                    event_id = await self._add(http, url, probe)
                elif ended := await self._end(http, url, event_id):
                    probe.ended_at, probe.status = self.now(), ended
            except httpx.TransportError:
                await asyncio.sleep(PAUSE_S)

    async def _add(self, http: httpx.AsyncClient, url: str, probe: Probe) -> str | None:
        body = {
            "messages": [{"role": "user", "content": f"I like {probe.user}."}],
            "user_id": probe.user,
        }
        headers = {"Idempotency-Key": probe.user}
        answer = await http.post(f"{url}/v3/memories/add/", json=body, headers=headers)
        if answer.status_code != 200:
            await asyncio.sleep(PAUSE_S)
            return None
        return str(answer.json()["event_id"])

    async def _end(self, http: httpx.AsyncClient, url: str, event_id: str) -> str:
        """The status of an event that has ended; empty if it has not."""
        answer = await http.get(f"{url}/v1/event/{event_id}/", params={"wait": ANSWER_S / 2})
        if answer.status_code != 200:
            await asyncio.sleep(PAUSE_S)
            return ""
        event = answer.json()
        return str(event["status"]) if event["completed_at"] is not None else ""

    def limit_s(self, before: float) -> float:
        """Duration above which a probe is slow, from those that ended before a time."""
        times = sorted(
            probe.took_s
            for probe in self.probes
            if probe.ended_at is not None and probe.ended_at < before
        )
        return round(max(SLOW_S, SLOW_TIMES * times[len(times) // 2]) if times else SLOW_S, 2)

    def normal_after_s(self, fault_at: float, until: float, limit_s: float) -> float:
        """Seconds from a fault until the last slow probe of those sent until a time has ended."""
        slow = [
            probe.ended_at or float("inf")
            for probe in self.probes
            if probe.sent_at < until and (probe.ended_at or until) > fault_at
            if probe.took_s > limit_s
        ]
        return round(max(0.0, max(slow, default=fault_at) - fault_at), 1)

    def lost(self) -> list[str]:
        """Users of the probes that did not succeed."""
        return [probe.user for probe in self.probes if probe.status != "SUCCEEDED"]
