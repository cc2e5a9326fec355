"""Memory service of Google's Agent Development Kit.

    runner = Runner(..., memory_service=MemlaneMemoryService(AsyncMemlane(key, outbox="...")))

`app_name` is the `app_id`, and memories of all sessions of a user are compared with each other.
Each event is one add with an Idempotency-Key made from its id: a session may be added repeatedly
within the lifetime of these keys on the server, and within the life of this process.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from memlane_client.client import AsyncMemlane
from memlane_client.errors import Missing, Rejected
from memlane_client.operations import AddFields
from memlane_client.receipts import SearchHit
from memlane_client.storable import LONGEST_TEXT, storable

# Number of the newest events that a service does not send again.
MOST_REMEMBERED = 20_000
CONFLICT = 409


class MemlaneMemoryService(BaseMemoryService):
    """Stores events through the client, and its outbox if it has one; searches by meaning."""

    def __init__(self, memlane: AsyncMemlane, *, top_k: int = 10) -> None:
        """`top_k`: maximum number of memories of a search."""
        self._memlane = memlane
        self._top_k = top_k
        self._added: OrderedDict[str, None] = OrderedDict()

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session that were not added before."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add events, in order, that were not added before.

        Those without text, and thoughts of the model, are left out.
        """
        for event in events:
            key = _key(app_name, user_id, session_id, event.id)
            text = _text(event.content)
            if not text or key in self._added:
                continue
            role = "user" if event.author == "user" else "assistant"
            metadata = {"session": session_id, "author": event.author, **(custom_metadata or {})}
            try:
                await self._memlane.add(
                    [{"role": role, "content": part} for part in _parts(text)],
                    idempotency_key=key,
                    app_id=app_name,
                    user_id=user_id,
                    timestamp=int(event.timestamp),
                    metadata={name: value for name, value in metadata.items() if value is not None},
                )
            except Rejected as refusal:
                if refusal.status != CONFLICT:  # it was added before, with other metadata
                    raise
            self._remember(key)

    def _remember(self, key: str) -> None:
        self._added[key] = None
        if len(self._added) > MOST_REMEMBERED:
            self._added.popitem(last=False)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories as they are written, without extraction."""
        for memory in memories:
            if text := _text(memory.content):
                fields: AddFields = {
                    "app_id": app_name,
                    "user_id": user_id,
                    "infer": False,
                    "metadata": {**memory.custom_metadata, **(custom_metadata or {})},
                }
                if memory.timestamp and _reads(datetime.fromisoformat, memory.timestamp):
                    fields["timestamp"] = memory.timestamp
                await self._memlane.add(text[:LONGEST_TEXT], **fields)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Memories of this user in this app, best first; none for a query without words."""
        query = storable(query).strip()
        if not query:
            return SearchMemoryResponse()
        answer = await self._memlane.search(
            query, app_id=app_name, user_id=user_id, top_k=self._top_k
        )
        return SearchMemoryResponse(memories=[_entry(hit) for hit in answer.results])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory of this user in this app; without effect if there is none of this id."""
        if memory_id is None or not _reads(UUID, memory_id):
            return
        with suppress(Missing):
            memory = await self._memlane.get(memory_id)
            if (memory.app_id, memory.user_id) == (app_name, user_id):
                await self._memlane.delete(memory_id)


def _key(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(["adk", *parts]).encode()).hexdigest()


def _text(content: types.Content | None) -> str:
    """The text of a content, without the model's thoughts."""
    parts = (content.parts if content else None) or []
    texts = [part.text for part in parts if part.text and not part.thought]
    return storable("\n".join(texts)).strip()


def _parts(text: str) -> list[str]:
    """A text as the texts of messages, each short enough for the server."""
    return [text[start : start + LONGEST_TEXT] for start in range(0, len(text), LONGEST_TEXT)]


def _reads(parse: Callable[[str], object], text: str) -> bool:
    """True if the parser reads the text: the kit has times and ids of other forms too."""
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _entry(hit: SearchHit) -> MemoryEntry:
    """A result of a search as a memory of the kit, with the time when it was said."""
    extra: Mapping[str, Any] = hit.model_extra or {}
    said_at = extra.get("said_at") or hit.created_at
    when = said_at.isoformat() if isinstance(said_at, datetime) else said_at
    return MemoryEntry(
        id=hit.id,
        content=types.Content(role="user", parts=[types.Part(text=hit.memory)]),
        author="memory",
        timestamp=when,
        custom_metadata=hit.metadata or {},
    )
