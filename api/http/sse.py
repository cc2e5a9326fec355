"""Progress of an event as Server-Sent Events.

Source: the HTML standard, section 9.2.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter

from api.events import responses as event_responses
from api.events.responses import EventJson, ProgressJson
from api.events.watch import EventWatch
from api.http.streams import LimitedStream
from pipeline.domain.tenants import ProjectId
from pipeline.events.store import Events, Progress

# Proxies close connections that are silent for 30 to 60 s.
HEARTBEAT_S = 15.0
HEARTBEAT = b": still there\n\n"
UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_JSON: TypeAdapter[Any] = TypeAdapter(Any)


class EventStream(LimitedStream):
    """A stream of Server-Sent Events. 429 if the project has too many of them open."""

    media_type = "text/event-stream"


async def live(
    project_id: ProjectId,
    event_id: UUID,
    *,
    events: Events,
    watch: EventWatch,
    allowed: Callable[[], Awaitable[bool]],
    heartbeat_s: float = HEARTBEAT_S,
) -> AsyncIterator[bytes]:
    """A `stage` frame now and at each change; at the event's end an `end` frame with the event.

    The stream ends without an `end` frame at the first change or heartbeat at which it is no longer
    `allowed`.
    """
    with watch.following(event_id) as changes:
        ended = False
        while not ended:
            change = await next_change(changes, heartbeat_s)
            if not await allowed():
                return
            if change is None:
                yield HEARTBEAT
                continue
            yield frame("stage", event_responses.progress(change))
            ended = change.ended
    yield frame("end", event_responses.event(await events.get(project_id, event_id)))


async def next_change(
    changes: asyncio.Queue[Progress], heartbeat_s: float = HEARTBEAT_S
) -> Progress | None:
    """The next change; None after the time in which a proxy needs a sign of life."""
    try:
        async with asyncio.timeout(heartbeat_s):
            return await changes.get()
    except TimeoutError:
        return None


def frame(name: str, data: EventJson | ProgressJson) -> bytes:
    """One event of the stream. JSON has no line breaks, so its data is one line."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), _JSON.dump_json(data))
