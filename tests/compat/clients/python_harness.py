"""The official Python client under test, and the registry of checks; see python_client.py."""

from __future__ import annotations

import inspect
import os
import uuid
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"

import httpx
from mem0 import AsyncMemoryClient, MemoryClient  # type: ignore[import-not-found,unused-ignore]

URL, KEY = os.environ["MEMLANE_URL"], os.environ["MEM0_API_KEY"]
LINE = tuple(int(part) for part in version("mem0ai").split("."))
SINCE_2, SINCE_1 = LINE >= (2,), LINE >= (1,)
UNKNOWN_ID = "00000000-0000-0000-0000-000000000001"
ODD = "a/b c@d"

Check = Callable[["CompatClient"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    def keep(function: Check) -> Check:
        CHECKS[name] = function
        return function

    return keep


class CompatClient:
    """The client under test, sync or async, and direct access to the server."""

    def __init__(self, kind: str) -> None:
        made = MemoryClient if kind == "sync" else AsyncMemoryClient
        self.real: Any = made(api_key=KEY, host=URL)
        self.http = httpx.Client(
            base_url=URL, headers={"Authorization": f"Token {KEY}"}, timeout=60
        )

    async def call(self, name: str, /, *args: Any, **options: Any) -> Any:
        target: Any = self.real
        for part in name.split("."):
            target = getattr(target, part)
        answer = target(*args, **options)
        return await answer if inspect.isawaitable(answer) else answer

    async def refused(self, name: str, /, *args: Any, **options: Any) -> str:
        """The text of the error that the client raises."""
        try:
            answer = await self.call(name, *args, **options)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        raise AssertionError(f"{name} answered {answer}")

    def ended(self, event_id: str) -> dict[str, Any]:
        event = self.http.get(f"/v1/event/{event_id}/", params={"wait": 60}).json()
        assert event["status"] == "SUCCEEDED", event
        return dict(event)

    async def tell(self, text: str, user: str, **options: Any) -> dict[str, Any]:
        """Add a turn and return its event once it has ended."""
        messages = [{"role": "user", "content": text}]
        answer = await self.call("add", messages, user_id=user, **options)
        [queued] = [answer] if SINCE_2 else answer["results"]
        assert queued["status"] == "PENDING", answer
        return self.ended(queued["event_id"])

    async def stored(self, text: str, user: str, **options: Any) -> str:
        """Add a text; return the id of its only memory."""
        [line] = (await self.tell(text, user, **options))["results"]
        assert line["event"] == "ADD", line
        return str(line["id"])

    async def all_of(self, user: str) -> list[dict[str, Any]]:
        if SINCE_1:
            answer = await self.call("get_all", filters={"user_id": user})
            return list(answer["results"])
        return list(await self.call("get_all", user_id=user))


def reports(refused: str, status: int, words: str) -> bool:
    """Tell if the client passes on the error: our text, or, in older async clients, the status."""
    return words in refused or (not SINCE_2 and str(status) in refused)


def new_user() -> str:
    return f"user-{uuid.uuid4().hex[:12]}"
