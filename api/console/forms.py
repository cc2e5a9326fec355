"""Fields of forms: URL-encoded bodies, as browsers send them without scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl, unquote_plus

from fastapi import Depends, HTTPException, Request
from pydantic import BaseModel, ValidationError

from pipeline.cpu_thread import beside_loop
from pipeline.domain.errors import InvalidInput

MOST_FIELDS = 2_000
# Largest form without a valid key, session or token: those of the sign-in have a key.
LARGEST_OPEN_FORM_BYTES = 100_000
# Size up to which a form is parsed on the event loop.
INLINE_BYTES = 100_000
LONGEST_SECRET = 1_000
KNOWN = "form_of_known_visitor"
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
    """The fields of the request's body. A large one is parsed beside the loop.

    Errors: InvalidInput; HTTPException 413 for a large form of a visitor who is not known yet.
    """
    body = await request.body()
    if len(body) > LARGEST_OPEN_FORM_BYTES and not hasattr(request.state, KNOWN):
        raise HTTPException(
            413, f"This form has more than {LARGEST_OPEN_FORM_BYTES:,} bytes. Sign in first."
        )
    return await beside_loop(lambda: _parsed(body), inline=len(body) <= INLINE_BYTES)


def know_visitor(request: Request) -> None:
    """Note that the request's key or token is valid, so that its form may be large."""
    setattr(request.state, KNOWN, True)


async def first_value(request: Request, name: str) -> str:
    """The first field of this name, read without parsing the form; empty if it is missing."""
    body = await request.body()
    match = re.search(rb"(?:^|&)%s=([^&]{0,%d})(?:&|$)" % (name.encode(), LONGEST_SECRET), body)
    return unquote_plus(match[1].decode("latin-1")).strip() if match else ""


async def first_text(request: Request, name: str) -> str:
    """The first field of this name of a form of any visitor; empty if the form cannot be read."""
    try:
        return (await fields_of(request)).text(name)
    except (HTTPException, InvalidInput):
        return ""


def _parsed(body: bytes) -> Fields:
    """The fields of a form. Errors: InvalidInput."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
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
