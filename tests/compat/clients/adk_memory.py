"""The memory service of Google's Agent Development Kit on Memlane."""

from __future__ import annotations

import asyncio
import os
import uuid
from typing import Any

import httpx
from google.adk.events.event import Event  # type: ignore[import-not-found,unused-ignore]
from google.adk.memory import (  # type: ignore[import-not-found,unused-ignore]
    BaseMemoryService,
    InMemoryMemoryService,
)
from google.adk.memory.memory_entry import (  # type: ignore[import-not-found,unused-ignore]
    MemoryEntry,
)
from google.adk.sessions import (  # type: ignore[import-not-found,unused-ignore]
    InMemorySessionService,
)
from google.genai import types  # type: ignore[import-not-found,unused-ignore]
from memlane_client import AsyncMemlane, Rejected
from memlane_client.integrations.google_adk import MemlaneMemoryService
from report import SERVER, USER, report, wait_for_events  # type: ignore[import-not-found,unused-ignore]

IDS = {"app_name": "shop", "user_id": USER}


def content(text: str, **options: Any) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text, **options)])


async def with_service(run: Any) -> Any:
    async with AsyncMemlane(os.environ["MEM0_API_KEY"], os.environ["MEMLANE_URL"]) as memlane:
        return await run(MemlaneMemoryService(memlane))


def found(query: str, **ids: str) -> list[MemoryEntry]:
    async def run(service: MemlaneMemoryService) -> list[MemoryEntry]:
        return list((await service.search_memory(query=query, **(IDS | ids))).memories)

    return list(asyncio.run(with_service(run)))


def count_events() -> int:
    return int(SERVER.get("/v1/events/", params={"user_id": USER}).json()["count"])


async def add_session_twice(service: MemlaneMemoryService) -> None:
    sessions = InMemorySessionService()
    session = await sessions.create_session(**IDS, session_id="s1")
    for author, text in (("user", "I live in Turku."), ("agent", "Noted."), ("user", "")):
        await sessions.append_event(session, Event(author=author, content=content(text)))
    thought = Event(author="agent", content=content("The user is Finnish.", thought=True))
    await sessions.append_event(session, thought)
    session = await sessions.get_session(**IDS, session_id="s1")
    await service.add_session_to_memory(session)
    await sessions.append_event(session, Event(author="user", content=content("I keep bees.")))
    await service.add_session_to_memory(session)


def sessions() -> None:
    asyncio.run(with_service(add_session_twice))
    wait_for_events()
    assert count_events() == 3, count_events()
    texts = [entry.content.parts[0].text for entry in found("Where does the user live?")]
    assert any("Turku" in text for text in texts), texts
    assert found("Turku", user_id="somebody else") == []
    assert found("Turku", app_name="another") == []


def memories() -> None:
    entry = MemoryEntry(content=content("Prefers window seats"), custom_metadata={"k": "v"})

    async def run(service: MemlaneMemoryService) -> None:
        await service.add_memory(**IDS, memories=[entry])

    asyncio.run(with_service(run))
    [best, *_] = found("Which seat?")
    assert best.content.parts[0].text == "Prefers window seats"
    assert best.custom_metadata == {"k": "v"}
    assert best.timestamp

    async def delete(service: MemlaneMemoryService) -> None:
        await service.delete_memory(app_name="another", user_id=USER, memory_id=best.id)
        assert any(row.id == best.id for row in await again(service))
        await service.delete_memory(**IDS, memory_id=best.id)
        await service.delete_memory(**IDS, memory_id=best.id)
        assert not any(row.id == best.id for row in await again(service))

    async def again(service: MemlaneMemoryService) -> list[MemoryEntry]:
        return list((await service.search_memory(**IDS, query="Which seat?")).memories)

    asyncio.run(with_service(delete))


def unknown_memories() -> None:
    """The services of the kit ignore an id of any form that no memory has."""
    ids = (None, "", "abc", "2TfDbE9x", "*", "../users", "a/b", "\0", "\ud83d", str(uuid.uuid4()))

    async def run(service: BaseMemoryService) -> None:
        for memory_id in ids:
            await service.delete_memory(**IDS, memory_id=memory_id)

    asyncio.run(run(InMemoryMemoryService()))
    asyncio.run(with_service(run))


def odd_events() -> None:
    """Texts that Memlane cannot store, or only in parts, do not stop the events after them."""
    texts = ["My name is\0 Ana.", "Half an emoji \ud83d", "x" * 70_000, "I sail a dinghy."]
    events = [Event(author="user", content=content(text)) for text in texts]

    async def run(service: MemlaneMemoryService) -> None:
        before = count_events()
        await service.add_events_to_memory(**IDS, events=events, session_id="s2")
        another = MemlaneMemoryService(service._memlane)
        await another.add_events_to_memory(
            **IDS, events=events, session_id="s2", custom_metadata={"turn": 7}
        )
        assert count_events() == before + len(events)

    asyncio.run(with_service(run))
    wait_for_events()
    assert any("dinghy" in entry.content.parts[0].text for entry in found("Which boat?"))


def known_events() -> None:
    """A service does not send again what it has added, and another one adds nothing twice."""
    requests: list[str] = []
    event = Event(author="user", content=content("I play the oboe."))

    class Recorded(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            requests.append(request.url.path)
            return await super().handle_async_request(request)

    async def run() -> None:
        key, url = os.environ["MEM0_API_KEY"], os.environ["MEMLANE_URL"]
        async with AsyncMemlane(key, url, async_transport=Recorded()) as memlane:
            service = MemlaneMemoryService(memlane)
            for _ in range(3):
                await service.add_events_to_memory(**IDS, events=[event], session_id="s3")

    before = count_events()
    asyncio.run(run())
    assert len(requests) == 1, requests
    asyncio.run(run())
    assert count_events() == before + 1


def searches() -> None:
    """A query without words finds nothing, and an id is no wildcard."""
    for query in ("", " \n", "\0", "\ud83d"):
        assert isinstance(found(query), list)
    for name in IDS:
        try:
            entries = found("Where does the user live?", **{name: "*"})
        except Rejected:
            entries = []
        assert entries == []


def time_of_a_memory() -> None:
    async def run(service: MemlaneMemoryService) -> None:
        memories = [
            MemoryEntry(content=content("Sold the boat"), timestamp="2024-02-03T04:05:06Z"),
            MemoryEntry(content=content("Bought a kayak"), timestamp="last spring"),
        ]
        await service.add_memory(**IDS, memories=memories)

    asyncio.run(with_service(run))
    times = {entry.content.parts[0].text: entry.timestamp for entry in found("boat or kayak?")}
    assert str(times["Sold the boat"]).startswith("2024-02-03T04:05:06"), times
    assert times["Bought a kayak"]


report(
    {
        "add_session_to_memory, search_memory": sessions,
        "add_memory, delete_memory": memories,
        "delete_memory of unknown ids": unknown_memories,
        "add_events_to_memory of odd texts": odd_events,
        "add_events_to_memory of known events": known_events,
        "search_memory of odd queries": searches,
        "add_memory with a time": time_of_a_memory,
    }
)
