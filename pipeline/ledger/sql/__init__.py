"""The statements of the lane state machine, one file each: `statement("claim")` is claim.sql."""

from __future__ import annotations

from functools import cache
from importlib import resources

from sqlalchemy import TextClause, text


@cache
def statement(name: str) -> TextClause:
    return text(resources.files(__package__).joinpath(f"{name}.sql").read_text("utf-8"))
