"""The checker: compare the ledger's rows with the clients' log; report loss and duplicates.

    books    accepted = succeeded + failed + cancelled + in flight, in one snapshot, again and again
    lanes    every accepted event ended, once, in order; effects exactly as expected from the turns
    index    the vectors are those of the active memories

It uses none of the product's code: plain SQL, and a model of the expected result.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Any

from pipeline.adapters.vectors_chroma import ChromaVectors
from pipeline.adapters.vectors_pgvector import Pgvector
from pipeline.domain.errors import StoreUnavailable
from pipeline.ledger.engine import connect
from pipeline.ports import VectorStore
from tests.support.chaos_ledger import LedgerWindow, Rows, database_url, holds, port_of
from tests.support.chaos_load import ClientLog, ScopeLog, in_graph, liking, residence, user_of
from tests.support.stack import Stack

Row = Any
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
REPAIRED_WITHIN_S = 90.0
MOST_VECTORS = 1_000_000


class Wrong(StrEnum):
    LOST = "lost"
    TWICE = "twice"
    REORDERED = "reordered"
    UNTRUE = "untrue"  # a status, receipt, history or graph that contradicts the rest


@dataclass(frozen=True, slots=True)
class ChaosFinding:
    wrong: Wrong
    scope: int
    what: str


PARTS = ("succeeded", "failed", "cancelled", "in_flight")
BOOKS = """
SELECT
    (SELECT coalesce(sum(accepted_seq), 0)::bigint FROM lanes) AS accepted,
    (SELECT coalesce(sum(settled_seq), 0)::bigint FROM lanes) AS settled,
    count(*) FILTER (WHERE status = 'SUCCEEDED') AS succeeded,
    count(*) FILTER (WHERE status = 'FAILED') AS failed,
    count(*) FILTER (WHERE status = 'CANCELLED') AS cancelled,
    count(*) FILTER (WHERE status IN ('PENDING', 'RUNNING')) AS in_flight,
    count(*) FILTER (WHERE status = 'RUNNING' AND event_type = 'DELETE_USER') AS erasing,
    (SELECT jsonb_object_agg(kind, amount) FROM (
        SELECT kind, sum(amount) AS amount FROM (
            SELECT kind, amount FROM books UNION ALL SELECT kind, amount FROM book_entries
        ) line GROUP BY kind
    ) kept) AS kept
FROM events
"""


@dataclass(slots=True)
class BookSamples:
    """Samples of the accounting identity; `lanes.accepted_seq` and `events` count separately."""

    window: LedgerWindow
    log: ClientLog
    samples: int = 0
    accepted: int = 0
    ended: int = 0
    violations: list[str] = field(default_factory=list)

    @property
    def in_flight(self) -> int:
        return max(self.log.accepted, self.accepted) - self.ended

    async def sample(self) -> None:
        """Take one sample. Errors: LedgerAway."""
        known = self.log.accepted
        [row] = await self.window.rows(BOOKS)
        self.samples += 1
        ended = row["succeeded"] + row["failed"] + row["cancelled"]
        totals = Counter(json.loads(row["kept"] or "{}"))
        most = self.log.accepted + self.log.in_doubt + self.log.open
        rules = {
            "accepted = succeeded + failed + cancelled + in flight": (
                row["accepted"] == ended + row["in_flight"]
            ),
            "the books count the same": (
                totals["NUMBER"] - totals["REPLAY"],
                totals["SUCCEEDED"],
                totals["FAILED"],
                totals["CANCELLED"],
                totals["PENDING"] + totals["RUNNING"],
            )
            == (row["accepted"], *(row[part] for part in PARTS)),
            # An erasure runs while its vectors are deleted; its lane has nothing to do.
            "settled = ended": row["settled"] == ended + row["erasing"],
            "every 200 is in the ledger": known <= row["accepted"],
            "the ledger holds no more than was sent": row["accepted"] <= most,
            "nothing accepted or ended is undone": (
                row["accepted"] >= self.accepted and ended >= self.ended
            ),
        }
        self.violations += [f"{rule}: {dict(row)}" for rule, true in rules.items() if not true]
        self.accepted, self.ended = row["accepted"], ended


@dataclass(frozen=True, slots=True)
class Lane:
    """All rows of one scope: events by seq, receipts and history in order."""

    scope: int
    row: Row
    events: Rows
    receipts: Mapping[Any, Rows]
    history: Rows
    memories: Rows
    relations: Rows
    nodes: Sequence[str]
    extracted_at: Mapping[Any, Any]


QUERIES = {
    "lanes": "SELECT *, id AS lane_id FROM lanes WHERE user_id LIKE 'chaos-%'",
    "events": """
        SELECT e.*, m.content FROM events e JOIN messages m USING (lane_id, seq)
        ORDER BY e.lane_id, e.seq""",
    "receipts": """
        SELECT r.*, e.lane_id FROM receipts r JOIN events e ON e.id = r.event_id
        ORDER BY r.event_id, r.ordinal""",
    "history": """
        SELECT h.*, m.lane_id FROM memory_history h JOIN memories m ON m.id = h.memory_id
        ORDER BY h.memory_id, h.version""",
    "memories": "SELECT * FROM memories",
    "relations": """
        SELECT r.lane_id, s.name AS source, r.relation, d.name AS destination,
               r.expired_at IS NULL AS current
        FROM relations r JOIN entities s ON s.id = r.source_id
        JOIN entities d ON d.id = r.destination_id ORDER BY r.created_at, r.id""",
    "nodes": "SELECT lane_id, coalesce(plain_name, name_key) AS name FROM entities",
    "extracts": """
        SELECT DISTINCT e.lane_id, s.batch_id, s.finished_at
        FROM stage_runs s JOIN events e USING (batch_id) WHERE s.stage = 'extract'""",
}


async def check_lanes(window: LedgerWindow, log: ClientLog) -> list[ChaosFinding]:
    """Check every lane against its client's log. No event may be in flight."""
    tables: dict[str, defaultdict[Any, Rows]] = {}
    for name, query in QUERIES.items():
        tables[name] = defaultdict(list)
        for row in await window.rows(query):
            tables[name][row["lane_id"]].append(row)
    rows = {row["user_id"]: row for [row] in tables["lanes"].values()}
    findings: list[ChaosFinding] = []
    for scope, knows in log.scopes.items():
        row = rows.get(user_of(scope))
        if row is None:
            findings += [
                ChaosFinding(Wrong.LOST, scope, f"turn {n}: no lane") for n, _ in knows.accepted
            ]
            continue
        of = {name: by_lane[row["id"]] for name, by_lane in tables.items()}
        lane = Lane(
            scope=scope,
            row=row,
            events=of["events"],
            receipts={
                key: list(lines)
                for key, lines in groupby(of["receipts"], key=lambda line: line["event_id"])
            },
            history=of["history"],
            memories=of["memories"],
            relations=of["relations"],
            nodes=[node["name"] for node in of["nodes"]],
            extracted_at={run["batch_id"]: run["finished_at"] for run in of["extracts"]},
        )
        findings += check_lane(lane, knows)
    return findings


def check_lane(lane: Lane, knows: ScopeLog) -> list[ChaosFinding]:
    checks = (
        _kept(lane, knows),
        _ended(lane),
        _in_order(lane, knows),
        _effects(lane),
        _state(lane),
        _versions(lane),
        _graph(lane),
    )
    return [ChaosFinding(wrong, lane.scope, what) for check in checks for wrong, what in check]


Breaches = Iterator[tuple[Wrong, str]]


def turn_of(event: Row) -> int:
    match = re.match(r"I moved to Town\d+x(\d+)k\.", event["content"])
    assert match, "not a message of the load"
    return int(match[1])


def _kept(lane: Lane, knows: ScopeLog) -> Breaches:
    """Each 200 has exactly one event, and each event was sent by a client."""
    stored = {event["id"]: turn_of(event) for event in lane.events}
    for turn, event_id in knows.accepted:
        if stored.get(event_id) != turn:
            yield Wrong.LOST, f"turn {turn}: accepted, but not in the ledger"
    for turn, times in Counter(stored.values()).items():
        if times > 1:
            yield Wrong.TWICE, f"turn {turn}: {times} events"
    expected = {turn for turn, _ in knows.accepted} | knows.unknown | knows.denied
    for turn in set(stored.values()) - expected:
        yield Wrong.TWICE, f"turn {turn}: not sent by a client"


def _ended(lane: Lane) -> Breaches:
    for event in lane.events:
        turn, lines = turn_of(event), lane.receipts.get(event["id"], [])
        if event["status"] not in ENDED:
            yield Wrong.LOST, f"turn {turn}: still {event['status']}"
        elif event["status"] == "SUCCEEDED" and not lines and not event["note"]:
            yield Wrong.LOST, f"turn {turn}: SUCCEEDED with neither receipt nor note"
        elif event["status"] == "FAILED" and not event["failure_code"]:
            yield Wrong.UNTRUE, f"turn {turn}: FAILED without a code"
        if [line["ordinal"] for line in lines] != list(range(len(lines))):
            yield Wrong.TWICE, f"turn {turn}: receipt lines {[x['ordinal'] for x in lines]}"


def _in_order(lane: Lane, knows: ScopeLog) -> Breaches:
    """Events have the order of their adds; batches are contiguous and do not overlap."""
    sure = {event_id: turn for turn, event_id in knows.accepted}
    sequence = [sure[event["id"]] for event in lane.events if event["id"] in sure]
    if sequence != sorted(sequence):
        yield Wrong.REORDERED, f"accepted as {sequence}"
    if [event["seq"] for event in lane.events] != list(range(1, len(lane.events) + 1)):
        yield Wrong.UNTRUE, f"seq has gaps: {[event['seq'] for event in lane.events]}"
    batches = [(key, list(group)) for key, group in groupby(lane.events, lambda e: e["batch_id"])]
    if len({key for key, _ in batches}) != len(batches):
        yield Wrong.REORDERED, "a batch is not contiguous"
    for (_, before), (key, after) in pairwise(batches):
        ended_at = max((e["completed_at"] for e in before if e["completed_at"]), default=None)
        began_at = lane.extracted_at.get(key)
        if ended_at and began_at and began_at <= ended_at:
            yield Wrong.REORDERED, f"turn {turn_of(after[0])} began before the one before it ended"


@dataclass(frozen=True, slots=True)
class Effect:
    """One expected change of a memory, and the event that caused it."""

    outcome: str
    old: str | None
    new: str | None
    event_id: Any


def expected(lane: Lane) -> tuple[list[Effect], list[Effect], dict[Any, list[tuple[str, str]]]]:
    """Expected result of the turns: states of the residence, the likings, and the receipt by event.

    In a batch the last turn sets the residence; the moves of the other turns are NOOPs. An event
    that failed before it was applied has no receipt and no effect.
    """
    homes: list[Effect] = []
    likes: list[Effect] = []
    receipts: dict[Any, list[tuple[str, str]]] = {}
    for _, group in groupby(lane.events, lambda event: event["batch_id"]):
        batch = [e for e in group if e["status"] == "SUCCEEDED" or e["id"] in lane.receipts]
        for event in batch:
            home, like = (text(lane.scope, turn_of(event)) for text in (residence, liking))
            outcome = "NOOP"
            if event is batch[-1]:
                old = homes[-1].new if homes else None
                outcome = "UPDATE" if homes else "ADD"
                homes.append(Effect(outcome, old, home, event["id"]))
            likes.append(Effect("ADD", None, like, event["id"]))
            receipts[event["id"]] = [(outcome, home), ("ADD", like)]
    return homes, likes, receipts


def _effects(lane: Lane) -> Breaches:
    homes, likes, receipts = expected(lane)
    history = [
        Effect(row["event"], row["old_text"], row["new_text"], row["event_id"])
        for row in lane.history
    ]
    texts = {(row["new_text"] or row["old_text"] or "") for row in lane.history}
    strange = [text for text in texts if f" Town{lane.scope}x" not in text]
    strange = [text for text in strange if f" sport{lane.scope}x" not in text]
    if strange:
        yield Wrong.UNTRUE, f"texts of other scopes: {strange}"
    lived = [effect for effect in history if " lives in " in (effect.new or effect.old or "")]
    liked = [effect for effect in history if " likes " in (effect.new or effect.old or "")]
    yield from _compare("residence", homes, lived, ordered=True)
    yield from _compare("liking", likes, liked, ordered=False)
    for event_id, lines in receipts.items():
        actual = [(line["outcome"], line["text"]) for line in lane.receipts.get(event_id, [])]
        yield from _compare("receipt", lines, actual, ordered=True)
    homes_held = {
        row["memory_id"] for row in lane.history if " lives in " in (row["new_text"] or "")
    }
    if len(homes_held) > 1:
        yield Wrong.TWICE, f"{len(homes_held)} memories say where the user lives"


def _compare(what: str, must: Sequence[Any], was: Sequence[Any], *, ordered: bool) -> Breaches:
    wanted, actual = Counter(must), Counter(was)
    for item in (wanted - actual).elements():
        yield Wrong.LOST, f"{what}: {item}"
    for item in (actual - wanted).elements():
        yield Wrong.TWICE, f"{what}: {item}"
    if ordered and wanted == actual and list(must) != list(was):
        yield Wrong.REORDERED, f"{what}: {list(was)}"


def _state(lane: Lane) -> Breaches:
    """The final state of the lane agrees with its receipts and history."""
    row, total = lane.row, len(lane.events)
    if (row["state"], row["accepted_seq"], row["settled_seq"]) != ("IDLE", total, total):
        yield Wrong.UNTRUE, f"lane {row['state']}, {row['settled_seq']} of {row['accepted_seq']}"
    active = [memory for memory in lane.memories if memory["state"] == "ACTIVE"]
    for text, times in Counter(memory["text"] for memory in active).items():
        if times > 1:
            yield Wrong.TWICE, f"{times} active memories: {text}"
    outcomes = Counter(line["outcome"] for lines in lane.receipts.values() for line in lines)
    if len(active) != outcomes["ADD"] - outcomes["DELETE"]:
        yield Wrong.TWICE, f"{len(active)} active memories after {dict(outcomes)}"


def _graph(lane: Lane) -> Breaches:
    """Each memory has its relation, once; only the last home is current; no node is there twice."""
    for name, times in Counter(lane.nodes).items():
        if times > 1:
            yield Wrong.TWICE, f"{times} nodes {name}"
    statuses = {event["graph_status"] for event in lane.events}
    if not in_graph(lane.scope):
        if lane.relations or lane.nodes or statuses - {None}:
            yield Wrong.UNTRUE, f"a graph without need: {statuses}"
        return
    if statuses != {"SUCCEEDED"}:
        return
    homes, likes, _ = expected(lane)
    for relation, effects in (("lives_in", homes), ("likes", likes)):
        must = [("User", (effect.new or "").rpartition(" ")[2]) for effect in effects]
        rows = [row for row in lane.relations if row["relation"] == relation]
        was = [(row["source"], row["destination"]) for row in rows]
        yield from _compare(relation, must, was, ordered=False)
    current = [
        row["destination"]
        for row in lane.relations
        if row["current"] and row["relation"] == "lives_in"
    ]
    towns = [(effect.new or "").rpartition(" ")[2] for effect in homes[-1:]]
    if current != towns:
        yield Wrong.UNTRUE, f"the graph says {current}, the last turn {towns}"


def _versions(lane: Lane) -> Breaches:
    """One history row for each version of each memory, from 1, without a gap."""
    versions: defaultdict[Any, list[int]] = defaultdict(list)
    for entry in lane.history:
        versions[entry["memory_id"]].append(entry["version"])
    for memory in lane.memories:
        if versions[memory["id"]] != list(range(1, memory["version"] + 1)):
            yield Wrong.UNTRUE, f"versions {versions[memory['id']]} of {memory['version']}"


async def index_agrees(window: LedgerWindow, stack: Stack, *, within_s: float) -> str:
    """Wait until the index has exactly the active memories; return the difference, "" if none."""
    differences = "not compared"

    async def agrees() -> bool:
        nonlocal differences
        rows = await window.rows("SELECT id, version FROM memories WHERE state = 'ACTIVE'")
        must = {row["id"]: row["version"] for row in rows}
        try:
            was = {
                record.id: record.payload["version"]
                for name in await index.list_cols()
                if name.startswith("memories-")
                for record in await index.list(name, where={}, limit=MOST_VECTORS)
            }
        except StoreUnavailable as error:
            differences = str(error)
            return False
        stale = sum(was[key] != must[key] for key in must.keys() & was.keys())
        missing, extra = len(must.keys() - was.keys()), len(was.keys() - must.keys())
        differences = f"{missing} missing, {extra} too many, {stale} stale" if was != must else ""
        return was == must

    async with index_of(stack) as index:
        await holds(agrees, within_s=within_s, every_s=0.5)
    return differences


@asynccontextmanager
async def index_of(stack: Stack) -> AsyncIterator[VectorStore]:
    """The vector index of a stack: Chroma, or pgvector in its database."""
    if stack.settings.get("MEMLANE_VECTORS") == "pgvector":
        engine = connect(database_url(stack), pool_size=2)
        try:
            yield Pgvector(engine)
        finally:
            await engine.dispose()
    else:
        own = stack.settings.get("MEMLANE_CHROMA_URL")
        chroma = ChromaVectors(own or f"http://127.0.0.1:{port_of(stack, 'chroma')}")
        try:
            yield chroma
        finally:
            await chroma.close()


def tally(findings: Iterable[ChaosFinding]) -> dict[str, int]:
    counts = Counter(finding.wrong.value for finding in findings)
    return {wrong.value: counts[wrong.value] for wrong in Wrong}
