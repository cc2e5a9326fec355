"""Load of the chaos runs: clients that keep sending through outages, and a log of their answers.

Turn n of scope s is "I moved to Town{s}x{n}k. I like sport{s}x{n}k.": the residence is one memory
whose history must be the accepted turns in order, and each sport is a separate memory. (Without
the k, local/rules would take x11 for x1: a doubled last character counts as another spelling.)
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID

import httpx

from tests.support.chaos_ledger import holds
from tests.support.stack import ServedApi

LONGEST_BURST = 4
API_BACK_WITHIN_S = 90.0
# uvloop raises AttributeError for a connection that breaks while it is opened: its raw socket is
# None (anyio 4, _sockets.py).
CUT_OFF = (httpx.TransportError, AttributeError)


def user_of(scope: int) -> str:
    return f"chaos-{scope}"


def said(scope: int, turn: int) -> str:
    return f"I moved to Town{scope}x{turn}k. I like sport{scope}x{turn}k."


def in_graph(scope: int) -> bool:
    """True if the adds of the scope have a graph: those of two scopes in three."""
    return scope % 3 != 2


def residence(scope: int, turn: int) -> str:
    return f"User lives in Town{scope}x{turn}k"


def liking(scope: int, turn: int) -> str:
    return f"User likes sport{scope}x{turn}k"


@dataclass(slots=True)
class ScopeLog:
    """Log of one scope. Its turns are sent one at a time, with increasing numbers."""

    accepted: list[tuple[int, UUID]] = field(default_factory=list)  # 200, in order
    unknown: set[int] = field(default_factory=set)  # sent, but not answered
    denied: set[int] = field(default_factory=set)  # answered "nothing was accepted"


@dataclass(slots=True)
class ClientLog:
    """Log of all clients, only appended to.

    `accepted` counts the 200s, `open` the requests without an answer so far, `sent_again` the
    repeated requests with an idempotency key.
    """

    scopes: defaultdict[int, ScopeLog] = field(default_factory=lambda: defaultdict(ScopeLog))
    accepted: int = 0
    in_doubt: int = 0
    open: int = 0
    sent_again: int = 0
    refused: list[str] = field(default_factory=list)


class ChatLoad:
    """Clients that send `turns` turns to each scope over `callers` connections.

    `keyed` (0..1) is the share of turns with an idempotency key. `may_send` delays a caller while
    too many events are in flight. The scopes are numbered from `first`; `log`: shared by several
    loads.
    """

    def __init__(
        self,
        stack: ServedApi,
        *,
        scopes: int,
        turns: int,
        callers: int,
        seed: int,
        keyed: float,
        may_send: Callable[[], Awaitable[None]],
        first: int = 0,
        log: ClientLog | None = None,
    ) -> None:
        self.log = ClientLog() if log is None else log
        self.stopped = asyncio.Event()
        self._stack = stack
        self._turns = turns
        self._shares = [range(first + n, first + scopes, callers) for n in range(callers)]
        self._seed = seed
        self._keyed = keyed
        self._may_send = may_send
        self._next: defaultdict[int, int] = defaultdict(int)

    async def run(self) -> None:
        http = httpx.AsyncClient(
            base_url=self._stack.url,
            headers={"Authorization": f"Token {self._stack.key}"},
            timeout=30,
        )
        async with http, asyncio.TaskGroup() as callers:
            for number, share in enumerate(self._shares):
                callers.create_task(self._caller(number, share, http))

    async def _caller(self, number: int, share: range, http: httpx.AsyncClient) -> None:
        chance = random.Random(f"{self._seed}/{number}")
        left = list(share)
        while left and not self.stopped.is_set():
            scope = chance.choice(left)
            for _ in range(chance.randint(1, LONGEST_BURST)):
                await self._may_send()
                await self._say(scope, keyed=chance.random() < self._keyed, http=http)
                if len(self.log.scopes[scope].accepted) >= self._turns:
                    left.remove(scope)
                    break

    async def _say(self, scope: int, *, keyed: bool, http: httpx.AsyncClient) -> None:
        """Send one turn.

        With a key, repeat it until it is answered. Without a key, a request that was cut off is in
        doubt and is not repeated, so a turn number cannot occur twice.
        """
        log, turn = self.log.scopes[scope], self._next[scope]
        self._next[scope] += 1
        self.log.open += 1
        answer = await self._post(scope, turn, keyed=keyed, http=http)
        while keyed and (answer is None or answer.status_code == 503):
            self.log.sent_again += 1
            await self._api_back(http)
            answer = await self._post(scope, turn, keyed=keyed, http=http)
        if answer is not None and answer.status_code == 200:
            log.accepted.append((turn, UUID(answer.json()["event_id"])))
            self.log.accepted += 1
        elif answer is None or answer.status_code == 503:
            (log.unknown if answer is None else log.denied).add(turn)
            self.log.in_doubt += 1
        elif answer.status_code != 429:  # a 429 is certain: nothing was accepted
            log.unknown.add(turn)
            self.log.in_doubt += 1
            self.log.refused.append(f"{answer.status_code}: {answer.text[:200]}")
        self.log.open -= 1
        if answer is None or answer.status_code != 200:
            await self._api_back(http)

    async def _post(
        self, scope: int, turn: int, *, keyed: bool, http: httpx.AsyncClient
    ) -> httpx.Response | None:
        """Response of the API; None if the connection was cut."""
        body = {
            "messages": [{"role": "user", "content": said(scope, turn)}],
            "user_id": user_of(scope),
            "enable_graph": in_graph(scope),
        }
        headers = {"Idempotency-Key": f"{user_of(scope)}/{turn}"} if keyed else {}
        try:
            return await http.post("/v3/memories/add/", json=body, headers=headers)
        except CUT_OFF:
            return None

    async def _api_back(self, http: httpx.AsyncClient) -> None:
        async def ready() -> bool:
            try:
                return (await http.get("/readyz")).status_code == 200
            except CUT_OFF:
                return False

        assert await holds(ready, within_s=API_BACK_WITHIN_S), "the API did not come back"
