"""New ids for the lines of an import, for a project beside the one that they come from."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID, uuid5

from pydantic import BaseModel

from pipeline.domain.tenants import ProjectId

R = TypeVar("R", bound=BaseModel)
# An API key is of the server that wrote the file.
KEPT = frozenset({"key_id", "replaced_by"})


def with_new_ids(record: R, project_id: ProjectId) -> R:
    """The line with each id replaced by one derived from it and the project, so that the same line
    always gets the same ids.
    """
    changed = {
        name: _new(getattr(record, name), project_id)
        for name in type(record).model_fields
        if name not in KEPT
    }
    return record.model_copy(update=changed)


def _new(value: Any, project_id: ProjectId) -> Any:
    match value:
        case UUID():
            return uuid5(project_id, str(value))
        case BaseModel():
            return with_new_ids(value, project_id)
        case list():
            return [_new(item, project_id) for item in value]
        case _:
            return value
