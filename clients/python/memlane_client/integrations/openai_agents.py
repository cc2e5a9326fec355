"""Session of the OpenAI Agents SDK: `Runner.run(agent, text, session=MemlaneSession(…))`.

An item of the conversation is one verbatim memory of the run `session_id`: JSON with the item and
its number in time. With a `user_id`, messages of the user and the assistant are also added as turns
of this user, from which Memlane extracts memories.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agents.items import TResponseInputItem
from agents.memory.session_settings import SessionSettings, resolve_session_limit

from memlane_client.client import AsyncMemlane
from memlane_client.errors import Missing
from memlane_client.operations import ANY
from memlane_client.receipts import MemoryRow
from memlane_client.storable import storable

# Items of one add, so that the newest page has all items of the newest add.
AT_ONCE, PAGE = 50, 100
# Bytes of the texts of one add, half of what the server takes in a body.
MOST_BYTES = 500_000
SPEAKERS = ("user", "assistant")
TEXTS = ("input_text", "output_text", "text")


@dataclass(frozen=True, slots=True)
class Stored:
    """An item of the session, its number, and the memory that has it."""

    number: int
    memory_id: str
    item: TResponseInputItem


class MemlaneSession:
    """A session on the asynchronous client without an outbox: items are read once they are added.

    Any number of processes may use one session; `pop_item` returns each item once.
    """

    def __init__(
        self,
        session_id: str,
        memlane: AsyncMemlane,
        *,
        user_id: str | None = None,
        app_id: str = "openai-agents",
        session_settings: SessionSettings | None = None,
    ) -> None:
        """`app_id`: name of the application. `user_id`: whose memories the messages become.

        Errors: ValueError for an empty id, and for `*`, which would be the items of all sessions.
        """
        if not {session_id, app_id}.isdisjoint(("", ANY)):
            raise ValueError(f"session_id and app_id must not be empty or {ANY!r}")
        if memlane.outbox_status() is not None:
            raise ValueError("a session reads what it has written: use a client without an outbox")
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memlane, self._user_id = memlane, user_id
        self._app_id = app_id
        self._last = 0

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order; with a limit the newest ones."""
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is not None and limit <= 0:
            return []
        rows: list[Stored] = []
        number, more = 1, True
        # One add more than the limit: items of one add have the same time, in any order.
        while more and (limit is None or len(rows) < limit + AT_ONCE):
            page, more = await self._page(number)
            rows += page
            number += 1
        unique = {row.memory_id: row for row in rows}
        ordered = sorted(unique.values(), key=lambda row: row.number)
        return [row.item for row in (ordered if limit is None else ordered[-limit:])]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store the items; they can be read once this returns."""
        messages = [{"role": "user", "content": self._text(item)} for item in items]
        for part in _adds(messages):
            ticket = await self._memlane.add(
                part, infer=False, app_id=self._app_id, run_id=self.session_id
            )
            await ticket.receipt()
        if self._user_id is not None:
            for part in _adds(_turns(items)):
                await self._memlane.add(part, user_id=self._user_id)

    async def pop_item(self) -> TResponseInputItem | None:
        """Delete the newest item and return it. Of concurrent calls, each gets another one."""
        while True:
            rows, _ = await self._page(1)
            if not rows:
                return None
            newest = max(rows, key=lambda row: row.number)
            try:
                await self._memlane.delete(newest.memory_id)
            except Missing:  # another call was faster
                continue
            return newest.item

    async def clear_session(self) -> None:
        """Delete all items. Memories of the user stay."""
        while rows := (await self._page(1))[0]:
            for row in rows:
                with suppress(Missing):
                    await self._memlane.delete(row.memory_id)

    async def _page(self, number: int) -> tuple[list[Stored], bool]:
        """A page of items, newest first, and if there are more."""
        filters = {"AND": [{"app_id": self._app_id}, {"run_id": self.session_id}]}
        page = await self._memlane.list(filters, page=number, size=PAGE)
        return [_stored(row) for row in page.results], page.next is not None

    def _text(self, item: TResponseInputItem) -> str:
        """An item as the text of a memory."""
        text = json.dumps({"number": self._next(), "item": item}, ensure_ascii=False)
        return storable(text)

    def _next(self) -> int:
        """A number above all that this session has given, and in the order of time."""
        self._last = max(self._last + 1, time.time_ns())
        return self._last


def _stored(row: MemoryRow) -> Stored:
    value = json.loads(row.memory)
    return Stored(value["number"], row.id, value["item"])


def _adds(messages: Iterable[dict[str, str]]) -> Iterator[list[dict[str, str]]]:
    """The messages in order, in lists that are small enough for one add."""
    part: list[dict[str, str]] = []
    size = 0
    for message in messages:
        more = len(json.dumps(message, ensure_ascii=False).encode())
        if part and (len(part) == AT_ONCE or size + more > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(message)
        size += more
    if part:
        yield part


def _turns(items: Sequence[TResponseInputItem]) -> Iterator[dict[str, str]]:
    """The messages with text of the user and the assistant."""
    for item in items:
        role = str(item.get("role")) if isinstance(item, Mapping) else ""
        text = _text(item.get("content")) if role in SPEAKERS else ""
        if text.strip():
            yield {"role": role, "content": storable(text)}


def _text(content: object) -> str:
    """The text of a message: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text") or "") for part in parts if part.get("type") in TEXTS)
