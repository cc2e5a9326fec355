"""Unknown and repeated names in a body or a query string: refused, or ignored and named in a
response header.

dry_run, as_of       refused by routes without them: ignored, they would write or read the present
userId, user         refused where user_id is meant and missing: ignored, they would widen a list
on our own routes    refused in a body: a misspelt option would be ignored silently
user_id=a&user_id=b  refused where a parameter takes one value: one of them would be ignored
user_id=a            refused by lists without this filter: ignored, it would read all users;
                     and by routes of one row that do not check its owner
on the Mem0 routes   ignored and named in a header: Mem0's clients send additional keys
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, get_args, get_origin

from fastapi import Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant

from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import ENTITY_IDS

HEADER = "X-Memlane-Ignored"
NOT_BUILT = {
    "dry_run": "There is no dry run: the request would be carried out. Leave dry_run out.",
    "as_of": "This has no earlier time: it would read or change the present. Leave as_of out.",
}
# Names that other code reads, or that clients send with every request.
EVERYWHERE = frozenset({"org_id", "project_id", "source"})
ENTITY_IDS_SET = frozenset(ENTITY_IDS)
# Query parameters that select rows: ignored, they would widen the result.
NARROWING = ENTITY_IDS_SET | {
    *("filters", "metadata", "categories", "keywords", "start_date", "end_date"),
    *("status", "event_type", "category"),
}
# Deletes that read all names of their query string as conditions, and refuse those that are none.
READ_WHOLE = frozenset({("DELETE", "/v1/memories/"), ("DELETE", "/memories/")})
# The tag of routes that read no rows, such as health checks.
SYSTEM = "system"
# Refusals of an entity id that a route does not read.
LIST_WITHOUT_FILTER = (
    "This list has no filter {} in its query string, so it would also return the rows of others."
    " Leave it out."
)
ROW_OF_ANY_OWNER = (
    "This route does not compare {} with the owner of the row that its path names. Leave it out."
)
MOST_NAMED = 20
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")

# The ignored keys of the current request; None outside of a request.
_ignored: ContextVar[list[str] | None] = ContextVar("ignored", default=None)


def check_query(request: Request, route: Dependant) -> None:
    """Check the names in the query string against those that the route reads.

    Errors: InvalidInput for an option that the route does not have, for a misspelt filter, for an
    entity id that the route does not check, and for two values of a parameter that takes one.
    """
    if not request.query_params:
        return
    parameters = list(declared(route))
    known = {parameter.alias for parameter in parameters}
    for name in (NOT_BUILT.keys() & request.query_params.keys()) - known:
        if request.query_params[name].strip().lower() not in ("", "0", "false"):
            raise InvalidInput(NOT_BUILT[name])
    if (request.method, getattr(request.scope.get("route"), "path", "")) in READ_WHOLE:
        return
    _refuse_two_values(request, {p.alias for p in parameters if not _takes_several(p)})
    unknown = [
        name
        for name in request.query_params.keys() - NOT_BUILT.keys() - EVERYWHERE - known
        if not name.startswith("metadata[")
    ]
    if misspelt := _misspelt(unknown, known & NARROWING, request.query_params):
        raise InvalidInput(f"You wrote {misspelt}?")
    if refusal := _refusal_of_ids(request, known):
        _refuse_ids(unknown, known & request.query_params.keys(), refusal)
    if (keys := _ignored.get()) is not None:
        keys += unknown


def _refusal_of_ids(request: Request, known: Collection[str]) -> str | None:
    """Refusal of entity ids that a route does not read; None if it reads no stored rows.

    A route reads many rows if its path names none of them, or if it has pages.
    """
    route: Any = request.scope.get("route")
    path = getattr(route, "path", "{")
    if SYSTEM in getattr(route, "tags", ()):
        return None
    if (request.method == "GET" and "{" not in path) or "page" in known:
        return LIST_WITHOUT_FILTER
    return ROW_OF_ANY_OWNER if "{" in path else None


def _refuse_ids(unknown: Iterable[str], given: Collection[str], refusal: str) -> None:
    """Refuse entity ids, also misspelt ones, that a route does not take. Errors: InvalidInput."""
    for name in sorted(unknown):
        if name in ENTITY_IDS_SET or _misspelt([name], ENTITY_IDS_SET, given):
            raise InvalidInput(refusal.format(shown([name])))


def declared(route: Dependant) -> Iterator[ModelField]:
    """The query parameters that a route reads, itself or by its dependencies."""
    yield from route.query_params
    for needed in route.dependencies:
        yield from declared(needed)


def _takes_several(parameter: ModelField) -> bool:
    """Tell if a parameter is a list, whose values repeat its name."""
    annotation = parameter.field_info.annotation
    return list in {get_origin(part) for part in (annotation, *get_args(annotation))}


def _refuse_two_values(request: Request, single: Collection[str]) -> None:
    """Refuse different values of a parameter that takes one. Errors: InvalidInput."""
    values: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if values.setdefault(name, value) != value and name in single:
            raise InvalidInput(f"{name} has two values in the query string; give one.")


def _misspelt(unknown: Iterable[str], known: Iterable[str], given: Collection[str]) -> str | None:
    """The first misspelt name and the known one that it stands for, in words; None without one.

    Names are compared without case, `_` and `-`; those of ids also without `id`, and in the plural.
    A known name that is given too is not meant.
    """
    meant: dict[str, str] = {}
    for name in sorted(set(known).difference(given)):
        plain = _plainly(name)
        meant |= {plain.removesuffix("id"): name, plain: name}
    for name in unknown:
        plain = _plainly(name)
        if right := meant.get(plain) or meant.get(plain.removesuffix("s")):
            return f"{shown([name])}; did you mean {right}"
    return None


def _plainly(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def noted() -> list[str]:
    """Names that this request has and that are ignored, as `shown` would show them."""
    return sorted({name for name in _ignored.get() or () if _PLAIN.fullmatch(name)})[:MOST_NAMED]


def note(name: str) -> None:
    """Add a known name that has no effect on this route to the ignored ones."""
    if (keys := _ignored.get()) is not None:
        keys.append(name)


def begin() -> list[str]:
    """Start to collect the ignored keys of a request, and return their list."""
    keys: list[str] = []
    _ignored.set(keys)
    return keys


def refuse_or_note(body: Mapping[str, Any], known: Iterable[str], *, strict: bool) -> None:
    """Refuse unsupported options and, if `strict`, unknown keys; note other unknown keys.

    Errors: ValueError that names the key.
    """
    known = set(known)
    for name in (NOT_BUILT.keys() & body.keys()) - known:
        if body[name] not in (None, False, ""):
            raise ValueError(NOT_BUILT[name])
    unknown = [str(name) for name in body.keys() - NOT_BUILT.keys() - EVERYWHERE - known]
    if not unknown:
        return
    if misspelt := _misspelt(unknown, known & ENTITY_IDS_SET, body):
        raise ValueError(f"you wrote {misspelt}?")
    if strict:
        names = ", ".join(sorted(known))
        raise ValueError(f"{shown(unknown)} is not known here; use {names}")
    if (keys := _ignored.get()) is not None:
        keys += unknown


def shown(names: Iterable[str]) -> str:
    """Names of keys as a header can hold them."""
    plain = sorted({name for name in names if _PLAIN.fullmatch(name)})
    return ", ".join(plain[:MOST_NAMED]) or "a key"
