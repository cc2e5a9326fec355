"""Responses about users, agents, apps and runs."""

from __future__ import annotations

import hashlib
from typing import Any

from pipeline.domain.tenants import ProjectId
from pipeline.tenants.owners import Owner
from pipeline.tenants.projects import Project


def owner(found: Owner, project: Project) -> dict[str, Any]:
    """`name` is the id, for clients delete by it; what somebody is called is `display_name`."""
    return {
        "id": found.id,
        "name": found.id,
        "display_name": found.name,
        "type": found.kind,
        "owner": str(project.id),
        "metadata": found.metadata or None,
        "total_memories": found.memories,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def registered(found: Owner, project: Project) -> dict[str, Any]:
    """An entity as registering it answers: its id is a number there, its name what it is called."""
    return owner(found, project) | {
        "id": number(project.id, found.kind, found.id),
        f"{found.kind}_id": found.id,
        "name": found.name,
        "metadata": found.metadata,
        "project": number(project.id, "project", str(project.id)),
        "is_deleted": False,
        "graph_entities": None,
    }


def number(project_id: ProjectId, kind: str, owner_id: str) -> int:
    """A number that stands for an entity: 48 bits of a hash, exact in every JSON reader."""
    key = f"{project_id}:{kind}:{owner_id}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=6).digest(), "big")


def parameter(name: str) -> dict[str, Any]:
    """A filter as a form shows it."""
    label = name.removesuffix("_id").capitalize() + " ID"
    return {"name": name, "label": label, "type": "text", "placeholder": label, "options": []}
