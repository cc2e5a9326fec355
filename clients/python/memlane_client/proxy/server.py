"""The process of the memory proxy: uvicorn, without an access log."""

from __future__ import annotations

from pathlib import Path

import uvicorn

from memlane_client.calls import Retries
from memlane_client.client import AsyncMemlane
from memlane_client.proxy.app import build
from memlane_client.proxy.settings import ProxySettings


def serve(settings: ProxySettings, *, listen: str, url: str, key: str, outbox: Path) -> None:
    """Serve until SIGTERM; then finish the streams under way and store their turns."""
    host, _, port = listen.rpartition(":")
    # One attempt: a chat waits for the search.
    memlane = AsyncMemlane(key, url, outbox=outbox, retries=Retries(attempts=1))
    app = build(settings, memlane)
    uvicorn.run(
        app, host=host or "127.0.0.1", port=int(port), access_log=False, log_level="warning"
    )
