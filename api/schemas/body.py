"""What all bodies have in common: unknown keys are ignored."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

LONGEST_ID = 512


def as_id(value: object) -> object:
    """Ids may be numbers in JSON; blank ones are as good as none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return none_if_blank(value)


def none_if_blank(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


EntityId = Annotated[Annotated[str, Field(max_length=LONGEST_ID)] | None, BeforeValidator(as_id)]


class Request(BaseModel):
    model_config = ConfigDict(extra="ignore")
