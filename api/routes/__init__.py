"""Routes, one file for each noun. Each parses, calls one use-case and shapes the response."""

from api.routes import (
    adds,
    batch,
    conflicts,
    console,
    curator,
    entities,
    erasures,
    events,
    exports,
    graph,
    keys,
    lists,
    memories,
    organizations,
    private_runs,
    profiles,
    replays,
    search,
    suggestions,
    summaries,
    system,
    verification,
    versions,
    webhooks,
)

# The order matters: a path with a fixed word comes before one with a parameter in its place.
ROUTERS = tuple(
    room.router
    for room in (
        adds,
        lists,
        search,
        versions,
        memories,
        batch,
        profiles,
        entities,
        exports,
        graph,
        erasures,
        events,
        replays,
        suggestions,
        curator,
        summaries,
        conflicts,
        organizations,
        keys,
        webhooks,
        private_runs,
        verification,
        console,
        system,
    )
)
