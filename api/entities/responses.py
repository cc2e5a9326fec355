"""Responses about users, agents, apps and runs."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Any, NotRequired, cast

from typing_extensions import TypedDict

from api.http.shared_responses import Id, PageKeysJson, words
from pipeline.domain.tenants import ProjectId
from pipeline.tenants.owners import KINDS, Owner
from pipeline.tenants.projects import Project


class EntityKeysJson(TypedDict):
    """The keys that an entity and its registration share. `owner`: the project."""

    name: str
    display_name: str
    type: Annotated[str, words(*KINDS)]
    owner: Id
    metadata: dict[str, Any] | None
    total_memories: int
    created_at: datetime
    updated_at: datetime


class EntityJson(EntityKeysJson):
    """A user, agent, app or run. `name` is the id, because clients delete by it."""

    id: str


class EntityPageJson(PageKeysJson):
    """A page of entities, and the numbers of all by type."""

    results: list[EntityJson]
    total_users: int
    total_agents: int
    total_apps: int
    total_runs: int


class RegisteredJson(EntityKeysJson):
    """A registered entity, with one of the four ids: `id` is a number, `name` the display name."""

    id: int
    user_id: NotRequired[str]
    agent_id: NotRequired[str]
    app_id: NotRequired[str]
    run_id: NotRequired[str]
    project: int
    is_deleted: bool
    graph_entities: Any


class FilterParameterJson(TypedDict):
    """A filter, for forms."""

    name: str
    label: str
    type: str
    placeholder: str
    options: list[str]


class FilterValuesJson(TypedDict):
    """The values that filters of lists and searches accept."""

    event_type: list[str]
    categories: list[str]
    users: list[str]
    parameters: list[FilterParameterJson]


def owner(row: Owner, project: Project) -> EntityJson:
    """A user, agent, app or run."""
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


def registered(row: Owner, project: Project) -> RegisteredJson:
    """The response to a registration."""
    entity = owner(row, project) | {
        "id": number(project.id, row.kind, row.id),
        f"{row.kind}_id": row.id,
        "name": row.name,
        "metadata": row.metadata,
        "project": number(project.id, "project", str(project.id)),
        "is_deleted": False,
        "graph_entities": None,
    }
    return cast("RegisteredJson", entity)


def number(project_id: ProjectId, kind: str, owner_id: str) -> int:
    """The number of an entity: 48 bits of a hash, which every JSON reader represents exactly."""
    key = f"{project_id}:{kind}:{owner_id}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=6).digest(), "big")


def parameter(name: str) -> FilterParameterJson:
    """Description of a filter, for forms."""
    label = name.removesuffix("_id").capitalize() + " ID"
    return {"name": name, "label": label, "type": "text", "placeholder": label, "options": []}
