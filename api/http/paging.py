"""Paging as in the Mem0 clients: pages from 1, with absolute URLs to the next and previous one.

A page has at most LARGEST_ANSWER_BYTES. If its rows are larger, it ends early and says
`truncated: true`; `next` continues behind its last row, by `offset`.
"""

# No `from __future__ import annotations`: FastAPI cannot resolve such annotations of a class.

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, TypedDict, TypeVar, cast

from fastapi import Depends, Query, Request
from starlette.datastructures import URL
from starlette.exceptions import HTTPException

from api.http.shared_responses import PageJson, Row, ScopedPageJson
from pipeline.domain.errors import InvalidInput
from pipeline.ledger.owned_rows import ListPage

StoredT = TypeVar("StoredT")

PAGE_SIZE, LARGEST_PAGE = 100, 200
# Most rows before a page. With the rows counted behind it, more are out of range of an int4.
MOST_BEFORE = 2 * 10**9
# Most bytes of the texts, names and numbers on one page.
LARGEST_ANSWER_BYTES = 4_000_000


class Window(TypedDict):
    """The rows that a store reads: how many, and behind how many."""

    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class PageRange:
    """Number of a page, from 1, and its size.

    `start`: number of rows before it, if the request gives that in place of the number. `may_end`:
    the route takes `offset`, so a large page can end early.
    """

    number: int
    size: int
    start: int | None = None
    may_end: bool = False

    @property
    def offset(self) -> int:
        """Number of rows before the page."""
        return (self.number - 1) * self.size if self.start is None else self.start

    @property
    def window(self) -> Window:
        """The rows of the page."""
        return {"limit": self.size, "offset": self.offset}

    def envelope(self, results: list[Row], count: int, http: Request) -> PageJson[Row]:
        """The response with one page of results.

        Errors: HTTPException 404 for a page after the last one.
        """
        if self.offset and self.offset >= count:
            raise HTTPException(404, "Invalid page.")
        url = _public(http)
        shown = fitting(results) if self.may_end else results
        if len(shown) < len(results) or self.start is not None:
            behind = self.offset + len(shown)
            before = max(0, self.offset - self.size)
            return {
                "count": count,
                "next": _link(url, offset=behind) if behind < count and shown else None,
                "previous": _link(url, offset=before) if self.offset else None,
                "results": shown,
                "truncated": len(shown) < len(results),
            }
        return {
            "count": count,
            "next": _link(url, page=self.number + 1) if self.number * self.size < count else None,
            "previous": _link(url, page=self.number - 1) if self.number > 1 else None,
            "results": results,
        }


def scoped(
    page: PageRange, listed: ListPage[StoredT], shape: Callable[[StoredT], Row], http: Request
) -> ScopedPageJson[Row]:
    """The envelope of a page of rows of scopes. `shape`: makes a result of a row.

    Errors: as `envelope`.
    """
    results = [shape(row) for row in listed.rows]
    envelope = cast("ScopedPageJson[Row]", page.envelope(results, listed.count, http))
    if listed.bounded:
        envelope["bounded_parts"] = listed.bounded
    return envelope


def fitting(results: Sequence[Row]) -> list[Row]:
    """The first rows that fit LARGEST_ANSWER_BYTES; at least one."""
    sizes = accumulate(map(size_bytes, results))
    return list(results[: max(1, sum(1 for size in sizes if size <= LARGEST_ANSWER_BYTES))])


def size_bytes(value: object) -> int:
    """Size of a value in a response, without the signs of JSON: texts exactly, all else 8 bytes."""
    match value:
        case str():
            return len(value) if value.isascii() else len(value.encode(errors="replace"))
        case dict():
            return sum(len(key) + size_bytes(part) for key, part in value.items())
        case list() | tuple():
            return sum(map(size_bytes, value))
        case _:
            return 8


def _link(url: URL, **place: int) -> str:
    """The URL with this `page`, or this `offset` in place of a page."""
    return str(url.remove_query_params("page").include_query_params(**place))


def _public(http: Request) -> URL:
    """URL of this request as clients see it."""
    base: str | None = http.app.state.api.settings.public_url
    if base is None:
        return http.url
    query = f"?{http.url.query}" if http.url.query else ""
    return URL(base.rstrip("/") + http.url.path + query)


def page_of(
    number: int | None,
    size: int | None,
    *,
    offset: int | None = None,
    may_end: bool = False,
    usual: int = PAGE_SIZE,
    largest: int = LARGEST_PAGE,
) -> PageRange:
    """The page with this number and size. `offset`: rows before it, in place of the number.

    Errors: InvalidInput; 404 beyond MOST_BEFORE.
    """
    page = PageRange(
        1 if number is None else number, usual if size is None else size, offset, may_end
    )
    if page.number < 1 or not 1 <= page.size <= largest:
        raise InvalidInput(f"page starts at 1, page_size is 1 to {largest}.")
    if offset is not None and (offset < 0 or number is not None):
        raise InvalidInput("offset is 0 or more, and stands in place of page.")
    if page.offset > MOST_BEFORE:
        raise HTTPException(404, "Invalid page.")
    return page


@dataclass(frozen=True, slots=True)
class PageQuery:
    """`page`, `page_size` and `offset` of a query string; None where they are left out."""

    page: int | None = None
    page_size: int | None = None
    offset: Annotated[
        int | None, Query(description="Rows before the page, as in `next`; in place of `page`.")
    ] = None


Numbered = Annotated[PageQuery, Depends()]


def _page(query: Numbered) -> PageRange:
    return page_of(query.page, query.page_size, offset=query.offset, may_end=True)


Paged = Annotated[PageRange, Depends(_page)]
