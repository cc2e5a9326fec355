"""Text in a model's answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator


def _clean(text: str) -> str:
    """Without what PostgreSQL refuses (NUL, half an emoji), and never empty."""
    cleaned = text.replace("\x00", "").encode(errors="ignore").decode().strip()
    if not cleaned:
        raise ValueError("must not be empty")
    return cleaned


Text = Annotated[str, AfterValidator(_clean)]
