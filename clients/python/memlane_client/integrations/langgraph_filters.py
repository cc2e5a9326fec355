"""Filters of LangGraph's stores: the exact comparison, and the conditions that the server checks.

The server compares JSON, where `true` is not 1, and has no name for a field whose name has a dot.
So it gets conditions that every matching item meets, and `meets` decides about each row it
returns. Comparisons are those of LangGraph's `InMemoryStore`. Where that one raises, because two
values have no order, an item does not match.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from memlane_client.operations import ANY
from memlane_client.storable import storable

Condition: TypeAlias = dict[str, Any]

ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = frozenset({"$eq", "$ne", *ORDERED})
# Within the server's limits for one filter. What is beyond them is only compared here.
MOST_CONDITIONS = 20
LONGEST_PATH = 256
LONGEST_OPERAND = 8_000
LARGEST_OPERAND = 2**63


def check(fields: Mapping[str, Any]) -> None:
    """Check the operators of a filter. Errors: ValueError for an unknown one."""
    for wanted in fields.values():
        _check(wanted)


def meets(value: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """True if the value of an item meets the condition for each field."""
    return all(_matches(value.get(name), wanted) for name, wanted in fields.items())


def conditions(path: str, fields: Mapping[str, Any]) -> Iterator[Condition]:
    """Conditions of the server on the object at `path` that every item that `meets` them meets."""
    return islice(_of_fields(path, fields), MOST_CONDITIONS)


def _of_fields(path: str, fields: Mapping[Any, Any]) -> Iterator[Condition]:
    for name, wanted in fields.items():
        if not _is_name(name):
            continue
        if isinstance(wanted, Mapping) and not _has_operators(wanted):
            yield from _of_fields(f"{path}.{name}", wanted)
            continue
        operators = wanted if isinstance(wanted, Mapping) else {"$eq": wanted}
        for operator_name, operand in operators.items():
            yield from _sent(f"{path}.{name}", operator_name, operand)


def _check(wanted: Any) -> None:
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            if unknown := wanted.keys() - OPERATORS:
                raise ValueError(f"unknown operator: {', '.join(sorted(map(str, unknown)))}")
            return
        check(wanted)
    elif isinstance(wanted, list | tuple):
        for part in wanted:
            _check(part)


def _matches(value: Any, wanted: Any) -> bool:
    """True if a value meets a condition: of operators, of an object's fields, or to be equal."""
    match wanted:
        case Mapping() if _has_operators(wanted):
            return all(_holds(value, name, operand) for name, operand in wanted.items())
        case Mapping():
            return isinstance(value, Mapping) and meets(value, wanted)
        case list() | tuple():
            return (
                isinstance(value, list)
                and len(value) == len(wanted)
                and all(map(_matches, value, wanted))
            )
        case _:
            return bool(value == wanted)


def _has_operators(wanted: Mapping[Any, Any]) -> bool:
    return any(str(name).startswith("$") for name in wanted)


def _is_name(name: Any) -> bool:
    """True for a name that the server finds in an object: a dot separates names there."""
    return isinstance(name, str) and name != "" and "." not in name and name == storable(name)


def _holds(value: Any, name: str, operand: Any) -> bool:
    match name:
        case "$eq":
            return bool(value == operand)
        case "$ne":
            return bool(value != operand)
        case _:
            return _in_order(value, operand, ORDERED[name])


def _in_order(value: Any, operand: Any, compare: Callable[[Any, Any], bool]) -> bool:
    """Compare two numbers, also as texts; otherwise two texts by code points."""
    numbers = _number(value), _number(operand)
    if None not in numbers:
        return compare(*numbers)
    if isinstance(value, str) and isinstance(operand, str):
        return compare(value, operand)
    return False


def _number(value: Any) -> int | float | None:
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _sent(path: str, name: str, operand: Any) -> Iterator[Condition]:
    """The server's condition for an operator; none if it could leave out an item that matches."""
    if len(path) > LONGEST_PATH:
        return
    if name in ORDERED:
        yield from _sent_order(path, name.removeprefix("$"), operand)
    else:
        yield from _sent_equality(path, name.removeprefix("$"), operand)


def _sent_equality(path: str, name: str, operand: Any) -> Iterator[Condition]:
    match operand:
        case None:  # LangGraph reads a missing field as null
            yield {path: {"ne" if name == "eq" else "eq": ANY}}
        case bool() | int() | float() if name == "eq" and operand in (0, 1):
            yield {path: {"in": [int(operand), bool(operand)]}}  # equal in Python
        case str() | int() | float() if _is_sendable(operand):
            yield {path: {name: operand}}


def _sent_order(path: str, name: str, operand: Any) -> Iterator[Condition]:
    number = _number(operand)
    if number is None:
        if isinstance(operand, str) and _is_sendable(operand):
            yield {path: {name: operand}}
    elif _is_sendable(number):
        # Texts may be numbers, and booleans are: `meets` compares each.
        texts, booleans = {path: {"gte": ""}}, {path: {"in": [True, False]}}
        yield {"OR": [{path: {name: number + 0}}, texts, booleans]}


def _is_sendable(operand: str | int | float) -> bool:
    """True for a value that JSON and the server can hold, and that is no wildcard."""
    if isinstance(operand, str):
        return operand != ANY and operand == storable(operand) and len(operand) <= LONGEST_OPERAND
    return abs(operand) <= LARGEST_OPERAND
