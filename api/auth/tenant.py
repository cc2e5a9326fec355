"""The organizations and projects that a request names. Its tenant still comes from its key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import Request

from pipeline.tenants.api_keys import Grant


@dataclass(frozen=True, slots=True)
class Named:
    """Ids in path, query or body, as the client wrote them."""

    organizations: frozenset[str]
    projects: frozenset[str]

    @classmethod
    async def by(cls, request: Request) -> Named:
        """Read the ids from path, query and body of a request."""
        given = [
            *request.path_params.items(),
            *request.query_params.multi_items(),
            *(await _body(request)).items(),
        ]
        return cls(frozenset(_ids(given, "org_id")), frozenset(_ids(given, "project_id")))

    def others(self, grant: Grant) -> bool:
        """True if any of them is not the key's own organization or project."""
        own = grant.project
        return not (
            self.organizations <= {str(own.organization_id)} and self.projects <= {str(own.id)}
        )


def _ids(given: list[tuple[str, Any]], name: str) -> Iterator[str]:
    return (str(value).lower() for key, value in given if key == name and value)


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object in the body, parsed only if it may name a tenant: parsing costs time."""
    if request.method == "GET":
        return {}
    raw = await request.body()
    if b'"project_id"' not in raw and b'"org_id"' not in raw:
        return {}
    try:
        sent = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    return sent if isinstance(sent, dict) else {}
