"""Rows of the ledger as values, and values as the rows of a parameter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import orjson

RowT = TypeVar("RowT")
ValueT = TypeVar("ValueT")


def value_of(kind: type[ValueT], row: Any, /, **others: Any) -> ValueT:
    """A dataclass whose fields are the columns of a row with the same names.

    `others`: the fields that are computed. Other columns of the row are left out. Two columns at
    least are read. Errors: AttributeError if the row lacks a column.
    """
    names, values = _reader(kind, tuple(others))  # type: ignore[arg-type]
    return kind(**dict(zip(names, values(row), strict=True)), **others)


@cache  # a search builds hundreds of values
def _reader(
    kind: type[Any], others: tuple[str, ...]
) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """The fields of a dataclass without the others, and the function that reads them."""
    names = tuple(field.name for field in fields(kind) if field.name not in others)
    return names, attrgetter(*names)


def columns_of(value: object, *names: str) -> dict[str, Any]:
    """The attributes of a value with these names, as columns of a row. Errors: AttributeError."""
    return {name: getattr(value, name) for name in names}


def grouped(rows: Iterable[RowT], column: str) -> defaultdict[Any, list[RowT]]:
    """The rows by the value of a column, in their order. A value without rows has an empty list."""
    groups = defaultdict[Any, list[RowT]](list)
    for row in rows:
        groups[getattr(row, column)].append(row)
    return groups


def json_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """A parameter of a statement that reads its rows with jsonb_to_recordset."""
    # default=str: the driver's UUIDs are a class of their own.
    return orjson.dumps(rows, default=str).decode()
