"""Shared code of the drivers of Python packages: a user, the server's answers, and the report.

The report is a line of JSON for each check, as python_client.py prints them.
"""

from __future__ import annotations

import json
import os
import traceback
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import httpx

USER = f"user-{uuid.uuid4().hex[:12]}"
SERVER = httpx.Client(
    base_url=os.environ["MEMLANE_URL"],
    headers={"Authorization": f"Token {os.environ['MEM0_API_KEY']}"},
    timeout=90,
)


def wait_for_events(user: str = USER) -> list[dict[str, Any]]:
    """Results of all events of the user, once they have ended."""
    events = SERVER.get("/v1/events/", params={"user_id": user}).json()["results"]
    assert events, f"no event of {user} reached the server"
    ended = [SERVER.get(f"/v1/event/{event['id']}/?wait=60").json() for event in events]
    assert {event["status"] for event in ended} == {"SUCCEEDED"}, ended
    return [line for event in ended for line in event["results"]]


def report(checks: Mapping[str, Callable[[], None]]) -> None:
    for method, check in checks.items():
        fault = ""
        try:
            check()
        except Exception:
            fault = traceback.format_exc()[-1_500:]
        print(json.dumps({"method": method, "works": not fault, "said": fault}))
