"""What all bodies have in common: unknown keys are ignored, what cannot be stored is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

LONGEST_ID = 512


def as_id(value: object) -> object:
    """Ids may be numbers in JSON; blank ones are as good as none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and not value.strip():
        return None
    return value


EntityId = Annotated[Annotated[str, Field(max_length=LONGEST_ID)] | None, BeforeValidator(as_id)]


class Request(BaseModel):
    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def storable(cls, value: Any) -> Any:
        """PostgreSQL's text holds no NUL and no half of a surrogate pair: say so, store nothing."""
        if fault := _unstorable(value):
            raise ValueError(f"the body holds {fault}; remove it")
        return value


def _unstorable(value: object) -> str | None:
    match value:
        case str():
            if "\x00" in value:
                return "a NUL character (\\u0000)"
            return None if value.isascii() or _is_unicode(value) else "text that is not Unicode"
        case dict():
            parts: Iterable[object] = (part for pair in value.items() for part in pair)
        case list():
            parts = value
        case _:
            return None
    return next((fault for part in parts if (fault := _unstorable(part))), None)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
