"""The download of a user: one JSON file, written in parts so that its size does not matter."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from api.dependencies import ApiCall
from api.memories import responses as memory_responses
from pipeline.domain.filters import parse

PART = 100
AS_FILE = {
    "Content-Type": "application/json",
    "Content-Disposition": 'attachment; filename="memories.json"',
}


async def download(call: ApiCall, user_id: str) -> AsyncGenerator[bytes]:
    """Yield the parts of the file. If a read fails, it ends early and is no valid JSON."""
    yield b'{"user_id":' + orjson.dumps(user_id) + b',"memories":['
    separator = b""
    async for row in _memories(call, user_id):
        yield separator + orjson.dumps(row)
        separator = b",\n"
    yield b'],"messages":['
    separator = b""
    async for part in call.ledger.user_messages.parts(call.project.id, user_id):
        for message in part:
            yield separator + orjson.dumps(asdict(message))
            separator = b",\n"
    yield b"]}\n"


async def _memories(call: ApiCall, user_id: str) -> AsyncIterator[dict[str, Any]]:
    """The active memories, newest first, each with the message that it was extracted from.

    A part begins at the time of the last row of the one before: memories that are added or deleted
    during the download do not move it.
    """
    ledger, skip = call.ledger, 0
    last: datetime | None = None
    while True:
        own = {"user_id": {"eq": user_id}}
        tree = parse(own if last is None else {**own, "created_at": {"lte": last}})
        rows, _ = await ledger.memories.page(
            call.project.id, tree, expired=True, older=True, limit=PART, offset=skip
        )
        sources = await ledger.histories.inputs(call.project.id, [row.id for row in rows])
        for row in rows:
            yield memory_responses.memory(row) | {"input": sources.get(UUID(str(row.id)))}
        if len(rows) < PART:
            return
        before, last = last, rows[-1].created_at
        same = sum(row.created_at == last for row in rows)
        skip = skip + same if last == before else same
