"""An organization with a key, as its administrator uses the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from pipeline.stores import Ledger
from tests.support.api_service import (
    Service,
    error_of,
)

ORGS, KEYS = "/api/v1/orgs/organizations/", "/v1/keys/"
NOOR = "noor@example.org"


@dataclass
class Tenant:
    """A client that administers the organization of the service's project."""

    service: Service
    client: httpx.AsyncClient

    @property
    def projects(self) -> str:
        return f"{ORGS}{self.service.engine.project.organization_id}/projects/"

    @property
    def project(self) -> str:
        return f"{self.projects}{self.service.engine.project.id}/"

    @property
    def ledger(self) -> Ledger:
        return self.service.engine.ledger

    async def key(self, **body: object) -> dict[str, Any]:
        answer = await self.client.post(KEYS, json={"name": "a key"} | body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def ask(self, key: dict[str, Any], method: str, path: str, **body: object) -> int:
        """Status of a request with this key."""
        headers = {"Authorization": f"Token {key['key']}"}
        answer = await self.client.request(method, path, json=body or None, headers=headers)
        return answer.status_code


def same(*answers: httpx.Response) -> set[tuple[int, str]]:
    return {(answer.status_code, error_of(answer)) for answer in answers}
