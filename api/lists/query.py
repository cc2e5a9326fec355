"""The query string of a list of memories."""

# No `from __future__ import annotations`: FastAPI cannot resolve such annotations of a class.

from dataclasses import dataclass, fields
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from api.http.paging import LARGEST_PAGE
from api.http.query_string import deep_metadata, literal
from api.lists.requests import ListRequest
from pipeline.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ListQuery:
    """A list request as a query string. `limit` is an older name of `page_size`."""

    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None
    metadata: str | None = None
    filters: str | None = None
    categories: Annotated[list[str] | None, Query()] = None
    keywords: str | None = None
    fields: Annotated[list[str] | None, Query()] = None
    start_date: str | None = None
    end_date: str | None = None
    show_expired: bool = False
    show_superseded: bool = False
    as_of: str | None = None
    valid_at: str | None = None
    include_superseded: bool = False
    include_merged: bool = False
    latest_only: bool = False
    limit: int | None = None

    def request(self, http: Request) -> ListRequest:
        """The same request as a body. Errors: those of a body; InvalidInput."""
        if self.limit is not None and not 1 <= self.limit <= LARGEST_PAGE:
            raise InvalidInput(f"limit must be <= {LARGEST_PAGE}")
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["limit"]
        values |= {
            "metadata": literal("metadata", self.metadata) if self.metadata else None,
            "filters": _all_of(literal("filters", self.filters) if self.filters else None, http),
            "categories": _names(self.categories),
            "fields": _words(self.fields),
        }
        try:
            return ListRequest(**values)
        except ValidationError as error:
            faults = [{**fault, "loc": ("query", *fault["loc"])} for fault in error.errors()]
            raise RequestValidationError(faults) from None


ListQueried = Annotated[ListQuery, Depends()]


def _all_of(filters: Any, http: Request) -> Any:
    """The `filters` of a query string, and its `metadata[key]=value` pairs."""
    parts = [filters] if filters else []
    parts += deep_metadata(http.query_params)
    return {"AND": parts} if len(parts) > 1 else parts[0] if parts else None


def _words(given: list[str] | None) -> list[str] | None:
    """Words of a parameter that is repeated or has commas."""
    return [word.strip() for text in given for word in text.split(",")] if given else None


def _names(given: list[str] | None) -> list[str] | None:
    """Names of a parameter that is repeated, which may have commas, or that lists them once."""
    if given is None or len(given) == 1:
        return _words(given)
    return [name.strip() for name in given if name.strip()]
