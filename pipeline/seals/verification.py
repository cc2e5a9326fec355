"""The check of a project: its rows against their seals, page by page.

    lanes     the heads of the lanes against the roots of the project; the chains against their
              heads; the sealed rows against the seals
    events    ended events and lines of receipts without a seal
    history   versions of memories without a seal

A page is one snapshot of the database, so what the sweeper seals at the same time does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, TextClause, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline.domain.errors import InvalidInput
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.row_values import grouped, value_of
from pipeline.ledger.tables import (
    events,
    projects,
    seal_buckets,
    seal_checkpoints,
    seal_heads,
    seal_projects,
)
from pipeline.seals.chain import (
    ENTRIES,
    ERASURE,
    Covered,
    Fault,
    LaneHead,
    broken_at,
    entry_digest,
    is_signed,
)
from pipeline.seals.checkpoints import last_checkpoint
from pipeline.seals.entries import entry_parts
from pipeline.seals.heads import Bucket, ProjectHead, SealState, bucket_of, digest, fits
from pipeline.seals.keys import SealKeys
from pipeline.seals.sql import statement

# Seals, or events and versions, in one page; heads that are read for it; faults that it names.
ROWS, HEADS, MOST_FAULTS = 3_000, 1_024, 100
NO_ID = UUID(int=0)
PHASES = {phase: phase for phase in ("lanes", "events", "history")}
# Events of one statement: each may have many lines.
EVENTS = 1_000
BUCKETS = 256
WHOLE = 2**62
PROBLEMS = {"same": None, "differs": "edited", "missing": "removed", "erased": "removed"}
EPOCH, FOREVER = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class VerifiedPage:
    """A page of a check. `next`: cursor of the next page; None: this was the last.

    `sealed`: number of seals in it; `waiting`: rows that are not sealed yet. `enabled`: the project
    has tamper evidence.
    """

    enabled: bool
    sealed: int = 0
    waiting: int = 0
    faults: Sequence[Fault] = ()
    next: str | None = None
    state: SealState = SealState.OFF
    counter: int = 0


@dataclass(frozen=True, slots=True)
class Cursor:
    """Place where a page begins. Lanes: a lane and the number of its last seal before the page.
    Events and history: the row before the page, with its date.
    """

    phase: str = "lanes"
    row_id: UUID = NO_ID
    number: int = 0
    at: datetime = EPOCH

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Parse the text of a cursor. Errors: InvalidInput."""
        try:
            phase, row_id, number, at = text.split(".")
            date = EPOCH + timedelta(microseconds=int(at))
            return cls(PHASES[phase], UUID(row_id), min(int(number), WHOLE), date)
        except (ValueError, KeyError, OverflowError) as error:
            raise InvalidInput("cursor: send the `next` of the page before.") from error

    def __str__(self) -> str:
        microseconds = (self.at - EPOCH) // timedelta(microseconds=1)
        return f"{self.phase}.{self.row_id.hex}.{self.number}.{microseconds}"


class Verification:
    """One page of the check of a project, in a transaction with one snapshot."""

    def __init__(self, connection: AsyncConnection, keys: SealKeys, project_id: ProjectId) -> None:
        self._connection = connection
        self._keys = keys
        self._project_id = project_id

    async def page(self, text: str | None) -> VerifiedPage:
        """Check one page. Errors: InvalidInput for an invalid cursor, or without a needed key."""
        cursor = Cursor.parse(text) if text else Cursor()
        switched_on, head = await self._state()
        if switched_on or head is not None:
            self._keys.current  # noqa: B018  raises without a key
        if head is None or head.state is SealState.OFF:
            off = head is None or head.is_signed(self._keys)
            faults = [self._fault()] if switched_on or not off else []
            return VerifiedPage(bool(faults), faults=faults)
        match cursor.phase:
            case "lanes":
                page = await self._lanes(cursor, head)
            case "events":
                page = await self._events(cursor, head)
            case _:
                page = await self._history(cursor, head)
        sealed, waiting, faults, following = page
        if text is None:
            faults = [*await self._of_project(switched_on, head), *faults]
        named = faults[:MOST_FAULTS]
        following_text = str(following) if following else None
        return VerifiedPage(True, sealed, waiting, named, following_text, head.state, head.counter)

    async def _state(self) -> tuple[bool, ProjectHead | None]:
        query = (
            select(projects.c.tamper_evidence, seal_projects)
            .join(seal_projects, seal_projects.c.project_id == projects.c.id, isouter=True)
            .where(projects.c.id == self._project_id)
        )
        row = (await self._connection.execute(query)).one_or_none()
        if row is None or row.project_id is None:
            return bool(row and row.tamper_evidence), None
        return bool(row.tamper_evidence), ProjectHead.of(row)

    def _fault(self, number: int | None = None) -> Fault:
        return Fault(None, "head", "project", self._project_id, number)

    async def _of_project(self, switched_on: bool, head: ProjectHead) -> list[Fault]:
        """Faults of the project's head, its buckets and its checkpoints."""
        if head.state is SealState.ADOPTING and not head.counter:
            return [] if await self._earlier() else [self._fault()]
        query = select(func.count(), func.max(seal_checkpoints.c.counter)).where(
            seal_checkpoints.c.project_id == self._project_id
        )
        count, counter = (await self._connection.execute(query)).one()
        last = await last_checkpoint(self._connection, self._keys, head)
        valid = (
            switched_on,
            head.is_signed(self._keys),
            digest(await self._buckets()) == head.digest or not head.counter,
            count == head.checkpoints and (counter or 0) <= head.counter,
            not count or last is not None,
        )
        return [] if all(valid) else [self._fault()]

    async def _earlier(self) -> bool:
        """Tell if an earlier release can have sealed the project: it has heads, or it is empty."""
        with_heads = exists().where(seal_heads.c.project_id == self._project_id)
        with_events = exists().where(events.c.project_id == self._project_id)
        return bool(await self._connection.scalar(select(or_(with_heads, ~with_events))))

    async def _buckets(self) -> dict[int, Bucket]:
        query = select(seal_buckets).where(seal_buckets.c.project_id == self._project_id)
        rows = await self._connection.execute(query)
        return {row.bucket: value_of(Bucket, row) for row in rows}

    # Lanes

    async def _lanes(
        self, cursor: Cursor, head: ProjectHead
    ) -> tuple[int, int, list[Fault], Cursor | None]:
        """Check heads of lanes, and their chains as far as the page has room."""
        first = bucket_of(cursor.row_id)
        heads, last = await self._heads(first)
        faults = await self._of_buckets(heads, range(first, last + 1))
        left = [row for row in heads if row.lane_id >= cursor.row_id]
        chosen: list[LaneHead] = []
        room = ROWS
        for row in left:
            if chosen and row.number > room:
                break
            chosen.append(row)
            room -= row.number
        low = cursor.number if chosen and chosen[0].lane_id == cursor.row_id else 0
        cut = bool(chosen) and len(chosen) == 1 and chosen[0].number > low + ROWS
        high = low + ROWS if cut else WHOLE
        sealed, more = await self._chains(
            chosen, low, high, adopting=head.state is SealState.ADOPTING
        )
        faults += more
        if cut:
            return sealed, 0, faults, Cursor("lanes", chosen[0].lane_id, high)
        if len(chosen) < len(left):
            return sealed, 0, faults, Cursor("lanes", left[len(chosen)].lane_id)
        if last + 1 < BUCKETS:
            return sealed, 0, faults, Cursor("lanes", UUID(int=(last + 1) << 120))
        return sealed, 0, faults, Cursor("events")

    async def _heads(self, first: int) -> tuple[Sequence[LaneHead], int]:
        """Heads from a bucket on, of whole buckets; and the last of these buckets."""

        async def read(last: int, limit: int) -> Sequence[LaneHead]:
            bounds = {"low": UUID(int=first << 120), "high": UUID(int=((last + 1) << 120) - 1)}
            values = {"project_id": self._project_id, "limit": limit} | bounds
            rows = await self._connection.execute(statement("heads_page"), values)
            return [value_of(LaneHead, row) for row in rows]

        rows = await read(BUCKETS - 1, HEADS)
        if len(rows) < HEADS:
            return rows, BUCKETS - 1
        last = bucket_of(rows[-1].lane_id) - 1
        if last >= first:
            return [row for row in rows if bucket_of(row.lane_id) <= last], last
        return await read(first, 2**31 - 1), first

    async def _of_buckets(self, heads: Iterable[LaneHead], numbers: Iterable[int]) -> list[Fault]:
        """The buckets whose lanes do not have the heads that were signed: a fault for each."""
        of_bucket = defaultdict(list)
        for head in heads:
            of_bucket[bucket_of(head.lane_id)].append(head)
        buckets = await self._buckets()
        return [
            self._fault(number)
            for number in numbers
            if not fits(
                self._keys,
                self._project_id,
                buckets.get(number, Bucket(number)),
                of_bucket[number],
            )
        ]

    async def _chains(
        self, heads: Sequence[LaneHead], low: int, high: int, *, adopting: bool
    ) -> tuple[int, list[Fault]]:
        """Check the seals of lanes. Returns their number, and the faults."""
        if not heads:
            return 0, []
        lane_ids = [head.lane_id for head in heads]
        values = {
            "project_id": self._project_id,
            "lane_ids": lane_ids,
            # With the last seal of the page before, whose link the first one continues.
            "lows": [max(low - 1, 0)] * len(heads),
            "highs": [high] * len(heads),
        }
        rows = await self._connection.execute(statement("seals_page"), values)
        seals = grouped(rows, "lane_id")
        rows = await self._connection.execute(statement("entries"), {"lane_ids": lane_ids})
        entries = grouped(rows, "lane_id")
        faults, sealed = [], 0
        for head in heads:
            base = seals[head.lane_id][0] if low and seals[head.lane_id] else None
            of_lane = seals[head.lane_id][1:] if low else seals[head.lane_id]
            sealed += len(of_lane)
            faults += self._of_chain(head, base, low, of_lane, whole=high == WHOLE)
            lane_entries = self._valid(head, entries[head.lane_id])
            earlier = adopting and not head.key_id
            faults += _of_rows(head.lane_id, of_lane, lane_entries, earlier=earlier)
        return sealed, faults

    def _of_chain(
        self,
        head: LaneHead,
        base: Row[Any] | None,
        low: int,
        seals: Sequence[Row[Any]],
        *,
        whole: bool,
    ) -> list[Fault]:
        """The first seal that does not fit, or the head if it is not that of the chain."""
        link = base.link if base else b""
        if low and (base is None or base.number != low):
            return [Fault(head.lane_id, "chain", "seal")]
        seal = broken_at(link, low, seals)
        if seal is not None:
            return [Fault(head.lane_id, "chain", seal.kind, seal.row_id, seal.row_no)]
        if not whole or not (head.number or seals):
            return []
        last = (seals[-1].number, seals[-1].link) if seals else (low, link)
        signed = is_signed(self._keys, self._project_id, head)
        return (
            []
            if signed and last == (head.number, head.link)
            else [Fault(head.lane_id, "head", "seal")]
        )

    def _valid(self, head: LaneHead, entries: Sequence[Row[Any]]) -> list[Row[Any]]:
        """The entries that Memlane made: those of the chain, and those in the queue it signed."""
        valid = []
        for row in entries:
            place = (row.lane_id, row.kind, row.row_id, row.row_no, row.covers or "")
            if row.number is not None:
                expected = entry_digest(row.kind, row.row_id, row.row_no, row.covers or "")
                if row.covers is not None and row.number <= head.number and row.digest == expected:
                    valid.append(row)
            elif self._keys.verifies(
                row.key_id or "", row.signature or b"", *entry_parts(self._project_id, *place)
            ):
                valid.append(row)
        return valid

    # Rows without a seal

    async def _events(
        self, cursor: Cursor, head: ProjectHead
    ) -> tuple[int, int, list[Fault], Cursor | None]:
        """Count the events and lines without a seal, and name those that were inserted."""
        waiting, faults, last = await self._unsealed(
            statement("unsealed_events"), cursor, head, limit=EVENTS
        )
        if last is None or last.row_no < EVENTS:
            return 0, waiting, faults, Cursor("history", at=FOREVER)
        return 0, waiting, faults, Cursor("events", last.row_id, at=last.at)

    async def _history(
        self, cursor: Cursor, head: ProjectHead
    ) -> tuple[int, int, list[Fault], Cursor | None]:
        """Count the versions without a seal, and name those that were inserted."""
        waiting, faults, last = await self._unsealed(
            statement("unsealed_history"), cursor, head, row_no=cursor.number, limit=ROWS
        )
        if last is None or last.number < ROWS:
            return 0, waiting, faults, None
        return 0, waiting, faults, Cursor("history", last.row_id, last.row_no, last.at)

    async def _unsealed(
        self, query: TextClause, cursor: Cursor, head: ProjectHead, **page: int
    ) -> tuple[int, list[Fault], Row[Any] | None]:
        """The number of rows that wait for their seal, those that were inserted, and the last row.

        `query`: statement of the page; `page`: its further values.
        """
        values = {"project_id": self._project_id, "created_at": cursor.at, "row_id": cursor.row_id}
        rows = (await self._connection.execute(query, values | page)).all()
        last = next((row for row in rows if row.kind == "page"), None)
        new = [row for row in rows if row.kind != "page"]
        until = head.sealed_until
        late = [row for row in new if until is not None and row.at <= until]
        faults = [Fault(row.lane_id, "inserted", row.kind, row.row_id, row.row_no) for row in late]
        return len(new) - len(late), faults, last


def _of_rows(
    lane_id: UUID, seals: Sequence[Row[Any]], entries: Sequence[Row[Any]], *, earlier: bool
) -> list[Fault]:
    """The rows that differ from their seals and that no entry covers.

    `earlier`: the lane was sealed by an earlier release and has no entries yet.
    """
    erasures: dict[UUID, list[Covered]] = defaultdict(list)
    replays: dict[UUID, int] = defaultdict(lambda: -1)
    for entry in entries:
        if entry.kind == ERASURE:
            erasures[entry.row_id].append(Covered.of(entry.covers))
        else:
            replays[entry.row_id] = max(replays[entry.row_id], entry.row_no)
    faults = []
    for seal in seals:
        erased, replayed = seal.state == "erased", seal.kind == "event"
        covered = (earlier and (erased or replayed)) or (
            any(seal.number in numbers for numbers in erasures[seal.erased_by])
            if erased
            else replayed and replays[seal.row_id] > seal.row_no
        )
        if not covered and (problem := _problem(seal)):
            faults.append(Fault(lane_id, problem, seal.kind, seal.row_id, seal.row_no))
    return faults


def _problem(seal: Row[Any]) -> str | None:
    """Problem of the row of a seal, or of an entry; None if there is none."""
    if seal.kind in ENTRIES:
        expected = entry_digest(seal.kind, seal.row_id, seal.row_no, seal.covers or "")
        return None if seal.covers is None or seal.digest == expected else "edited"
    return PROBLEMS[seal.state]
