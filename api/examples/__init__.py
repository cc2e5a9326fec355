"""Example responses for the OpenAPI page: `answers("event")` documents a route with event.json."""

from __future__ import annotations

from importlib import resources
from typing import Any

import orjson


def answers(name: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI `responses` of a route, with the example `name`."""
    example = orjson.loads(resources.files(__package__).joinpath(f"{name}.json").read_bytes())
    return {200: {"content": {"application/json": {"example": example}}}}
