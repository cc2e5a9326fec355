"""The loader of SQL files: `loader(__name__)` of a folder reads the files in it by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources

from sqlalchemy import TextClause, text


def loader(package: str) -> Callable[..., TextClause]:
    """A function `statement(name, table="")` that reads `name`.sql of `package`, once.

    `table` takes the place of {table} in a statement that does the same to more than one.
    """

    @cache
    def statement(name: str, table: str = "") -> TextClause:
        written = resources.files(package).joinpath(f"{name}.sql").read_text("utf-8")
        return text(written.replace("{table}", table))

    return statement
