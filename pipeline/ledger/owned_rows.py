"""Lists of the rows of an owner: a user, an agent, an app or a run, which may have very many lanes.

    few lanes: the newest rows of each ──► a page
         │ more
         ▼
    the newest rows of the project, those of the owner among them ──► a page
         │ too few
         ▼
    the same with more lanes, and with more rows of the project

Each read has a limit, so the work follows the page and not the lanes of the owner. Only an owner
with more than MOST_LANES lanes can lack rows, in a project with more than MOST_ROWS of them; then
the answer says that it is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    Select,
    SelectBase,
    Table,
    bindparam,
    case,
    exists,
    false,
    func,
    literal_column,
    select,
    true,
    union_all,
)

from pipeline.domain.tenants import ProjectId
from pipeline.ledger.counting import COUNTED, at_least
from pipeline.ledger.filter_conditions import IN_PROJECT, lanes_with
from pipeline.ledger.statements import SHAPES, Direct
from pipeline.ledger.tables import lanes

# Lanes that are read one by one at first, and at most.
FEW_LANES, MOST_LANES = 1_000, 2 * COUNTED
# Newest rows of the project, at least, among which those of an owner with more lanes are looked
# for.
MOST_ROWS = 10 * COUNTED
# Rows of the project that are read first for each row up to the end of the page: an owner with many
# lanes often has one of ten.
DENSE = 10
# Parameters of the statements: the end of the page, and the most lanes and rows that are read.
PAGE_END, OF_LANES, MOST = (
    bindparam(name, type_=Integer) for name in ("page_end", "of_lanes", "most")
)
ZERO: ColumnElement[int] = literal_column("0")
T = TypeVar("T")
ShapeT = TypeVar("ShapeT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """Rows of a page, newest first. `count`: number of all.

    `bounded`: the parts, "count" and "results", that may lack rows, because the work on very many
    scopes is bounded. A bounded count is a lower bound.
    """

    rows: Sequence[T]
    count: int
    bounded: Sequence[str] = ()


class OwnerRows(Protocol):
    """Rows that belong to lanes, in the order of a list. Instances are compared by identity.

    `key`: names of the columns that name a row.
    """

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the columns that name a row."""

    def order(self, rows: FromClause) -> tuple[ColumnElement[Any], ...]:
        """The order of the list, newest first."""

    def pages(self, last: int) -> Iterator[Step]:
        """Statements for the `last` newest rows, in the order of their cost.

        Each returns rows with `whole` and the key, in the order of the list and without a gap;
        `whole`: there are no others. At least one row: without a match, its key is NULL.
        """

    def counted(self, own: FromClause) -> Select[Any]:
        """All rows of these lanes."""


@dataclass(frozen=True, slots=True)
class OwnerShape:
    """Rows, and the names of the owner's ids: what a statement depends on."""

    rows: OwnerRows
    names: tuple[str, ...]


# A statement for a shape, and its values besides the project and the ids.
Step = tuple[Callable[[OwnerShape], Select[Any]], Mapping[str, int]]


async def page_of_owner(
    direct: Direct,
    project_id: ProjectId,
    rows: OwnerRows,
    ids: Mapping[str, str],
    *,
    limit: int,
    offset: int,
) -> ListPage[tuple[Any, ...]]:
    """The keys of a page of an owner's rows. Their count is exact up to COUNTED after the page."""
    last, values = offset + limit, {"in_project": project_id, **ids}
    shape = OwnerShape(rows, tuple(ids))
    steps = rows.pages(last)
    keys, whole = await newest_keys(direct, steps, shape, values, key=rows.key, last=last)
    keys = keys[offset:]
    if whole and len(keys) < limit and (keys or not offset):
        return ListPage(keys, offset + len(keys))
    most = {"of_lanes": MOST_LANES, "most": last + COUNTED}
    [row] = await direct.rows(await SHAPES.of(_number, shape), values | most)
    count = at_least(row.number, len(keys), limit=limit, offset=offset)
    parts = {"count": row.exact, "results": whole}
    return ListPage(keys, count, [part for part, exact in parts.items() if not exact])


async def newest_keys(
    direct: Direct,
    steps: Iterable[tuple[Callable[[ShapeT], Select[Any]], Mapping[str, int]]],
    shape: ShapeT,
    values: Mapping[str, Any],
    *,
    key: Sequence[str],
    last: int,
) -> tuple[Sequence[tuple[Any, ...]], bool]:
    """The keys of the `last` newest rows, and if none is missing.

    Each statement returns the first rows in their order, so the longest of the answers is right as
    far as it goes.
    """
    longest: list[tuple[Any, ...]] = []
    for build, own_values in steps:
        query = await SHAPES.of(build, shape)
        answer = await direct.rows(query, {**values, "page_end": last, **own_values})
        keys = [tuple(row[name] for name in key) for row in answer]
        keys = [key for key in keys if key[0] is not None]
        if len(keys) == last or answer[0].whole:
            return keys, True
        longest = max(longest, keys, key=len)
    return longest, False


@dataclass(frozen=True, slots=True, eq=False)
class LaneRows:
    """Rows of a table with the columns `id`, `project_id`, `lane_id` and `created_at`.

    `of_project`: conditions, of which each row matches exactly one, and each of which has an index
    in the order of a project's list. `of_lane`: the same for the list of a lane.
    """

    table: Table
    of_project: Sequence[ColumnElement[bool]] = field(default_factory=lambda: [true()])
    of_lane: Sequence[ColumnElement[bool]] = field(default_factory=lambda: [true()])

    @property
    def key(self) -> tuple[str, ...]:
        """The id of a row."""
        return ("id",)

    def order(self, rows: FromClause) -> tuple[ColumnElement[Any], ...]:
        """Newest first."""
        return (rows.c.created_at.desc(), rows.c.id)

    def pages(self, last: int) -> Iterator[Step]:
        """Statements for the newest rows: of few lanes, of the project, of more."""
        yield self._by_lanes, {"of_lanes": FEW_LANES}
        yield self._by_project, {"most": last * DENSE}
        yield self._by_project, {"most": last + COUNTED}
        yield self._by_lanes, {"of_lanes": MOST_LANES}
        yield self._by_project, {"most": max(MOST_ROWS, last + COUNTED)}

    def counted(self, own: FromClause) -> Select[Any]:
        """All rows of these lanes."""
        each = rows_of_each(
            # OFFSET keeps the planner from reading all rows of the project instead.
            [self._in(own, part).offset(ZERO) for part in self.of_lane]
        )
        return select(each.c.id).select_from(own.join(each, true()))

    def _in(self, own: FromClause, part: ColumnElement[bool]) -> Select[Any]:
        """The rows of a lane that match a part."""
        table = self.table.c
        rows = select(table.id, table.created_at).where(table.lane_id == own.c.id, part)
        return rows.correlate(own)

    def _by_lanes(self, shape: OwnerShape) -> Select[Any]:
        """Select the newest rows of the owner's lanes; none if these are many."""
        own, whole = lanes_of(shape)
        order = self.order(self.table)
        each = rows_of_each(
            [self._in(own, part).order_by(*order).limit(PAGE_END) for part in self.of_lane]
        )
        newest = select(each).select_from(own.join(each, true())).where(whole)
        return first(self, newest, select(whole.label("whole")))

    def _by_project(self, shape: OwnerShape) -> Select[Any]:
        """Select the owner's rows among the newest of the project."""
        table = self.table.c
        columns = (table.id, table.created_at, table.lane_id)
        parts = [
            select(*columns)
            .where(table.project_id == IN_PROJECT, part)
            .order_by(*self.order(self.table))
            .limit(MOST + 1)
            for part in self.of_project
        ]
        every = _joined(parts).subquery("every")
        read = select(every).order_by(*self.order(every)).limit(MOST + 1).cte("newest_rows")
        lane = select(lanes.c.id.label("owned")).where(
            lanes.c.id == read.c.lane_id, lanes_with(shape.names)
        )
        return among_newest(self, read, lane)


def lanes_of(shape: OwnerShape) -> tuple[FromClause, ColumnElement[bool]]:
    """The lanes of the owner, and the condition that these are all of them."""
    own = select(lanes.c.id).where(lanes_with(shape.names)).limit(OF_LANES + 1).cte("own")
    number = select(func.count()).select_from(own).correlate(None).scalar_subquery()
    return own, number <= OF_LANES


def first(rows: OwnerRows, newest: Select[Any], whole: Select[Any]) -> Select[Any]:
    """Select the first of these rows, up to the end of the page, each with `whole`."""
    matching = newest.subquery("matching")
    ordered = select(matching).order_by(*rows.order(matching)).limit(PAGE_END).subquery("ordered")
    size = whole.subquery("size")
    query = select(size.c.whole, *(ordered.c[name] for name in rows.key))
    return query.select_from(size.outerjoin(ordered, true())).order_by(*rows.order(ordered))


def among_newest(rows: OwnerRows, read: FromClause, owner: Select[Any]) -> Select[Any]:
    """Select the rows of `read`, the newest ones of the project and one more, that have an owner.

    `owner`: selects the row that tells it.
    """
    its = owner.correlate(read).limit(literal_column("1")).lateral("its")
    columns = [read.c[name] for name in (*rows.key, "created_at")]
    owned = select(*columns).select_from(read.join(its, true()))
    whole = select((func.count() <= MOST).label("whole")).select_from(read)
    return first(rows, owned, whole)


def _number(shape: OwnerShape) -> Select[Any]:
    """Count up to `most` rows of `of_lanes` lanes; `exact`: there are no others."""
    own_lanes = select(lanes.c.id).where(lanes_with(shape.names))
    # No order is needed: what bounds the count is the number.
    own = own_lanes.limit(OF_LANES).subquery("own")
    some = shape.rows.counted(own).limit(MOST).subquery("some")
    others = own_lanes.offset(OF_LANES).limit(1)
    exact = case((func.count() < MOST, ~exists(others)), else_=false())
    return select(func.count().label("number"), exact.label("exact")).select_from(some)


def rows_of_each(parts: Sequence[Select[Any]]) -> FromClause:
    """The rows of all parts, for each row that they are correlated with."""
    return _joined(parts).lateral("each")


def _joined(parts: Sequence[Select[Any]]) -> SelectBase:
    """The rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    return union_all(*(select(part.subquery()) for part in parts))
