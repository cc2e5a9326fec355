"""The OpenAPI description: FastAPI's, with our own responses and errors."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.answers import ANSWERS, COMPONENTS, LATER, TEXTS, ref

ERROR_SCHEMA = {
    "type": "object",
    "required": ["error", "detail", "message", "code"],
    "properties": {
        "error": {"type": "string", "description": "What is wrong, and what to change."},
        "detail": {"type": "string", "description": "The same text as `error`."},
        "message": {"type": "string", "description": "The same text as `error`."},
        "code": {
            "type": "string",
            "description": "INVALID_INPUT, INTERNAL, or the status by name.",
        },
    },
}
ERRORS = {
    "400": "A value is missing, wrong or beyond a limit; the text says what to change.",
    "401": "No API key, or one that is not valid.",
    "403": "The key's scope does not allow this.",
    "404": "There is no such thing in the key's project.",
    "409": "The state of what is named does not allow this; the text says why.",
    "413": "The body is larger than the server takes.",
    "429": "Too many requests or waiting events of this caller; see Retry-After.",
    "503": "The server is busy or its ledger out of reach; see Retry-After.",
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
        schemas = made["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas |= {**COMPONENTS, "Error": ERROR_SCHEMA}
        for path, operations in made["paths"].items():
            for method, operation in operations.items():
                operation["responses"].pop("422", None)
                _answer(f"{method.upper()} {path}", operation["responses"])
                if path not in OPEN:
                    operation["responses"] |= _errors(path, method)
        app.openapi_schema = made
    return app.openapi_schema


def _answer(operation: str, responses: dict[str, Any]) -> None:
    """Replace FastAPI's schema of the response, which is only an object, with ours."""
    [success] = [responses[status] for status in responses if status.startswith("2")]
    if media_type := TEXTS.get(operation):
        success["content"] = {media_type: {"schema": {"type": "string"}}}
    else:
        success["content"]["application/json"]["schema"] = ANSWERS[operation]
    if operation in LATER:
        content = {"application/json": {"schema": ref("NotReady")}}
        responses["202"] = {"description": "Not ready yet.", "content": content}


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
        "content": {"application/json": {"schema": ref("Error")}},
    }
    seconds = {"schema": {"type": "integer"}, "description": "Seconds to wait."}
    return answer | ({"headers": {"Retry-After": seconds}} if status in RETRIED else {})
