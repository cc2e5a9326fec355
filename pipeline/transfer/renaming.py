"""Ids of the lines of an import, in the project that they are imported into.

An id that a row of the project has stays: the same file imported twice changes nothing. Each other
id becomes one that is derived from it and the project, also where a line only refers to it. So no
line has the id of another project's row, and no answer says whether such a row exists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID, uuid5

from pydantic import BaseModel

from pipeline.domain.tenants import ProjectId

R = TypeVar("R", bound=BaseModel)
# The id of a replay, which only the reason in a history names.
UNCHANGED = frozenset({"replaced_by"})
# API keys: no other server has those of the server that wrote the file.
KEYS = frozenset({"key_id"})


@dataclass(frozen=True, slots=True)
class Renaming:
    """The ids of lines in a project. `own`: those that stay, because its rows have them."""

    project_id: ProjectId
    own: Collection[UUID] = ()

    def applied(self, record: R) -> R:
        """The line with its ids in the project."""
        changed = {name: self._field(name, value) for name, value in _fields(record)}
        return record.model_copy(update=changed)

    def _field(self, name: str, value: Any) -> Any:
        if name in KEYS:
            return value if value in self.own else None
        return self._new(value)

    def _new(self, value: Any) -> Any:
        match value:
            case UUID():
                return value if value in self.own else uuid5(self.project_id, str(value))
            case BaseModel():
                return self.applied(value)
            case list():
                return [self._new(item) for item in value]
            case _:
                return value


def ids_in(value: Any) -> Iterator[UUID]:
    """All ids in a line: its own, those of its parts, and those that it refers to."""
    match value:
        case UUID():
            yield value
        case BaseModel():
            for _, field in _fields(value):
                yield from ids_in(field)
        case list():
            for item in value:
                yield from ids_in(item)


def _fields(record: BaseModel) -> Iterator[tuple[str, Any]]:
    """The fields whose ids change."""
    for name in type(record).model_fields:
        if name not in UNCHANGED:
            yield name, getattr(record, name)
