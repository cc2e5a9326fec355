"""Responses about users' tokens, and what they download."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from typing_extensions import TypedDict

from api.http.shared_responses import DoneJson, Id, json_of
from api.memories.responses import MemoryJson, MessageJson
from pipeline.tenants.user_tokens import UserToken


class UserTokenJson(TypedDict):
    """A token of a user, without its secret."""

    id: Id
    user_id: str
    rights: list[str]
    created_at: datetime
    expires_at: datetime


class NewUserTokenJson(UserTokenJson):
    """A new token of a user, with its secret."""

    token: str


class RevokedTokensJson(DoneJson):
    """The number of tokens that were revoked."""

    revoked: int


class DownloadedMemoryJson(MemoryJson):
    """A memory, with the message that it was extracted from."""

    input: MessageJson | None


class UserDownloadJson(TypedDict):
    """Everything that is stored of a user."""

    user_id: str
    memories: list[DownloadedMemoryJson]
    messages: list[dict[str, Any]]


def token(row: UserToken) -> UserTokenJson:
    """A token without its secret."""
    return json_of(UserTokenJson, row, rights=list(row.rights))
