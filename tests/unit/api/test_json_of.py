"""`json_of`: a response with the attributes of a row under the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired
from uuid import UUID

import pytest
from typing_extensions import TypedDict

from api.http.shared_responses import Id, json_of

ROW_ID = UUID(int=7)


@dataclass(frozen=True)
class StoredRow:
    """A row with more than the response shows."""

    name: str
    id: UUID
    parent: UUID | None
    secret: str = "hidden"


class RowJson(TypedDict):
    """A response with a computed key and an optional one."""

    id: Id
    parent: Id | None
    name: str
    length: int
    note: NotRequired[str]


def test_keys_come_in_the_order_of_the_type_and_ids_are_strings() -> None:
    answer = json_of(RowJson, StoredRow("kim", ROW_ID, None), length=3)
    assert list(answer.items()) == [
        ("id", str(ROW_ID)),
        ("parent", None),
        ("name", "kim"),
        ("length", 3),
    ]


def test_an_optional_key_is_there_if_it_is_given() -> None:
    answer = json_of(RowJson, StoredRow("kim", ROW_ID, ROW_ID), length=3, note="new")
    assert answer["note"] == "new"
    assert answer["parent"] == str(ROW_ID)


def test_a_key_that_the_row_lacks_is_an_error() -> None:
    with pytest.raises(AttributeError, match="length"):
        json_of(RowJson, StoredRow("kim", ROW_ID, None))
