"""Requests about webhooks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from api.http.body import Request

Name = Annotated[str, Field(min_length=1, max_length=200)]
Url = Annotated[str, Field(min_length=1, max_length=2000)]
DeliveryState = Literal["PENDING", "DELIVERED", "DEAD"]


class CreateRequest(Request):
    """A new webhook."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "name": "audit",
                "url": "https://example.com/memories",
                "event_types": ["memory_add", "memory_delete"],
            }
        }
    )

    name: Name
    url: Url
    event_types: list[str] = Field(min_length=1, max_length=20)


class ChangeRequest(Request):
    """Changes of a webhook; absent fields stay. `is_active` true enables a disabled webhook."""

    name: Name | None = None
    url: Url | None = None
    event_types: list[str] | None = Field(None, max_length=20)
    is_active: bool | None = None
