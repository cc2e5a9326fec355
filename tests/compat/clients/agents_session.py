"""The session of the OpenAI Agents SDK on Memlane, beside the SDK's own session in SQLite."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from agents import (  # type: ignore[import-not-found,unused-ignore]
    Agent,
    Model,
    ModelResponse,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.memory.session import Session  # type: ignore[import-not-found,unused-ignore]
from memlane_client import AsyncMemlane
from memlane_client.integrations.openai_agents import AT_ONCE, MemlaneSession, _adds
from openai.types.responses import (  # type: ignore[import-not-found,unused-ignore]
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from report import SERVER, USER, report, wait_for_events  # type: ignore[import-not-found,unused-ignore]

set_tracing_disabled(True)
HELLO = {"role": "user", "content": "Hello"}
CALL = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"q": "é\\u0001"}'}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "42"}
Steps = Callable[[Any], Awaitable[list[Any]]]


def memlane() -> AsyncMemlane:
    return AsyncMemlane(os.environ["MEM0_API_KEY"], os.environ["MEMLANE_URL"])


def same(steps: Steps) -> Callable[[], None]:
    """A check: the steps have the same answers on both sessions."""

    async def compare() -> None:
        name = f"s-{uuid.uuid4().hex[:8]}"
        async with memlane() as client:
            ours = await steps(MemlaneSession(name, client))
        theirs = await steps(SQLiteSession(name))
        assert ours == theirs, (ours, theirs)

    return lambda: asyncio.run(compare())


async def order(session: Session) -> list[Any]:
    await session.add_items([HELLO, CALL, RESULT])
    await session.add_items([HELLO])
    await session.add_items([])
    return [
        await session.get_items(),
        *[await session.get_items(limit) for limit in (0, 1, 2, 3, 4, 9)],
    ]


async def many(session: Session) -> list[Any]:
    items = [{"role": "user", "content": f"Item {number}"} for number in range(130)]
    await session.add_items(items)
    await session.add_items([HELLO])
    return [await session.get_items(), await session.get_items(120), await session.pop_item()]


async def pops(session: Session) -> list[Any]:
    answers = [await session.pop_item()]
    await session.add_items([HELLO, CALL])
    answers += [await session.pop_item(), await session.get_items(), await session.pop_item()]
    await session.add_items([RESULT])
    return [*answers, await session.get_items(), await session.pop_item(), await session.pop_item()]


async def clears(session: Session) -> list[Any]:
    await session.add_items([HELLO, CALL])
    await session.clear_session()
    await session.clear_session()
    empty = await session.get_items()
    await session.add_items([HELLO])
    return [empty, await session.get_items()]


def concurrent() -> None:
    """Two processes pop each item once."""

    async def run() -> None:
        async with memlane() as first, memlane() as second:
            name = f"s-{uuid.uuid4().hex[:8]}"
            sessions = [MemlaneSession(name, first), MemlaneSession(name, second)]
            items = [{"role": "user", "content": f"Item {number}"} for number in range(6)]
            await sessions[0].add_items(items)
            popped = await asyncio.gather(*(sessions[n % 2].pop_item() for n in range(6)))
            texts = sorted(str(item and item["content"]) for item in popped)
            assert texts == [item["content"] for item in items], popped
            assert await sessions[1].pop_item() is None

    asyncio.run(run())


class Scripted(Model):  # type: ignore[misc,unused-ignore]
    """A model that calls the tool, then answers with the number of items that it sees."""

    def __init__(self) -> None:
        self.seen: list[list[Any]] = []

    async def get_response(self, *_: Any, **given: Any) -> ModelResponse:
        items = given["input"]
        self.seen.append(items)
        if not any(item.get("type") == "function_call_output" for item in items):
            call = ResponseFunctionToolCall(
                arguments="{}", call_id="c1", name="city", type="function_call", id="f1"
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        text = ResponseOutputText(
            text="Porto is nice.", type="output_text", annotations=[], logprobs=[]
        )
        message = ResponseOutputMessage(
            id="m1", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **more: Any) -> Any:
        raise NotImplementedError


@function_tool
def city() -> str:
    """The city."""
    return "Porto"


def runner() -> None:
    """Two runs of an agent with a tool: the second sees the first, and memories are extracted."""

    async def run() -> list[Any]:
        model = Scripted()
        agent = Agent(name="helper", model=model, tools=[city])
        async with memlane() as client:
            session = MemlaneSession(f"s-{uuid.uuid4().hex[:8]}", client, user_id=USER)
            await Runner.run(agent, "I live in Porto.", session=session)
            await Runner.run(agent, "And now?", session=session)
            items = await session.get_items()
        assert [item["content"] for item in items if item.get("role") == "user"] == [
            "I live in Porto.",
            "And now?",
        ]
        assert len(model.seen[-1]) == 5, model.seen[-1]
        return items

    items = asyncio.run(run())
    assert {item.get("type") for item in items} >= {"function_call", "function_call_output"}
    wait_for_events()
    rows = SERVER.post("/v3/memories/", json={"filters": {"user_id": USER}}).json()["results"]
    assert "User lives in Porto" in [row["memory"] for row in rows], rows


def odd_items() -> None:
    """Items of many bytes as JSON, and texts that Memlane does not store as they are."""
    parts = [{"type": "input_text", "text": "see"}, {"type": "input_text"}]
    items = [{"role": "user", "content": text} for text in ("\u8a9e" * 9_000, "x\0y", "", parts)]
    half = {"role": "user", "content": "half an emoji \ud83d"}

    async def run() -> None:
        async with memlane() as client:
            session = MemlaneSession(f"s-{uuid.uuid4().hex[:8]}", client, user_id=f"{USER}-odd")
            await session.add_items(items)
            assert await session.get_items() == items
            await session.add_items([half])
            assert len(await session.get_items()) == len(items) + 1

    asyncio.run(run())


def cut_adds() -> None:
    """More messages than one add may have, and more bytes than a body may have."""
    texts = [*["z" * 30_000] * 35, *map(str, range(600))]
    messages = [{"role": "user", "content": text} for text in texts]
    adds = list(_adds(messages))
    assert [message for add in adds for message in add] == messages
    assert max(map(len, adds)) <= AT_ONCE
    assert max(len(json.dumps(add)) for add in adds) < 600_000


def no_wildcards() -> None:
    """A session with the name `*` would be all sessions of the app, also to clear them."""

    async def run() -> None:
        async with memlane() as client:
            for ids in ({"session_id": "*"}, {"session_id": ""}, {"app_id": "*"}):
                try:
                    MemlaneSession(**({"session_id": "s"} | ids), memlane=client)
                except ValueError:
                    continue
                raise AssertionError(ids)

    asyncio.run(run())


report(
    {
        "add_items, get_items": same(order),
        "get_items of many": same(many),
        "pop_item": same(pops),
        "clear_session": same(clears),
        "pop_item of two clients": concurrent,
        "Runner.run": runner,
        "add_items of odd items": odd_items,
        "add_items of many and large items": cut_adds,
        "session_id of all sessions": no_wildcards,
    }
)
