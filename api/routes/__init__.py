"""Routes, one file a noun. Each parses, calls one use-case and shapes the answer."""

from api.routes import (
    adds,
    batch,
    entities,
    erasures,
    events,
    exports,
    keys,
    lists,
    memories,
    organizations,
    profiles,
    replays,
    search,
    system,
    webhooks,
)

# In order: a path with a fixed word stands before the one with a name in its place.
ROUTERS = tuple(
    room.router
    for room in (
        adds,
        lists,
        search,
        memories,
        batch,
        profiles,
        entities,
        exports,
        erasures,
        events,
        replays,
        organizations,
        keys,
        webhooks,
        system,
    )
)
