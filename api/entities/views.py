"""Responses about users, agents, apps and runs."""

from __future__ import annotations

import hashlib
from typing import Any

from pipeline.domain.tenants import ProjectId
from pipeline.tenants.owners import Owner
from pipeline.tenants.projects import Project


def owner(row: Owner, project: Project) -> dict[str, Any]:
    """A user, agent, app or run. `name` is the id, because clients delete by it."""
    return {
        "id": row.id,
        "name": row.id,
        "display_name": row.name,
        "type": row.kind,
        "owner": str(project.id),
        "metadata": row.metadata or None,
        "total_memories": row.memories,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def registered(row: Owner, project: Project) -> dict[str, Any]:
    """The response to a registration: `id` is a number, `name` the display name."""
    return owner(row, project) | {
        "id": number(project.id, row.kind, row.id),
        f"{row.kind}_id": row.id,
        "name": row.name,
        "metadata": row.metadata,
        "project": number(project.id, "project", str(project.id)),
        "is_deleted": False,
        "graph_entities": None,
    }


def number(project_id: ProjectId, kind: str, owner_id: str) -> int:
    """The number of an entity: 48 bits of a hash, which every JSON reader represents exactly."""
    key = f"{project_id}:{kind}:{owner_id}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=6).digest(), "big")


def parameter(name: str) -> dict[str, Any]:
    """Description of a filter, for forms."""
    label = name.removesuffix("_id").capitalize() + " ID"
    return {"name": name, "label": label, "type": "text", "placeholder": label, "options": []}
