"""Memory service of Google's Agent Development Kit.

    runner = Runner(..., memory_service=MemlaneMemoryService(AsyncMemlane(key, outbox="...")))

`app_name` is the `app_id`, and memories of all sessions of a user are compared with each other.
Each event is one add with an Idempotency-Key made from its id: a session may be added repeatedly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from memlane_client.client import AsyncMemlane
from memlane_client.errors import Missing
from memlane_client.receipts import SearchHit

LONGEST_TEXT = 32_000


class MemlaneMemoryService(BaseMemoryService):
    """Stores events through the client, and its outbox if it has one; searches by meaning."""

    def __init__(self, memlane: AsyncMemlane, *, top_k: int = 10) -> None:
        """`top_k`: maximum number of memories of a search."""
        self._memlane = memlane
        self._top_k = top_k

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
        """Add events, in order. Those without text, and thoughts of the model, are left out."""
        for event in events:
            if text := _text(event.content):
                role = "user" if event.author == "user" else "assistant"
                metadata = {
                    "session": session_id,
                    "author": event.author,
                    **(custom_metadata or {}),
                }
                await self._memlane.add(
                    {"role": role, "content": text[:LONGEST_TEXT]},
                    idempotency_key=_key(app_name, user_id, session_id, event.id),
                    app_id=app_name,
                    user_id=user_id,
                    timestamp=int(event.timestamp),
                    metadata={name: value for name, value in metadata.items() if value is not None},
                )

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
                await self._memlane.add(
                    text[:LONGEST_TEXT],
                    app_id=app_name,
                    user_id=user_id,
                    infer=False,
                    metadata={**memory.custom_metadata, **(custom_metadata or {})},
                )

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Memories of this user in this app, best first."""
        answer = await self._memlane.search(
            query, app_id=app_name, user_id=user_id, top_k=self._top_k
        )
        return SearchMemoryResponse(memories=[_entry(hit) for hit in answer.results])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory of this user in this app; an unknown one is deleted already."""
        if memory_id is None:
            raise ValueError("memory_id is required")
        try:
            memory = await self._memlane.get(memory_id)
            if (memory.app_id, memory.user_id) == (app_name, user_id):
                await self._memlane.delete(memory_id)
        except Missing:
            return


def _key(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(["adk", *parts]).encode()).hexdigest()


def _text(content: types.Content | None) -> str:
    """The text of a content, without the model's thoughts."""
    parts = (content.parts if content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


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
