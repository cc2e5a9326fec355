"""Paging as in the Mem0 clients: pages from 1, with absolute URLs to the next and previous one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from starlette.datastructures import URL
from starlette.exceptions import HTTPException

from pipeline.domain.errors import InvalidInput

PAGE_SIZE, LARGEST_PAGE = 100, 200
# Maximum page number; a larger offset is out of PostgreSQL's range.
LAST_PAGE = 10**9


@dataclass(frozen=True, slots=True)
class Page:
    """Number of a page, from 1, and its size."""

    number: int
    size: int

    @property
    def limit(self) -> int:
        """Maximum number of rows on the page."""
        return self.size

    @property
    def offset(self) -> int:
        """Number of rows before the page."""
        return (self.number - 1) * self.size

    def envelope(self, results: list[dict[str, Any]], count: int, http: Request) -> dict[str, Any]:
        """The response with one page of results.

        Errors: HTTPException 404 for a page after the last one.
        """
        if self.number > 1 and self.offset >= count:
            raise HTTPException(404, "Invalid page.")
        last = (count + self.size - 1) // self.size
        url = _public(http)
        return {
            "count": count,
            "next": str(url.include_query_params(page=self.number + 1))
            if self.number < last
            else None,
            "previous": str(url.include_query_params(page=self.number - 1))
            if self.number > 1
            else None,
            "results": results,
        }


def _public(http: Request) -> URL:
    """URL of this request as clients see it."""
    base: str | None = http.app.state.api.settings.public_url
    if base is None:
        return http.url
    query = f"?{http.url.query}" if http.url.query else ""
    return URL(base.rstrip("/") + http.url.path + query)


def page_of(
    number: int | None, size: int | None, *, usual: int = PAGE_SIZE, largest: int = LARGEST_PAGE
) -> Page:
    """The page with this number and size. Errors: InvalidInput; 404 beyond LAST_PAGE."""
    page = Page(1 if number is None else number, usual if size is None else size)
    if page.number < 1 or not 1 <= page.size <= largest:
        raise InvalidInput(f"page starts at 1, page_size is 1 to {largest}.")
    if page.number > LAST_PAGE:
        raise HTTPException(404, "Invalid page.")
    return page


@dataclass(frozen=True, slots=True)
class PageQuery:
    """`page` and `page_size` of a query string; None where they are left out."""

    page: int | None
    page_size: int | None


def _page_query(
    page: Annotated[int | None, Query()] = None, page_size: Annotated[int | None, Query()] = None
) -> PageQuery:
    return PageQuery(page, page_size)


Numbered = Annotated[PageQuery, Depends(_page_query)]


def _page(query: Numbered) -> Page:
    return page_of(query.page, query.page_size)


Paged = Annotated[Page, Depends(_page)]
