"""The text fields of a model's answer, cleaned of what PostgreSQL rejects."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from pipeline.domain.limits import LONGEST_REASON, LONGEST_TEXT

# Strings that some models write in the place of null.
NO_WORDS = ("", "null", "none", "n/a")


def _clean(text: str) -> str:
    """The text without NUL and unpaired surrogates, which PostgreSQL rejects.

    Errors: ValueError if nothing is left.
    """
    cleaned = text.replace("\x00", "").encode(errors="ignore").decode().strip()
    if not cleaned:
        raise ValueError("must not be empty")
    return cleaned


def _short(text: str) -> str:
    """The text. Errors: ValueError if it is longer than a memory that a client may write.

    Every later question that shows such a memory would be too long for the model.
    """
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"must have at most {LONGEST_TEXT} characters")
    return text


def _no_blank(value: object) -> object:
    """The value; None for one of NO_WORDS."""
    return None if isinstance(value, str) and value.strip().lower() in NO_WORDS else value


def _reason(value: object) -> str | None:
    """The beginning of a reason, which is only shown; None for anything but words."""
    try:
        return _clean(value[:LONGEST_REASON]) if isinstance(value, str) else None
    except ValueError:
        return None


Text = Annotated[str, AfterValidator(_clean)]
FactText = Annotated[Text, AfterValidator(_short)]
OptionalText = Annotated[FactText | None, BeforeValidator(_no_blank)]
Reason = Annotated[str | None, BeforeValidator(_reason)]
Number = Annotated[int | None, BeforeValidator(_no_blank)]
