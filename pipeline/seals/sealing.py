"""The sweeper's work: take rows from the queue, verify the heads, append seals, sign.

One batch is one transaction of one project, under the lock of its head. Nothing is appended to a
head that was not signed by this server: a lane that fails stays as it is, and so does a project.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row, exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from pipeline import telemetry
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.row_values import grouped, value_of
from pipeline.ledger.tables import events, seal_buckets, seal_projects, seal_queue
from pipeline.seals.chain import (
    ENTRIES,
    REPLAY,
    LaneHead,
    NewSeal,
    broken_at,
    entry_digest,
    is_signed,
    next_link,
    ranges,
    sign_head,
)
from pipeline.seals.checkpoints import last_checkpoint, record, sign_again
from pipeline.seals.entries import entry_parts
from pipeline.seals.heads import Bucket, ProjectHead, SealState, bucket_of, changed, digest, member
from pipeline.seals.keys import SealKeys
from pipeline.seals.sql import statement

log = structlog.get_logger()

# Kinds of queued rows, beside entries and lanes.
ROWS = ("event", "receipt", "history")
# Rows of the queue in one batch; events and memories of one queued lane in it.
AT_ONCE, OF_LANE = 200, 25
HEADS_AT_ONCE = 500
# Seals of a lane that are verified before the first append of a process.
CHAIN = 500
# Time after which the rows of a lane that failed are tried again.
PAUSE = timedelta(minutes=5)
# Clocks of database servers may differ by this much after a failover.
CLOCK_SKEW = timedelta(minutes=1)
# Longest pause between two signatures of a project without new rows.
IDLE = timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)
NO_ID = UUID(int=0)
MOST_VERSION = 2**31 - 1


class Refused(Exception):
    """The head of a project fails verification: nothing is sealed in it. The text is the reason."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """Result of a batch. `more`: there is more to do now; `recorded`: a new checkpoint, for the
    log.
    """

    number: int = 0
    more: bool = False
    recorded: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Verified:
    """Lanes whose chain this process has verified, with the number of their last seal."""

    most: int = 50_000
    numbers: dict[UUID, int] = field(default_factory=dict)

    def add(self, heads: Iterable[LaneHead]) -> None:
        """Remember these heads; the oldest ones are forgotten."""
        for head in heads:
            self.numbers.pop(head.lane_id, None)
            self.numbers[head.lane_id] = head.number
        while len(self.numbers) > self.most:
            del self.numbers[next(iter(self.numbers))]


@dataclass(slots=True)
class SealingBatch:
    """One batch of a project, within a transaction.

    `verified`, `cursors`: memory of the process, between its batches. `buckets`, `recorded`: those
    of the project, and the checkpoint, once the batch has read or written them.
    """

    connection: AsyncConnection
    keys: SealKeys
    project_id: ProjectId
    verified: Verified
    cursors: dict[ProjectId, UUID]
    checkpoint_every: timedelta
    buckets: dict[int, Bucket] = field(default_factory=dict)
    recorded: Mapping[str, Any] | None = None

    async def run(self) -> Sealed:
        """Seal and sign. Errors: Refused."""
        mine = {"project_id": self.project_id}
        row = (await self.connection.execute(statement("lock_project"), mine)).one_or_none()
        if row is None:
            return Sealed()
        head = ProjectHead.of(row)
        if head.state is SealState.OFF:
            return Sealed()
        await self._require(head, switched_on=bool(row.tamper_evidence))
        times = (await self.connection.execute(statement("horizon"))).one()
        sealed = Sealed()
        if head.rotated_to != self.keys.current:
            head, more = await self._sign_heads(head)
        elif head.state is SealState.STARTING:
            head, more = await self._start(head, times)
        else:
            sealed = await self._take(head)
            head, more = await self._advance(head, times.horizon), sealed.more
        await self._write(head, times.now)
        return Sealed(sealed.number, more, self.recorded)

    async def _require(self, head: ProjectHead, *, switched_on: bool) -> None:
        """Verify the head of the project, its buckets and its last checkpoint. Errors: Refused."""
        if not switched_on:
            raise Refused("switched off in the database")
        query = select(seal_buckets).where(seal_buckets.c.project_id == self.project_id)
        for row in await self.connection.execute(query):
            self.buckets[row.bucket] = value_of(Bucket, row)
        if head.state is SealState.ADOPTING and not head.counter:
            return await self._require_earlier()
        if not head.is_signed(self.keys):
            raise Refused("signature of the project's head")
        if digest(self.buckets) != head.digest:
            raise Refused("roots of the project's lanes")
        last = await last_checkpoint(self.connection, self.keys, head)
        if head.checkpoints and (last is None or last.counter > head.counter):
            raise Refused("checkpoints")
        return None

    async def _require_earlier(self) -> None:
        """Adopt a project that an earlier release sealed: its heads must be signed. One without
        heads must be empty. Errors: Refused.
        """
        heads = await self._next_heads(NO_ID)
        signed = [head for head in heads if is_signed(self.keys, self.project_id, head)]
        query = select(exists().where(events.c.project_id == self.project_id))
        if not signed and (heads or self.buckets or await self.connection.scalar(query)):
            raise Refused("not switched on by Memlane")

    async def _sign_heads(self, head: ProjectHead) -> tuple[ProjectHead, bool]:
        """Sign the next heads of lanes with the current key, after verifying their signatures."""
        heads = await self._next_heads(self.cursors.get(self.project_id, NO_ID))
        stale = [row for row in heads if row.key_id != self.keys.current and row.number]
        signed = [row for row in stale if is_signed(self.keys, self.project_id, row)]
        for row in stale:
            if row not in signed:
                self._report("lane", row.lane_id)
        earlier = [row.lane_id for row in signed if not row.key_id]
        await self._append({row.lane_id: row for row in signed}, await self._earlier(earlier))
        if len(heads) == HEADS_AT_ONCE:
            self.cursors[self.project_id] = heads[-1].lane_id
            return head, True
        self.cursors.pop(self.project_id, None)
        for bucket in self.buckets.values():
            self._change(bucket.bucket, [], 0)
        await sign_again(self.connection, self.keys, self.project_id)
        adopted = head.state is SealState.ADOPTING
        state = SealState.STARTING if adopted else head.state
        return replace(head, rotated_to=self.keys.current, state=state), True

    async def _earlier(self, lane_ids: Sequence[UUID]) -> list[NewSeal]:
        """Entries of what an erasure or a replay changed in lanes sealed by an earlier release."""
        if not lane_ids:
            return []
        rows = await self.connection.execute(statement("format_1"), {"lane_ids": list(lane_ids)})
        return [_entry(row, ranges(row.numbers) if row.numbers else "") for row in rows]

    async def _start(self, head: ProjectHead, times: Row[Any]) -> tuple[ProjectHead, bool]:
        """Queue all lanes once no transaction is left that began before the switch."""
        if head.since is None:
            return replace(head, since=times.now), True
        if times.horizon <= head.since:
            return head, False
        mine = {"project_id": self.project_id}
        await self.connection.execute(statement("fill_queue"), mine)
        return replace(head, state=SealState.FILLING), True

    async def _advance(self, head: ProjectHead, horizon: datetime) -> ProjectHead:
        """Move `sealed_until` to the date before that of the oldest row that is not sealed yet."""
        mine = seal_queue.c.project_id == self.project_id
        if head.state is SealState.FILLING:
            filling = exists().where(mine, seal_queue.c.kind == "lane")
            if await self.connection.scalar(select(filling)):
                return head
        query = select(seal_queue.c.queued_at).where(mine)
        oldest = await self.connection.scalar(query.order_by(seal_queue.c.queued_at).limit(1))
        until = min(horizon - CLOCK_SKEW, (oldest or horizon) - MICROSECOND)
        until = max(until, head.sealed_until or until)
        return replace(head, state=SealState.COMPLETE, sealed_until=until)

    async def _take(self, head: ProjectHead) -> Sealed:
        """Seal the next rows of the queue."""
        values = {"project_id": self.project_id, "limit": AT_ONCE}
        queued = (await self.connection.execute(statement("claim_queue"), values)).all()
        if not queued:
            return Sealed()
        chosen, moved = await self._choose(queued)
        rows = (await self.connection.execute(statement("unsealed"), chosen)).all()
        entries = await self._entries(queued)
        lane_ids = {row.lane_id for row in rows} | {entry.lane_id for entry in entries}
        heads, refused = await self._heads(lane_ids)
        replays = await self._replays(rows, entries)
        seals = [*entries, *self._acceptable(rows, head.sealed_until, replays)]
        number = await self._append(heads, [seal for seal in seals if seal.lane_id in heads])
        in_refused = {row.row_id for row in rows if row.lane_id in refused}
        late = [
            row.id
            for row in queued
            if row.lane_id in refused or (row.kind in ROWS and row.row_id in in_refused)
        ]
        gone = {*late, *(row_id for row_id, _, _ in moved)}
        await self.connection.execute(
            statement("end_queued"),
            {
                "done": [row.id for row in queued if row.id not in gone],
                "refused": late,
                "pause": PAUSE,
                "moved": [row_id for row_id, _, _ in moved if row_id not in late],
                "seqs": [seq for row_id, seq, _ in moved if row_id not in late],
                "memory_ids": [last for row_id, _, last in moved if row_id not in late],
            },
        )
        return Sealed(number, more=len(queued) == AT_ONCE or bool(moved))

    async def _choose(
        self, queued: Sequence[Row[Any]]
    ) -> tuple[dict[str, Any], list[tuple[int, int, UUID]]]:
        """The events and versions that the queue names, and how far each queued lane is read."""
        lanes = [row for row in queued if row.kind == "lane"]
        event_ids = {row.row_id for row in queued if row.kind in ("event", "receipt")}
        versions = [(row.row_id, row.row_no, row.row_no) for row in queued if row.kind == "history"]
        events_of, memories_of = defaultdict(list), defaultdict(list)
        if lanes:
            values = {
                "lane_ids": [row.lane_id for row in lanes],
                "seqs": [row.row_no for row in lanes],
                "memory_ids": [row.row_id for row in lanes],
                "limit": OF_LANE,
            }
            for row in await self.connection.execute(statement("lane_rows"), values):
                if row.kind == "event":
                    event_ids.add(row.row_id)
                    events_of[row.lane_id].append(row.seq)
                else:
                    memories_of[row.lane_id].append(row.row_id)
        whole = {memory_id for ids in memories_of.values() for memory_id in ids}
        versions = [version for version in versions if version[0] not in whole]
        versions += [(memory_id, 0, MOST_VERSION) for memory_id in whole]
        moved = [
            (
                row.id,
                max(events_of[row.lane_id], default=row.row_no),
                max(memories_of[row.lane_id], default=row.row_id),
            )
            for row in lanes
            if OF_LANE in (len(events_of[row.lane_id]), len(memories_of[row.lane_id]))
        ]
        chosen = {
            "project_id": self.project_id,
            "event_ids": list(event_ids),
            "memory_ids": [memory_id for memory_id, _, _ in versions],
            "lows": [low for _, low, _ in versions],
            "highs": [high for _, _, high in versions],
        }
        return chosen, moved

    async def _entries(self, queued: Sequence[Row[Any]]) -> list[NewSeal]:
        """The queued entries that this server signed and that are in no chain yet."""
        rows = [row for row in queued if row.kind in ENTRIES]
        if not rows:
            return []
        values = {"lane_ids": [row.lane_id for row in rows]}
        appended = {
            (row.lane_id, row.kind, row.row_id, row.row_no, row.covers)
            for row in await self.connection.execute(statement("entries"), values)
            if row.number is not None
        }
        entries = []
        for row in rows:
            place = (row.lane_id, row.kind, row.row_id, row.row_no, row.covers)
            if place in appended:
                continue
            if self.keys.verifies(
                row.key_id or "", row.signature or b"", *entry_parts(self.project_id, *place)
            ):
                entries.append(_entry(row, row.covers))
            else:
                self._report("entry", row.lane_id)
        return entries

    async def _heads(self, lane_ids: Iterable[UUID]) -> tuple[dict[UUID, LaneHead], set[UUID]]:
        """Lock the heads of these lanes. Returns those that are valid, and the lanes that fail."""
        wanted = sorted(lane_ids)
        rows = await self.connection.execute(statement("lock_heads"), {"lane_ids": wanted})
        stored = {
            row.lane_id: value_of(LaneHead, row)
            for row in rows
            if row.project_id == self.project_id
        }
        heads = {lane_id: stored.get(lane_id, LaneHead(lane_id)) for lane_id in wanted}
        refused = {
            head.lane_id
            for head in heads.values()
            if head.number and not is_signed(self.keys, self.project_id, head)
        }
        refused |= await self._broken([head for head in heads.values() if head.number])
        for lane_id in refused:
            self._report("lane", lane_id)
            del heads[lane_id]
        return heads, refused

    async def _broken(self, heads: Sequence[LaneHead]) -> set[UUID]:
        """The lanes whose last seals do not end in their head, each checked once per process."""
        numbers = self.verified.numbers
        unknown = [head for head in heads if numbers.get(head.lane_id) != head.number]
        if not unknown:
            return set()
        values = {"lane_ids": [head.lane_id for head in unknown], "limit": CHAIN}
        rows = await self.connection.execute(statement("last_seals"), values)
        seals = grouped(rows, "lane_id")
        return {head.lane_id for head in unknown if not _ends_in(head, seals[head.lane_id])}

    async def _replays(
        self, rows: Sequence[Row[Any]], entries: Sequence[NewSeal]
    ) -> Mapping[UUID, int]:
        """The number of replays of events whose content changed, as their entries have it."""
        edited = [row for row in rows if row.last_no is not None]
        if not edited:
            return {}
        values = {
            "event_ids": [row.row_id for row in edited],
            "lane_ids": [row.lane_id for row in edited],
        }
        replayed = await self.connection.execute(statement("replayed"), values)
        replays = {row.row_id: row.row_no for row in replayed}
        for entry in entries:
            if entry.kind == REPLAY:
                replays[entry.row_id] = max(entry.row_no, replays.get(entry.row_id, 0))
        return replays

    def _acceptable(
        self, rows: Sequence[Row[Any]], sealed_until: datetime | None, replays: Mapping[UUID, int]
    ) -> list[NewSeal]:
        """The rows to seal. A row that is older than `sealed_until` was inserted later, and an
        event that differs from its seal without an entry of a replay was edited: a verification
        names them.
        """
        seals = []
        for row in rows:
            inserted = sealed_until is not None and row.at <= sealed_until
            edited = row.last_no is not None and replays.get(row.row_id, 0) <= row.last_no
            if inserted or edited:
                self._report("row", row.lane_id)
            else:
                seal = (row.lane_id, row.kind, row.row_id, row.row_no, row.digest, row.salt)
                seals.append(NewSeal(*seal))
        return seals

    async def _append(self, heads: Mapping[UUID, LaneHead], seals: Sequence[NewSeal]) -> int:
        """Append seals, sign the heads of all these lanes, and change the roots. Returns the number
        of seals.
        """
        of_lane = grouped(seals, "lane_id")
        written, columns = [], []
        for lane_id, head in heads.items():
            if not of_lane[lane_id] and head.key_id == self.keys.current:
                continue
            if not of_lane[lane_id] and not head.number:
                continue
            number, link = head.number, head.link
            for seal in of_lane[lane_id]:
                number += 1
                link = next_link(link, number, seal)
                columns.append((seal, number, link))
            signed = sign_head(self.keys, self.project_id, lane_id, number, link)
            new = LaneHead(lane_id, number, link, signed, self.keys.current)
            before, after = (member(self.keys, self.project_id, row) for row in (head, new))
            self._change(bucket_of(lane_id), [before, after], 0 if head.key_id else 1)
            written.append(new)
        if columns:
            appended = _columns_of(columns) | {"project_id": self.project_id}
            await self.connection.execute(statement("append_seals"), appended)
        if written:
            values = {
                "project_id": self.project_id,
                "key_id": self.keys.current,
                "lane_ids": [head.lane_id for head in written],
                "numbers": [head.number for head in written],
                "links": [head.link for head in written],
                "signatures": [head.signature for head in written],
            }
            await self.connection.execute(statement("write_heads"), values)
        self.verified.add(written)
        return len(columns)

    def _change(self, bucket: int, parts: Sequence[bytes], more: int) -> None:
        stored = self.buckets.get(bucket, Bucket(bucket))
        self.buckets[bucket] = changed(self.keys, self.project_id, stored, parts=parts, more=more)

    async def _next_heads(self, after: UUID) -> list[LaneHead]:
        values = {"project_id": self.project_id, "after": after, "limit": HEADS_AT_ONCE}
        rows = await self.connection.execute(statement("next_heads"), values)
        return [value_of(LaneHead, row) for row in rows]

    async def _write(self, head: ProjectHead, now: datetime) -> None:
        """Write the buckets, a checkpoint if one is due, and the signed head."""
        buckets = list(self.buckets.values())
        values = {
            "project_id": self.project_id,
            "key_id": self.keys.current,
            "buckets": [bucket.bucket for bucket in buckets],
            "lanes": [bucket.lanes for bucket in buckets],
            "counters": [bucket.counter for bucket in buckets],
            "roots": [bucket.root for bucket in buckets],
        }
        await self.connection.execute(statement("write_buckets"), values)
        head = replace(
            head,
            lanes=sum(bucket.lanes for bucket in buckets),
            digest=digest(self.buckets),
            sealed_at=now,
        )
        head, self.recorded = await record(
            self.connection, self.keys, head, now, every=self.checkpoint_every
        )
        await write_head(self.connection, head.sign(self.keys))

    def _report(self, what: str, lane_id: UUID) -> None:
        telemetry.seals_refused.labels(what).inc()
        log.error("seal_refused", what=what, project_id=str(self.project_id), lane_id=str(lane_id))


async def write_head(connection: AsyncConnection, head: ProjectHead) -> None:
    """Write a signed head of a project."""
    columns = {name: getattr(head, name) for name in ProjectHead.__slots__}
    del columns["project_id"]
    query = update(seal_projects).where(seal_projects.c.project_id == head.project_id)
    await connection.execute(query.values(columns | {"state": head.state.value}))


def _entry(row: Row[Any], covers: str) -> NewSeal:
    digest = entry_digest(row.kind, row.row_id, row.row_no, covers)
    return NewSeal(row.lane_id, row.kind, row.row_id, row.row_no, digest, covers=covers)


def _ends_in(head: LaneHead, seals: Sequence[Row[Any]]) -> bool:
    """Tell if these last seals of a lane are a chain that ends in its head."""
    if not seals:
        return False
    first, last = seals[0], seals[-1]
    link, rest = (b"", seals) if first.number == 1 else (first.link, seals[1:])
    number = 0 if first.number == 1 else first.number
    return (last.number, last.link) == (head.number, head.link) and (
        broken_at(link, number, rest) is None
    )


def _columns_of(rows: Sequence[tuple[NewSeal, int, bytes]]) -> dict[str, list[Any]]:
    """The columns of seals to append, with their numbers and links."""
    return {
        "lane_ids": [seal.lane_id for seal, _, _ in rows],
        "numbers": [number for _, number, _ in rows],
        "kinds": [seal.kind for seal, _, _ in rows],
        "row_ids": [seal.row_id for seal, _, _ in rows],
        "row_nos": [seal.row_no for seal, _, _ in rows],
        "salts": [seal.salt for seal, _, _ in rows],
        "digests": [seal.digest for seal, _, _ in rows],
        "links": [link for _, _, link in rows],
        "covers": [seal.covers for seal, _, _ in rows],
    }
