"""The statements of the lane state machine, one file each: `statement("claim")` is claim.sql."""

from __future__ import annotations

from functools import cache
from importlib import resources

from sqlalchemy import TextClause, text


@cache
def statement(name: str, table: str = "") -> TextClause:
    """`table`: takes the place of {table} in those that do the same to more than one."""
    written = resources.files(__package__).joinpath(f"{name}.sql").read_text("utf-8")
    return text(written.replace("{table}", table))
