"""Check of API responses against the OpenAPI description."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx
import jsonschema
from fastapi.routing import APIRoute
from starlette.routing import Match

from api.answers import ANSWERS, COMPONENTS, LATER, ref
from api.routers import ROUTERS

ROUTES = [
    route
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and route.include_in_schema
]


async def as_described(response: httpx.Response) -> None:
    """Response hook for httpx: fail if a JSON response differs from the description."""
    is_json = response.headers.get("content-type", "").startswith("application/json")
    if not response.is_success or not is_json:
        return
    operation = operation_of(response.request.method, response.request.url.path)
    if operation is None:
        return
    await response.aread()
    fault = fault_of(operation, response.json(), status=response.status_code)
    assert fault is None, f"{operation}: {fault}"


def operation_of(method: str, path: str) -> str | None:
    """Name of the operation in the description; None if it has none."""
    scope = {"type": "http", "method": method, "path": path.rstrip("/") + "/"}
    for candidate in (scope, scope | {"path": path}):
        for route in ROUTES:
            if route.matches(candidate)[0] is Match.FULL:
                return f"{method} {route.path.replace(':path', '')}"
    return None


def fault_of(operation: str, answer: Any, *, status: int = 200) -> str | None:
    later = operation in LATER and status == 202
    errors = (_later() if later else _validator(operation)).iter_errors(answer)
    error = jsonschema.exceptions.best_match(errors)
    return None if error is None else f"{error.json_path}: {error.message[:300]}"


@cache
def _validator(operation: str) -> jsonschema.Draft202012Validator:
    schema = dict(ANSWERS[operation]) | {"components": {"schemas": dict(COMPONENTS)}}
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


@cache
def _later() -> jsonschema.Draft202012Validator:
    schema = dict(ref("NotReady")) | {"components": {"schemas": dict(COMPONENTS)}}
    return jsonschema.Draft202012Validator(schema)
