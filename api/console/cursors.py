"""Keyset pages of lists that are sorted by time, newest first.

A cursor is the time of the last row, and the number of rows with exactly that time before it: the
next page reads rows up to that time and skips those. So a page costs the same however far it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query

from api.http.paging import PageRange
from pipeline.domain.filters import moment

PAGE = 50
MOST_SKIPPED = 10_000


@dataclass(frozen=True, slots=True)
class PageCursor:
    """Position in a list: behind the first `skip` rows that are not newer than `before`."""

    before: datetime | None = None
    skip: int = 0

    @property
    def page(self) -> PageRange:
        """The rows behind the cursor, in a list that ends at `before`."""
        return PageRange(1, PAGE, self.skip)

    def bounds(self, period: Mapping[str, datetime]) -> Mapping[str, datetime]:
        """The period, ended by the cursor."""
        if self.before is None:
            return period
        return {**period, "lte": min(self.before, period.get("lte", self.before))}

    def after(self, times: Sequence[datetime]) -> dict[str, str] | None:
        """Query of the next page, behind rows with these times; None if this page is not full."""
        if len(times) < PAGE:
            return None
        last = times[-1]
        skip = sum(1 for at in times if at == last)
        if last == self.before:
            skip += self.skip
        return {"before": last.isoformat(), "skip": str(skip)}


def _cursor(
    before: str | None = None, skip: Annotated[int, Query(ge=0, le=MOST_SKIPPED)] = 0
) -> PageCursor:
    return PageCursor(moment("before", before) if before else None, skip if before else 0)


At = Annotated[PageCursor, Depends(_cursor)]
