"""Check of API responses against the OpenAPI description."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx
import jsonschema
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Match

from api.openapi import describe
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
    """The first difference of a response from the description; None without one."""
    error = jsonschema.exceptions.best_match(_validator(operation, status).iter_errors(answer))
    return None if error is None else f"{error.json_path}: {error.message[:300]}"


@cache
def description() -> dict[str, Any]:
    """The OpenAPI description of all routes."""
    app = FastAPI(title="Memlane", version="1")
    for router in ROUTERS:
        app.include_router(router)
    return describe(app, "/")


@cache
def _validator(operation: str, status: int) -> jsonschema.Draft202012Validator:
    method, path = operation.split()
    responses = description()["paths"][path][method.lower()]["responses"]
    assert str(status) in responses, f"{operation}: {status} is not described"
    schema = responses[str(status)]["content"]["application/json"]["schema"]
    schema = schema | {"components": description()["components"]}
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
