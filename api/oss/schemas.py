"""Requests of the open-source dialect: our own, with the names that its clients send."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from api.schemas import AddRequest, SearchRequest
from api.schemas.limits import InstructionText


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
        """Read `limit` as `top_k`."""
        if isinstance(value, dict) and value.get("limit") and not value.get("top_k"):
            return {**value, "top_k": value["limit"]}
        return value
