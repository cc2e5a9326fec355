"""Loader of SQL files: `loader(__name__)` in a package reads its .sql files by name.

`{name.sql}` in a file stands for the text of another file: a part that several statements have,
such as a common table expression or a condition. It is in the same package, or in one of `parts`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import resources

from sqlalchemy import TextClause, text

PART = re.compile(r"\{(\w+)\.sql\}")


def loader(package: str, *parts: str) -> Callable[..., TextClause]:
    """Return a function `statement(name, **names)` that reads `name`.sql of `package`, once.

    `parts`: packages with further parts. `names` replace their keys in braces in a statement that
    is used for several tables: `table="turns"` replaces {table}.
    """

    def read(name: str) -> str:
        files = [resources.files(home).joinpath(f"{name}.sql") for home in (package, *parts)]
        file = next((file for file in files if file.is_file()), files[0])
        written = file.read_text("utf-8").strip()
        return PART.sub(lambda part: read(part[1]), written)

    @cache
    def statement(name: str, **names: str) -> TextClause:
        words = read(name)
        for key, value in names.items():
            words = words.replace(f"{{{key}}}", value)
        return text(words)

    return statement
