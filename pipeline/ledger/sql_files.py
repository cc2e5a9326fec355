"""Loader of SQL files: `loader(__name__)` in a package reads its .sql files by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources

from sqlalchemy import TextClause, text


def loader(package: str) -> Callable[..., TextClause]:
    """Return a function `statement(name, table="")` that reads `name`.sql of `package`, once.

    `table` replaces {table} in a statement that is used for several tables.
    """

    @cache
    def statement(name: str, table: str = "") -> TextClause:
        written = resources.files(package).joinpath(f"{name}.sql").read_text("utf-8")
        return text(written.replace("{table}", table))

    return statement
