"""Unknown names in a request: refused, or ignored and named in a response header.

dry_run, as_of       refused by routes without them: ignored, they would write or read the present
on our own routes    refused: a misspelt option would be ignored silently
on the Mem0 routes   ignored and named in a header: Mem0's clients send additional keys
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from fastapi import Request
from fastapi.dependencies.models import Dependant

from pipeline.domain.errors import InvalidInput

HEADER = "X-Memlane-Ignored"
NOT_BUILT = {
    "dry_run": "There is no dry run: the request would be carried out. Leave dry_run out.",
    "as_of": "This has no earlier time: it would read or change the present. Leave as_of out.",
}
# Names that other code reads, or that clients send with every request.
EVERYWHERE = frozenset({"org_id", "project_id", "source"})
MOST_NAMED = 20
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")

# The ignored keys of the current request; None outside of a request.
_ignored: ContextVar[list[str] | None] = ContextVar("ignored", default=None)


async def refuse_not_built(request: Request) -> None:
    """Refuse options of the query string that the route does not have. Errors: InvalidInput."""
    names = NOT_BUILT.keys() & request.query_params.keys()
    for name in names - _declared(request.scope["route"].dependant) if names else ():
        if request.query_params[name].strip().lower() not in ("", "0", "false"):
            raise InvalidInput(NOT_BUILT[name])


def _declared(route: Dependant) -> set[str]:
    """Names in the query string that a route reads, itself or by its dependencies."""
    names = {parameter.alias for parameter in route.query_params}
    return names.union(*(_declared(needed) for needed in route.dependencies))


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
    if strict:
        names = ", ".join(sorted(known))
        raise ValueError(f"{shown(unknown)} is not known here; use {names}")
    if (keys := _ignored.get()) is not None:
        keys += unknown


def shown(names: Iterable[str]) -> str:
    """Names of keys as a header can hold them."""
    plain = sorted({name for name in names if _PLAIN.fullmatch(name)})
    return ", ".join(plain[:MOST_NAMED]) or "a key"
