"""The text field of a model's answer, cleaned of what PostgreSQL rejects."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator


def _clean(text: str) -> str:
    """The text without NUL and unpaired surrogates, which PostgreSQL rejects.

    Errors: ValueError if nothing is left.
    """
    cleaned = text.replace("\x00", "").encode(errors="ignore").decode().strip()
    if not cleaned:
        raise ValueError("must not be empty")
    return cleaned


Text = Annotated[str, AfterValidator(_clean)]
