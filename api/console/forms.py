"""Fields of forms: URL-encoded bodies, as browsers send them without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError

from pipeline.domain.errors import InvalidInput

MOST_FIELDS = 2_000
ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a form; a field can occur several times."""

    values: Mapping[str, Sequence[str]]

    def text(self, name: str) -> str:
        """The field without blanks around it; empty if it is missing."""
        return self.values.get(name, [""])[0].strip()

    def optional(self, name: str) -> str | None:
        """The field; None if it is missing or blank."""
        return self.text(name) or None

    def all(self, name: str) -> list[str]:
        """All values of the field that are not blank."""
        return [value.strip() for value in self.values.get(name, ()) if value.strip()]

    def require(self, name: str) -> None:
        """Check that a box is ticked that confirms the form. Errors: InvalidInput."""
        if not self.flag(name):
            raise InvalidInput("Tick the box that confirms this; nothing was changed.")

    def flag(self, name: str) -> bool:
        """True if the box of this name is ticked."""
        return bool(self.text(name))


async def fields_of(request: Request) -> Fields:
    """The fields of the request's body. Errors: InvalidInput."""
    try:
        pairs = parse_qsl(
            (await request.body()).decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise InvalidInput("This form cannot be read; reload the page and send it again.") from None
    if any("\0" in name or "\0" in value for name, value in pairs):
        raise InvalidInput("A field holds a NUL character; remove it.")
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return Fields(values)


Form = Annotated[Fields, Depends(fields_of)]


def checked(model: type[ModelT], **values: object) -> ModelT:
    """A request of the API, made of a form's values that are not None. Errors: InvalidInput."""
    try:
        return model(**{name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        faults = (
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors()[:5]
        )
        raise InvalidInput("; ".join(fault.removeprefix(": ") for fault in faults)) from None
