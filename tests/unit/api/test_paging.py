"""Pages by bytes: a page of large rows ends early, and the next one continues behind it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from api.http.paging import LARGEST_ANSWER_BYTES, page_of, size_bytes
from pipeline.domain.errors import InvalidInput

COUNT = 10
ROWS = [{"id": str(number), "memory": "x" * (LARGEST_ANSWER_BYTES // 4)} for number in range(COUNT)]


def request(query: str) -> Request:
    app = SimpleNamespace(
        state=SimpleNamespace(api=SimpleNamespace(settings=SimpleNamespace(public_url=None)))
    )
    return Request(
        {
            "type": "http", "method": "GET", "path": "/v1/changes/", "query_string": query.encode(),
            "headers": [(b"host", b"h")], "scheme": "http", "server": ("h", 80), "app": app,
        }
    )  # fmt: skip


def read(query: str) -> Mapping[str, Any]:
    given = {name: int(values[0]) for name, values in parse_qs(query).items()}
    page = page_of(
        given.get("page"), given.get("page_size"), offset=given.get("offset"), may_end=True
    )
    return page.envelope(ROWS[page.offset : page.offset + page.size], COUNT, request(query))


def test_following_next_reads_every_row_once() -> None:
    query, ids = "page=1&page_size=8", []
    while True:
        answer = read(query)
        assert sum(map(size_bytes, answer["results"])) <= LARGEST_ANSWER_BYTES
        ids += [row["id"] for row in answer["results"]]
        if answer["next"] is None:
            break
        query = urlsplit(answer["next"]).query
    assert ids == [row["id"] for row in ROWS]


@pytest.mark.parametrize(
    ("number", "size", "offset"),
    [(10**9, 200, None), (10**9, None, None), (None, 1, 2 * 10**9 + 1)],
)
def test_a_page_behind_all_that_the_ledger_counts_is_not_found(
    number: int | None, size: int | None, offset: int | None
) -> None:
    with pytest.raises(HTTPException, match="404"):
        page_of(number, size, offset=offset)


def test_a_page_that_ends_early_says_so() -> None:
    assert read("page_size=8")["truncated"] is True
    assert "truncated" not in read("page_size=2")


def test_one_row_larger_than_the_limit_is_a_page() -> None:
    page = page_of(1, 2, may_end=True)
    answer = page.envelope([{"memory": "x" * (LARGEST_ANSWER_BYTES + 1)}] * 2, 2, request(""))
    assert len(answer["results"]) == 1


@pytest.mark.parametrize("wrong", [{"number": 2, "offset": 3}, {"number": None, "offset": -1}])
def test_an_offset_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="offset"):
        page_of(wrong["number"], 10, offset=wrong["offset"])


def test_bytes_are_those_of_utf_8() -> None:
    assert size_bytes({"memory": "東京"}) == len("memory") + 6
