"""Add messages to Memlane, wait until they are processed, and read the receipt.

    python memlane_wait.py --user maya "I live in Turku."

The other examples import `Memlane` from here. It needs the package httpx and nothing else.
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import httpx

# Maximum number of seconds that one request may wait for the end of an event.
LONGEST_WAIT_S = 60


class EventFailed(Exception):
    """The event ended as FAILED; the message has its code and the reason."""


class Memlane:
    """The calls that most agents need. `ids`: user_id, agent_id, app_id and run_id."""

    def __init__(self, url: str, key: str) -> None:
        headers = {"Authorization": f"Token {key}"}
        transport = httpx.HTTPTransport(retries=2)
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=LONGEST_WAIT_S + 30, transport=transport
        )

    def add(self, messages: list[dict[str, str]], **ids: Any) -> str:
        """Post a turn and return its event's id at once. The turn is stored durably by then.

        Because of the Idempotency-Key, the same request can be sent again after a lost response.
        """
        key = {"Idempotency-Key": str(uuid.uuid4())}
        body = {"messages": messages, **ids}
        return str(self._call("POST", "/v3/memories/add/", json=body, headers=key)["event_id"])

    def wait(self, event_id: str, *, within_s: float = 120) -> dict[str, Any]:
        """Wait for the end of the event and return it with its receipt.

        Errors: EventFailed; TimeoutError if it still runs after `within_s` seconds.
        """
        deadline = time.monotonic() + within_s
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            params = {"wait": min(left_s, LONGEST_WAIT_S)}
            event = self._call("GET", f"/v1/event/{event_id}/", params=params)
            if event["status"] == "SUCCEEDED":
                return dict(event)
            if event["status"] == "FAILED":
                raise EventFailed(f"{event['code']}: {event['error']}")
            if left_s == 0:
                raise TimeoutError(f"{event_id} is {event['status']} after {within_s:g} s")

    def remember(self, text: str, **ids: Any) -> list[dict[str, Any]]:
        """Add one message of the user and wait. Returns the receipt, one entry for each fact."""
        event_id = self.add([{"role": "user", "content": text}], **ids)
        return list(self.wait(event_id)["results"])

    def search(self, query: str, *, top_k: int = 5, **ids: str) -> list[str]:
        """Texts of the memories that match best."""
        body = {"query": query, "filters": ids, "top_k": top_k}
        answer = self._call("POST", "/v3/memories/search/", json=body)
        return [hit["memory"] for hit in answer["results"]]

    def memories(self, **ids: str) -> list[dict[str, Any]]:
        """Memories of these ids, newest first (the first page)."""
        return list(self._call("POST", "/v3/memories/", json={"filters": ids})["results"])

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """All states of a memory, oldest first."""
        return list(self._call("GET", f"/v1/memories/{memory_id}/history/"))

    def undo(self, event_id: str) -> None:
        """Undo the changes of an event."""
        self._call("POST", f"/v1/event/{event_id}/undo/")

    def erase(self, user_id: str) -> None:
        """Erase everything about a user; this cannot be undone."""
        self._call("POST", "/v1/erasures/", json={"user_id": user_id})

    def _call(self, method: str, path: str, **options: Any) -> Any:
        answer = self._http.request(method, path, **options)
        if answer.is_error:
            raise SystemExit(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json()


def parser(about: str) -> argparse.ArgumentParser:
    """A command line parser with the options for the API's URL and key."""
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--url", default="http://127.0.0.1:8000")
    options.add_argument("--key-file", type=Path, default=Path(".memlane/api_key"))
    return options


def connect(options: argparse.Namespace) -> Memlane:
    return Memlane(options.url, options.key_file.read_text().strip())


if __name__ == "__main__":
    command_line = parser("Add one message, wait, print the receipt.")
    command_line.add_argument("--user", required=True)
    command_line.add_argument("text")
    given = command_line.parse_args()
    try:
        receipt = connect(given).remember(given.text, user_id=given.user)
    except (EventFailed, TimeoutError) as error:
        sys.exit(str(error))
    for fact in receipt:
        print(fact["event"], fact["memory"], f"({fact['reason']})")
