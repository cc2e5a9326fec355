"""The hostile tenant: its keys, its client, and the data that its requests read."""

from __future__ import annotations

import asyncio
import random
import string
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

Statuses = Counter[int]
# Time for the end of the hostile tenant's own events.
ENDS_WITHIN_S = 40.0


def organization(url: str, operator_key: str, name: str) -> dict[str, str]:
    """A new organization: its key, and the id of its project."""
    answer = httpx.post(
        f"{url}/api/v1/orgs/organizations/",
        json={"name": name},
        headers={"Authorization": f"Token {operator_key}"},
        timeout=60,
    )
    answer.raise_for_status()
    return dict(answer.json())


@dataclass
class Tenant:
    """The hostile tenant. `receiver`: URL of a slow receiver of webhooks."""

    url: str
    port: int
    key: str
    project_id: str
    receiver: str
    http: httpx.AsyncClient = field(init=False)
    random: random.Random = field(default_factory=lambda: random.Random(7))
    events: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.http = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Token {self.key}", "Content-Type": "application/json"},
            timeout=120,
            limits=httpx.Limits(max_connections=300, max_keepalive_connections=50),
        )

    async def send(
        self, method: str, path: str, body: Any = None, *, times: int = 1, at_once: int = 4
    ) -> Statuses:
        """Send one request several times, and count the statuses."""
        content = None if body is None else body if isinstance(body, bytes) else dumped(body)
        return await self.send_all([(method, path, content)] * times, at_once=at_once)

    async def send_all(
        self, requests: Iterable[tuple[str, str, bytes | None]], *, at_once: int = 4
    ) -> Statuses:
        """Send requests, `at_once` at a time, without parsing the answers."""
        statuses: Statuses = Counter()
        left = iter(requests)

        async def caller() -> None:
            for method, path, content in left:
                try:
                    answer = await self.http.request(method, path, content=content)
                    statuses[answer.status_code] += 1
                except httpx.TransportError:
                    statuses[0] += 1

        await asyncio.gather(*(caller() for _ in range(at_once)))
        return statuses

    async def get(self, path: str, **query: Any) -> Any:
        return (await self.http.get(path, params=query)).json()

    async def post(self, path: str, body: Any) -> Any:
        return (await self.http.post(path, content=dumped(body))).json()

    async def add(self, user: str, texts: Iterable[str], **options: Any) -> Any:
        """Add messages of a user; the answer."""
        messages = [{"role": "user", "content": text} for text in texts]
        return await self.post(
            "/v3/memories/add/", {"user_id": user, "messages": messages, **options}
        )

    async def adds(self, bodies: Iterable[Mapping[str, Any]], *, at_once: int = 4) -> Statuses:
        """Send adds and wait until their events have ended; count the statuses of the answers."""
        statuses: Statuses = Counter()
        left, events = iter([dumped(body) for body in bodies]), []

        async def caller() -> None:
            for content in left:
                answer = await self.http.post("/v3/memories/add/", content=content)
                statuses[answer.status_code] += 1
                if answer.status_code == 200:
                    events.append(answer.json().get("event_id"))

        await asyncio.gather(*(caller() for _ in range(at_once)))
        await self.ended(events)
        return statuses

    async def ended(self, events: Iterable[str | None]) -> None:
        """Wait for the end of events, at most ENDS_WITHIN_S."""
        deadline = time.monotonic() + ENDS_WITHIN_S
        for event_id in events:
            left = deadline - time.monotonic()
            if event_id is None or left <= 0:
                continue
            await self.http.get(f"/v1/event/{event_id}/", params={"wait": round(min(left, 30), 1)})

    async def ids(self, user: str) -> list[str]:
        """Ids of a user's newest memories."""
        page = await self.post("/v3/memories/?page_size=200", {"user_id": user, "fields": ["id"]})
        return [row["id"] for row in page["results"]]

    def word(self, letters: int = 6, start: str = "") -> str:
        """A random word."""
        rest = letters - len(start)
        return start + "".join(self.random.choices(string.ascii_lowercase, k=rest))

    async def fill(self) -> None:
        """Store the data that the requests read."""
        steps: list[Callable[[], Awaitable[None]]] = [
            self._long_texts, self._many_words, self._large_metadata, self._mistyped, self._dots,
            self._speakers, self._turns, self._related, self._long_ids, self._small,
        ]  # fmt: skip
        for step in steps:
            await step()

    async def _long_texts(self) -> None:
        for batch in range(7):
            texts = [f"{batch} {n} " + "long text " * 3_150 for n in range(30)]
            await self.add("long", texts, infer=False)

    async def _many_words(self) -> None:
        words = [self.word(11) for _ in range(30_000)]
        for _ in range(4):
            texts = [" ".join(self.random.choices(words, k=2_000)) for _ in range(30)]
            await self.add("words", texts, infer=False)
        self.events["words"] = " ".join(words[:64])

    async def _large_metadata(self) -> None:
        for n in range(130):
            metadata = {f"key {i} {n}": "v" * 20 for i in range(700)}
            await self.add("metadata", [f"I know fact {n}."], infer=False, metadata=metadata)

    async def _mistyped(self) -> None:
        """Texts of words that begin alike: each may be a typing error of a word of a question."""
        for _ in range(3):
            texts = [
                " ".join("ab" + "".join(self.random.sample("cdefghij", 8)) for _ in range(2_900))
                for _ in range(30)
            ]
            await self.add("mistyped", texts, infer=False)

    async def _dots(self) -> None:
        second_ago = time.gmtime(time.time() - 1)
        self.events["before_dots"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", second_ago)
        texts = [f"{n}" + "." * 990 for n in range(30)]
        await self.add("dots", texts, infer=False)

    async def _speakers(self) -> None:
        for batch in range(2):
            messages = [
                {
                    "role": "user",
                    "name": " ".join(self.word(5) for _ in range(80)),
                    "content": f"an apple {batch} {n}",
                }
                for n in range(500)
            ]
            body = {"user_id": "speakers", "mode": "turns", "messages": messages}
            answer = await self.post("/v3/memories/add/", body)
            await self.ended([answer.get("event_id")])

    async def _turns(self) -> None:
        """A lane of 5,000 turns."""
        for batch in range(10):
            texts = [f"turn {batch} {n} about an apple " + "and more " * 20 for n in range(500)]
            answer = await self.add("turns", texts, mode="turns")
            await self.ended([answer.get("event_id")])

    async def _related(self) -> None:
        """A graph: facts about one person."""
        for batch in range(4):
            texts = [f"I like {self.word()} and {self.word()}." for _ in range(50)]
            answer = await self.add("graph", texts)
            self.events[f"graph{batch}"] = answer["event_id"]
            await self.ended([answer["event_id"]])

    async def _long_ids(self) -> None:
        """Rows whose ids and names are longer than their texts."""
        name = "n" * 500
        for n in range(8):
            ids = {part: f"{part}{n}" + "x" * 490 for part in ("agent_id", "app_id", "run_id")}
            messages = [{"role": "user", "name": name, "content": f"tiny {i}"} for i in range(125)]
            body = {"user_id": "ids", "infer": False, "messages": messages, **ids}
            await self.post("/v3/memories/add/", body)

    async def _small(self) -> None:
        """A scope of 1,000 memories, in one event."""
        texts = [f"I saw the {self.word()} of {self.word()} number {n}." for n in range(500)]
        for half in range(2):
            answer = await self.add("small", texts[half * 250 :][:250], infer=False)
            self.events["small"] = answer.get("event_id", "")


def dumped(body: Any) -> bytes:
    """JSON of a body; text and bytes stay as they are."""
    if isinstance(body, bytes | str):
        return body if isinstance(body, bytes) else body.encode()
    return orjson.dumps(body)
