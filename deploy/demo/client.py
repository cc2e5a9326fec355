"""HTTP client of the demo: seven calls with parsed responses."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

import httpx
from pydantic import TypeAdapter

from deploy.demo.answers import (
    DemoAccepted,
    DemoChange,
    DemoEvent,
    DemoEvents,
    DemoMemories,
    DemoSearch,
)
from deploy.demo.failure import DemoError
from deploy.stack.layout import command_line

# Maximum page size of the API; the demo's events and memories fit on one page.
PAGE_SIZE = 200
TIMEOUT_S = 30.0
CHANGES = TypeAdapter(list[DemoChange])


class DemoClient:
    """Client with one API key. All calls raise DemoError if the API does not answer or refuses."""

    def __init__(self, url: str, key: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url
        # Without the proxy of the environment: the API is on this machine.
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Token {key}"},
            timeout=TIMEOUT_S,
            trust_env=False,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ping(self) -> None:
        """Check that the API answers and accepts the key."""
        self._ask("GET", "/v1/ping/")

    def add(
        self,
        messages: list[dict[str, str]],
        *,
        timestamp: datetime | None = None,
        **ids: str,
    ) -> DemoAccepted:
        """Post one turn. `timestamp`: when it was said. `ids`: ids that it belongs to."""
        body: dict[str, Any] = {"messages": messages, **ids}
        if timestamp:
            body["timestamp"] = timestamp.isoformat()
        began = time.perf_counter()
        answer = self._ask("POST", "/v3/memories/add/", json=body)
        ms = (time.perf_counter() - began) * 1000
        return DemoAccepted.model_validate_json(answer).model_copy(update={"ms": ms})

    def event(self, event_id: str) -> DemoEvent:
        """Read an event."""
        return DemoEvent.model_validate_json(self._ask("GET", f"/v1/event/{event_id}/"))

    def events(self, run_id: str) -> list[DemoEvent]:
        """All events of a run, of all users, oldest first."""
        params: dict[str, str | int] = {"run_id": run_id, "page_size": PAGE_SIZE}
        answer = self._ask("GET", "/v1/events/", params=params)
        return DemoEvents.model_validate_json(answer).results[::-1]

    def search(self, query: str, *, top_k: int, **ids: str) -> DemoSearch:
        """Search a user's memories."""
        body = {"query": query, "filters": ids, "top_k": top_k}
        return DemoSearch.model_validate_json(self._ask("POST", "/v3/memories/search/", json=body))

    def memories(self, **ids: str) -> DemoMemories:
        """List a user's memories."""
        body = {"filters": ids, "page_size": PAGE_SIZE}
        return DemoMemories.model_validate_json(self._ask("POST", "/v3/memories/", json=body))

    def history(self, memory_id: str) -> list[DemoChange]:
        """Read a memory's history."""
        return CHANGES.validate_json(self._ask("GET", f"/v1/memories/{memory_id}/history/"))

    def _ask(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        params: Mapping[str, str | int] | None = None,
    ) -> bytes:
        """The body of a 2xx response. Errors: DemoError that says what to do."""
        try:
            answer = self._http.request(method, path, json=json, params=params)
        except httpx.TransportError as error:
            raise DemoError(
                f"Nothing answers at {self.url} ({type(error).__name__}). "
                f"Start the stack with `{command_line('up')}` (or see `{command_line('logs')}`),"
                " then try again."
            ) from error
        if answer.is_error:
            raise DemoError(f"{method} {path} answered {answer.status_code}: {answer.text[:300]}")
        return answer.content
