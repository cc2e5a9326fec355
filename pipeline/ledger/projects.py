"""Projects and their API keys. A key is shown once; the ledger keeps only its SHA-256."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from uuid import UUID, uuid4

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.ledger.schema import api_keys, projects


@dataclass(frozen=True, slots=True)
class Project:
    id: UUID
    organization_id: UUID
    name: str


class Projects:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def of_key(self, key: str) -> Project | None:
        """The project a key opens, or None for a key that was never made or is revoked."""
        query = (
            select(projects.c.id, projects.c.organization_id, projects.c.name)
            .join(api_keys)
            .where(api_keys.c.digest == digest(key), api_keys.c.revoked_at.is_(None))
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        return Project(row.id, row.organization_id, row.name) if row else None

    async def any(self) -> bool:
        async with self._engine.connect() as connection:
            return await connection.scalar(select(projects.c.id).limit(1)) is not None

    async def create(self, name: str) -> tuple[Project, str]:
        """A new project and its first key, in clear for the only time."""
        project = Project(uuid4(), uuid4(), name)
        key = f"ml_{secrets.token_urlsafe(32)}"
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(projects).values(
                    id=project.id, organization_id=project.organization_id, name=name
                )
            )
            await connection.execute(
                insert(api_keys).values(digest=digest(key), project_id=project.id, prefix=key[:7])
            )
        return project, key


def digest(key: str) -> bytes:
    # The key is 256 random bits: a slow hash would protect nothing and cost every request.
    return hashlib.sha256(key.encode()).digest()
