"""Requests to the curator."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.http.body import ScopeRequest, examples


class CuratorRunRequest(ScopeRequest):
    """A run over the memories of exactly these ids. `suggestions` and `tokens` lower its limits."""

    model_config = examples({"user_id": "maya", "suggestions": 10})

    suggestions: Annotated[int, Field(ge=1)] | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None
