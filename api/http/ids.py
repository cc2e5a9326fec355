"""Ids in paths and query strings."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from pipeline.domain.errors import InvalidInput
from pipeline.domain.filters import ENTITY_IDS


def uuid(name: str, value: object) -> UUID:
    """Parse the id that a request gives as `name`. Errors: InvalidInput."""
    try:
        return UUID(str(value))
    except ValueError:
        raise InvalidInput(f"{name} should be a valid UUID") from None


def _form_ids(
    user_id: str | None = None,
    agent_id: str | None = None,
    app_id: str | None = None,
    run_id: str | None = None,
) -> dict[str, str]:
    values = (user_id, agent_id, app_id, run_id)
    return {name: value for name, value in zip(ENTITY_IDS, values, strict=True) if value}


def _entity_ids(http: Request, ids: FormIds) -> dict[str, str]:
    """The ids. Errors: InvalidInput for a blank one, because without it more would be read."""
    for name in ENTITY_IDS:
        if not http.query_params.get(name, name).strip():
            raise InvalidInput(f"{name} is blank; give a value or leave it out.")
    return ids


def _some_entity_ids(ids: EntityIds) -> dict[str, str]:
    if not ids:
        raise InvalidInput(f"Give at least one of {', '.join(ENTITY_IDS)}.")
    return ids


# The entity ids of a form, which sends its empty fields too; without those that are empty.
FormIds = Annotated[dict[str, str], Depends(_form_ids)]
# The entity ids of a query string, without those that are left out.
EntityIds = Annotated[dict[str, str], Depends(_entity_ids)]
SomeEntityIds = Annotated[dict[str, str], Depends(_some_entity_ids)]
