"""Shared responses: the JSON types that several features send.

The responses of a feature are the TypedDicts in its `responses.py`, such as api/adds/responses.py.
Their names end with `Json`; the OpenAPI description leaves the ending out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import (
    Annotated,
    Any,
    Generic,
    NotRequired,
    Required,
    TypeVar,
    cast,
    get_args,
    get_origin,
)
from uuid import UUID

from pydantic import GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema
from typing_extensions import TypedDict, get_type_hints

from pipeline.domain.events import Status
from pipeline.domain.scope import Scope

Row = TypeVar("Row")
JsonT = TypeVar("JsonT", bound=Mapping[str, Any])


def words(*values: str) -> WithJsonSchema:
    """The JSON schema of a string that is one of these words."""
    return WithJsonSchema({"type": "string", "enum": list(values)})


Id = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]
# Clients know four statuses: see api.events.responses.shown.
EventStatus = Annotated[Status, words("PENDING", "RUNNING", "SUCCEEDED", "FAILED")]


# Time of a write. An object that is not stored yet has none, and is in no response.
StoredTime = Annotated[datetime | None, WithJsonSchema({"type": "string", "format": "date-time"})]


class SelectedFields:
    """JSON schema of a type whose `fields` can be selected: only the id is always there."""

    def __init__(self, name: str) -> None:
        """Set the name of the component."""
        self._name = name
        self._type: Any = None

    def __get_pydantic_core_schema__(self, whole: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the same fields, all optional but the id."""
        if self._type is None:
            fields = {**get_type_hints(whole, include_extras=True), "id": Required[Id]}
            make: Any = TypedDict
            self._type = make(self._name, fields, total=False)
            self._type.__doc__ = whole.__doc__
        return handler.generate_schema(self._type)


def json_of(kind: type[JsonT], row: object, /, **others: Any) -> JsonT:
    """A response of this type, with the attributes of a row under the same names.

    `others`: the keys that are computed, and those that not all responses have. Ids become strings.
    Errors: AttributeError if the row lacks an attribute.
    """
    names, ids = _keys(kind)
    answer = {name: others[name] if name in others else getattr(row, name) for name in names}
    answer.update(others)
    for name in ids:
        if isinstance(answer[name], UUID):
            answer[name] = str(answer[name])
    return cast("JsonT", answer)


@cache
def _keys(kind: type[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys of each response of this type in their order, and those of them with an id."""
    hints = get_type_hints(kind, include_extras=True)
    optional: object = NotRequired
    required = {name: hint for name, hint in hints.items() if get_origin(hint) is not optional}
    ids = tuple(name for name, hint in required.items() if Id in (hint, *get_args(hint)))
    return tuple(required), ids


class DoneJson(TypedDict):
    """A sentence that says what was done."""

    message: str


class StartedJson(TypedDict):
    """An event that was started by a request."""

    message: str
    event_id: Id


class ScopeIdsJson(TypedDict):
    """The four ids of a scope."""

    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None


def scope_ids(scope: Scope) -> ScopeIdsJson:
    """The four ids of a scope."""
    return {
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "app_id": scope.app_id,
        "run_id": scope.run_id,
    }


class PageKeysJson(TypedDict):
    """The keys of a page beside its rows.

    `truncated`: the page ended early, because its rows are large.
    """

    count: int
    next: str | None
    previous: str | None
    truncated: NotRequired[bool]


class PageJson(PageKeysJson, Generic[Row]):
    """A page of rows, in the envelope of the Mem0 Platform."""

    results: list[Row]


class ScopedPageJson(PageJson[Row], Generic[Row]):
    """A page of rows of scopes.

    `bounded_parts`: `count` if there are at least that many rows, `results` if rows may be missing,
    because not all scopes of the given ids are read.
    """

    bounded_parts: NotRequired[Sequence[Annotated[str, words("count", "results")]]]


class ResultsJson(TypedDict, Generic[Row]):
    """All rows of a list that has no pages."""

    results: list[Row]
