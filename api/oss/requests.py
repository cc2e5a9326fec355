"""Requests of the open-source dialect: our own, with the names that its clients send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from api.adds.requests import AddRequest
from api.http.limits import InstructionText
from api.search.requests import SearchRequest
from pipeline.domain.filters import ALIASES, KIND

KNOWN = {"AND", "OR", "NOT", *KIND, *ALIASES}


class OssAdd(AddRequest):
    """An add. A null means the default; `prompt` says what to extract."""

    prompt: InstructionText | None = Field(
        default=None, description="Same as `custom_instructions`."
    )

    @model_validator(mode="before")
    @classmethod
    def with_our_names(cls, value: Any) -> Any:
        """Leave out nulls, and read `prompt` as instructions."""
        if not isinstance(value, dict):
            return value
        sent = {name: given for name, given in value.items() if given is not None}
        return {"custom_instructions": sent["prompt"], **sent} if "prompt" in sent else sent


class OssSearch(SearchRequest):
    """A search. `limit` is the older name of `top_k`."""

    limit: int | None = Field(default=None, description="Same as `top_k`.")

    @model_validator(mode="before")
    @classmethod
    def with_our_names(cls, value: Any) -> Any:
        """Read `limit` as `top_k`, and unknown keys of `filters` as metadata."""
        if not isinstance(value, dict):
            return value
        limited = value.get("limit") and not value.get("top_k")
        renamed = {**value, "top_k": value["limit"]} if limited else {**value}
        if isinstance(value.get("filters"), dict):
            renamed["filters"] = _with_metadata(value["filters"])
        return renamed


def _with_metadata(filters: Mapping[str, Any]) -> dict[str, Any]:
    """The filters with `metadata.` before keys that only the open-source server takes without it.

    That server has no `app_id`: plugins keep it in the metadata, and filter by it.
    """
    parts: list[dict[str, Any]] = []
    for key, value in filters.items():
        if key in ("AND", "OR", "NOT") and isinstance(value, list):
            branches = [_with_metadata(part) if isinstance(part, dict) else part for part in value]
            parts.append({key: branches})
        elif key == "NOT" and isinstance(value, dict):
            parts.append({key: _with_metadata(value)})
        elif key == "app_id":
            own = [{"app_id": value}, {"metadata.app_id": value}]
            parts += [] if value == "*" else [{"OR": own}]
        elif key in KNOWN or key.startswith("metadata."):
            parts.append({key: value})
        else:
            parts.append({f"metadata.{key}": value})
    return parts[0] if len(parts) == 1 else {"AND": parts} if parts else {}
