"""docs/reference/operations.md."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from api.app import create_app
from deploy.docs.tables import GENERATED, table
from pipeline.settings import Settings

INTRO = """# API operations

Every operation of the REST API. A running server shows the request and response schemas at `/docs`
and serves them as `/openapi.json`. [API compatibility](api-compat.md) compares each operation with
the Mem0 Platform. `/livez`, `/healthz`, `/readyz` and `/metrics` need no API key; every other
request needs `Authorization: Token <key>`.
"""


def page() -> str:
    """Operations by tag: method, path and the first paragraph of the description."""
    paths = create_app(Settings.model_construct()).openapi()["paths"]
    rows: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for path, operations in paths.items():
        for method, operation in operations.items():
            rows[operation["tags"][0]].append((method.upper(), f"`{path}`", _text(operation)))
    parts = [
        f"## {tag.capitalize()}\n\n{table(('method', 'path', 'what it does'), operations)}"
        for tag, operations in rows.items()
    ]
    return "\n".join((GENERATED + INTRO, *parts))


def _text(operation: dict[str, Any]) -> str:
    """The first paragraph of the description, else the summary."""
    text = operation.get("description") or operation["summary"]
    return " ".join(text.split("\n\n")[0].split())
