"""The OpenAPI description: FastAPI's, with the types that the routes return, and our errors.

Those types are declared in each feature's `responses.py`, and the shared ones in
api/http/shared_responses.py.
"""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from api.http.typed_route import TypedRoute
from api.routers import ROUTERS

# Method in lower case, and path.
Operation = tuple[str, str]
COMPONENT = "#/components/schemas/{model}"

ERROR_SCHEMA = {
    "type": "object",
    "required": ["error", "detail", "message", "code"],
    "properties": {
        "error": {"type": "string", "description": "What is wrong, and what to change."},
        "detail": {"type": "string", "description": "The same text as `error`."},
        "message": {"type": "string", "description": "The same text as `error`."},
        "code": {
            "type": "string",
            "description": "INVALID_INPUT, INTERNAL, LEDGER_REFUSED, or the status by name.",
        },
    },
}
ERRORS = {
    "400": "A value is missing, wrong or beyond a limit; the text says what to change.",
    "401": "No API key, or one that is not valid.",
    "403": "The key's scope does not allow this.",
    "404": "The project of the key has no such object.",
    "409": "The state of the object does not allow the request; the text says why.",
    "413": "The request body is too large.",
    "429": "Too many requests or waiting events of this client; see Retry-After.",
    "503": "The server is busy, cannot reach its ledger, or another request changed the same rows;"
    " see Retry-After.",
}
RETRIED = ("429", "503")
# Ends of paths that can answer 409.
CONFLICTS = (
    "/add/", "/v1/memories/", "/cancel/", "/replay/", "/undo/", "/switch/", "/diff/",
    "/exports/get/", "/summary/", "/projects/{project_id}/", "/members/", "/v1/batch/",
    "/{key_id}/",
)  # fmt: skip
OPEN = ("/livez", "/healthz", "/readyz", "/metrics")


def describe(app: FastAPI, server_url: str) -> dict[str, Any]:
    """The OpenAPI description, built once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            servers=[{"url": server_url}],
        )
        components = made["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            components.pop(name, None)
        contents, types = _contents()
        made["components"]["schemas"] = components | types | {"Error": ERROR_SCHEMA}
        for path, operations in made["paths"].items():
            for method, operation in operations.items():
                responses = operation["responses"]
                responses.pop("422", None)
                for status, content in contents.get((method, path), {}).items():
                    responses[status]["content"] = {"application/json": content}
                if path not in OPEN:
                    responses |= _errors(path, method)
        app.openapi_schema = made
    return app.openapi_schema


class _ResponseSchemas(GenerateJsonSchema):
    """JSON schemas without titles. `MemoryJson` becomes `Memory`, a page of it `MemoryPage`."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No field has a title, because its name says the same."""
        return False

    def normalize_name(self, name: str) -> str:
        """The name of a component."""
        if rows := re.match(r"(Page|Results)Json\[(?:Annotated\[)?(\w+)Json", name):
            return rows[2] + rows[1]
        return super().normalize_name(name.removesuffix("Json"))


def _contents() -> tuple[dict[Operation, dict[str, Any]], dict[str, Any]]:
    """Schema and example of all responses by operation and status; and the components in them."""
    routes = {
        (method.lower(), route.path_format): route
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, TypedRoute) and route.include_in_schema
        for method in route.methods or ()
    }
    types = {
        (operation, status): answer
        for operation, route in routes.items()
        for status, answer in route.response_types.items()
    }
    schemas, definitions = TypeAdapter.json_schemas(
        [(key, "serialization", TypeAdapter(answer)) for key, answer in types.items()],
        ref_template=COMPONENT,
        schema_generator=_ResponseSchemas,
    )
    contents: dict[Operation, dict[str, Any]] = {operation: {} for operation in routes}
    for operation, status in types:
        # FastAPI leaves the nulls of an example out.
        declared = routes[operation].responses.get(status, {}).get("content", {})
        content = declared.get("application/json", {})
        schema = schemas[(operation, status), "serialization"]
        contents[operation][str(status)] = content | {"schema": schema}
    components = definitions.get("$defs", {})
    for component in components.values():
        component.pop("title", None)
    return contents, components


def _errors(path: str, method: str) -> dict[str, Any]:
    left_out = {
        *(["409"] if method == "get" or not path.endswith(CONFLICTS) else []),
        *(["413"] if method in ("get", "delete") else []),
    }
    return {
        status: _error(status, text) for status, text in ERRORS.items() if status not in left_out
    }


def _error(status: str, text: str) -> dict[str, Any]:
    answer = {
        "description": text,
        "content": {"application/json": {"schema": {"$ref": COMPONENT.format(model="Error")}}},
    }
    seconds = {"schema": {"type": "integer"}, "description": "Seconds to wait."}
    return answer | ({"headers": {"Retry-After": seconds}} if status in RETRIED else {})
