"""Responses about the server itself."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from api.http.shared_responses import Id


class PingJson(TypedDict):
    """The organization and project of a key."""

    status: str
    org_id: Id
    project_id: Id
    user_email: str


class HealthJson(TypedDict):
    """A process that answers."""

    status: str
    version: str


class ReadyJson(TypedDict):
    """State of each store and of the model: `ok`, or the name of the error."""

    status: str
    ledger: str
    vectors: str
    model: str
    embedder: NotRequired[str]
    graph: NotRequired[str]
