"""Plans at 100,000 memories: a statement reads about as many rows as it returns.

Requests to all routes and the jobs of the sweeper run beside the rows of
tests/bench/growth/fill.sql, with the generic plans of the product, and PostgreSQL reports the plan
of each statement. So a new statement is tested without being listed. SQL files that no request
executes are explained without values.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

import pipeline
from pipeline.curator.store import RunLimits
from pipeline.domain.events import FailureCode
from pipeline.domain.tenants import ProjectId
from pipeline.ingest import profiles
from pipeline.lanes.load import LoadView
from pipeline.ledger.sql_files import PART
from pipeline.ledger.statements import Compiled
from pipeline.stores import Ledger
from tests.bench.growth import fill
from tests.integration.api.test_across import CASES, Case, Tenant, furnish
from tests.support.api_service import LIST, SEARCH, Service, serving
from tests.support.explained import ExecutedPlan, Recorder, explaining, nodes_of

LANES = 20_000
# Size of a vector of the embedder of the tests.
VECTOR_BYTES = 256
# A node may read this many rows for each row that the statement returns.
RATIO = 20
# Rows of a page: a statement that returns fewer may read as many as one that returns these.
PAGE = 100
# Statements that may read more, with the most rows that one node of them reads.
DECLARED: Mapping[str, tuple[int, str]] = {
    r"SELECT count\(\*\) AS count_1 FROM \(SELECT": (12_000, "counts up to COUNTED rows"),
    r"SELECT count\(\*\) AS number, CASE": (12_000, "counts an owner's events up to COUNTED rows"),
    r"WITH read_0 AS": (11_000, "the newest COUNTED events of a project beyond the page"),
    r"WITH newest AS \(SELECT lanes.id AS id, lanes.settled_seq": (
        7_000,
        "up to MOST_LANES lanes of an owner for its rare events, each a look-up",
    ),
    r"WITH newest_rows AS": (11_000, "the newest COUNTED rows of a project beyond the page"),
    r"SELECT .*\(memories.user_id = \$\d+::VARCHAR OR memories.agent_id = ": (
        40_000,
        "an OR of two ids, each with an index, reads what matches before it sorts",
    ),
    r"SELECT DISTINCT unnest\(newest.categories\)": (11_000, "the newest CATEGORIZED memories"),
    r"WITH newest AS \(SELECT memories.terms": (
        100_000,
        "words of the newest MOST_COUNTED memories",
    ),
    r"WITH scope AS \(SELECT facts.id": (10_100, "a scope of at most MOST_WHOLE is read whole"),
    r"WITH reads AS \(SELECT": (8_000, "lookups of words have a limit"),
    r"-- The owners of these kinds whose id or name": (
        40_100,
        "the newest LOOKED_THROUGH of each kind",
    ),
}
# Routes whose work is that of a whole project or installation, by design.
WHOLE = {
    ("DELETE", "/api/v1/orgs/organizations/{org_id}/"),
    ("DELETE", "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/"),
    ("POST", "/reset/"),
    ("GET", "/v1/verify/"),
    ("GET", "/v1/verify/heads/"),
}
# Reads of all scopes: the large tenant reads those of an app, see WIDE.
FOR_EACH_SCOPE = {("GET", "/v1/transfer/export/")}
# Tables whose old rows are deleted, and the column with the time of a row.
RETAINED = {
    "idempotency_keys": "created_at",
    "profile_jobs": "created_at",
    "profile_fields": "replaced_at",
    "private_runs": "ended_at",
    "audit_entries": "at",
    "memory_reads": "at",
    "queue_samples": "minute",
    "kept_answers": "expires_at",
}
# SQL files that read a large table whole.
WHOLE_FILES = {
    "accounting/sql/correct_books.sql": "`memlane repair`",
    "backup/sql/checksum.sql": "a backup",
    "backup/sql/contents.sql": "a backup",
    "reindex/sql/has_rows.sql": "stops at the first row",
    "reindex/sql/mark_memories_stale.sql": "a reindex",
    "reindex/sql/mark_turns_stale.sql": "a reindex",
    "events/sql/forget_rows.sql": "by age, up to its limit",
    "vector_index/sql/mark_lanes_stale.sql": "a collection that the vector store has lost",
    # With few projects in the ledger, a generic plan expects a shadow to be as large as they are.
    "replays/sql/adopt_events.sql": "the switch of a replay",
    "replays/sql/merge_conflicts.sql": "the switch of a replay",
    "replays/sql/merge_suggestions.sql": "the switch of a replay",
    "replays/sql/merge_kept.sql": "the switch of a replay",
}
SINCE = "/v1/changes/?from=2020-01-01"
WIDE_LISTS: tuple[dict[str, Any], ...] = (
    {"app_id": "web"},
    {"agent_id": "helper"},
    {"user_id": "*"},
    {"run_id": "*"},
    {"user_id": "u77"},
    {"OR": [{"user_id": "u77"}, {"agent_id": "helper"}]},
)
SEARCHED = ({"user_id": "u77"}, {"app_id": "web"}, {"agent_id": "helper"})
EVENT_OWNERS = ("user_id=u77", "agent_id=helper", "app_id=web", "app_id=old", "run_id=r500")
SCOPED_LISTS = (
    *("/v1/memories/events/?", "/v1/curator/runs/?", "/v1/replays/?", "/v1/conflicts/?"),
    *("/v1/conflicts/?state=OPEN&", "/v1/conflicts/?state=RESOLVED&", "/v1/suggestions/?"),
    *("/v1/suggestions/?state=OPEN&", "/v1/suggestions/?state=REJECTED&kind=UPDATE&"),
    "/v1/suggestions/?kind=COMBINE&",
)
EVENT_FILTERS = (
    *("status=FAILED", "status=PENDING", "status=PENDING,FAILED", "status=SUCCEEDED"),
    *("event_type=ADD", "event_type=EXPORT", "event_type=EXPORT&status=FAILED"),
    *("start_date=2020-01-01", "status=FAILED&end_date=2020-01-01"),
)
WIDE = (
    *("/v1/memories/?user_id=u77", "/v1/memories/?app_id=web", "/v1/memories/?agent_id=helper"),
    *("/v1/events/?user_id=u77", "/v1/events/?agent_id=helper", "/v1/events/?app_id=web"),
    *("/v1/events/?app_id=old", "/v1/events/?app_id=old&page=3"),
    *(f"/v1/events/?{owner}&{rare}" for owner in EVENT_OWNERS for rare in EVENT_FILTERS),
    *("/v1/events/?event_type=EXPORT", "/v1/events/?event_type=PROFILE&page_size=1"),
    *("/v1/events/?status=FAILED", "/v1/events/?graph_status=FAILED", "/v1/events/?page=2"),
    *("/v1/entities/?page_size=100", "/v1/entities/?page=2&page_size=100", "/v1/stats/"),
    "/v1/transfer/export/?app_id=web",
    *("/v1/graph/?agent_id=helper", "/v1/graph/?user_id=u77", "/v1/graph/export/?user_id=u77"),
    *(SINCE, f"{SINCE}&app_id=web", f"{SINCE}&agent_id=helper", f"{SINCE}&user_id=u77"),
    *(
        "/v1/memories/?user_id=u77&as_of=2100-01-01",
        "/v1/memories/?user_id=u77&valid_at=2100-01-01",
    ),
    *("/v1/memories/events/?page=2", "/v1/curator/runs/?page=2", "/v1/suggestions/?page=2"),
    *(
        "/v1/suggestions/?state=OPEN",
        "/v1/suggestions/?state=REJECTED",
        "/v1/suggestions/?state=INVALID",
        "/v1/suggestions/?state=OPEN&kind=DELETE",
        "/v1/suggestions/?kind=COMBINE",
        "/v1/conflicts/",
        "/v1/conflicts/?state=OPEN",
        "/v1/conflicts/?state=RESOLVED",
        "/v1/summaries/?user_id=u77",
    ),
    *(f"{path}{owner}" for path in SCOPED_LISTS for owner in EVENT_OWNERS),
    *(f"{path}app_id=old&page=2&page_size=20" for path in SCOPED_LISTS),
)


@dataclass
class Filled:
    """A server with a large tenant and a small one, and what it has executed."""

    service: Service
    recorder: Recorder
    large: Tenant
    small: Tenant
    executed: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)
    # Rows that one node of any statement may read.
    usual_most: float = RATIO * PAGE

    async def send(self, tenant: Tenant, method: str, path: str, **options: Any) -> None:
        answer = await self.service.client.request(
            method, path, headers=tenant.asking() | {"Idempotency-Key": path}, **options
        )
        assert answer.status_code < 500 or answer.status_code == 501, (path, answer.text)
        await self.note(f"{method} {path} {options.get('json') or ''}")

    async def send_case(self, tenant: Tenant, method: str, path: str, case: Case) -> None:
        ids = asdict(tenant.holding) | {"entity_type": "user", "entity_id": "maya"}
        ids |= {"job_id": "job", "run_id": "other", "user_id": "maya"}
        options = {"json": case.body(tenant.holding), "params": case.query(tenant.holding)}
        await self.send(tenant, method, path.replace(":path", "").format(**ids), **options)

    async def note(self, what: str) -> None:
        """Keep the statements that were executed since the last call, and their faults."""
        for plan in await self.recorder.taken():
            self.executed.add(plan.words)
            if plan.read > max(self.usual_most, _most(plan)):
                self.faults.setdefault(plan.words[:400], f"{what}\n    {plan}")


def _most(plan: ExecutedPlan) -> float:
    """The most rows that one node of the plan may read."""
    usual = RATIO * max(plan.returned, PAGE)
    declared = (most for words, (most, _) in DECLARED.items() if re.match(words, plan.words))
    return max(usual, *declared, 0)


@asynccontextmanager
async def filled(ledger: Ledger) -> AsyncIterator[Filled]:
    async with serving(ledger, sync_wait_s=0.01) as service:
        small = await furnish(service, "small", "I live in Lima.")
        large = await furnish(service, "large", "I live in Oslo.")
        project_id = UUID(large.holding.project_id)
        await fill.fill(url_of(ledger), project_id, lanes=LANES, vector_bytes=VECTOR_BYTES)
        engines = {ledger.engine, ledger.pools.adds}
        with explaining(*engines) as recorder:
            for engine in engines:
                await engine.dispose()
            yield Filled(service, recorder, large, small)
        for engine in engines:
            await engine.dispose()


def url_of(ledger: Ledger) -> str:
    return ledger.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.mark.timeout(900)
async def test_statements_read_about_as_many_rows_as_they_return(module_ledger: Ledger) -> None:
    async with filled(module_ledger) as server:
        await reads(server)
        await writes(server)
        await jobs(server)
        faults = server.faults | await unexecuted(url_of(module_ledger), server.executed)
    assert not faults, "\n\n".join(faults.values())


async def reads(server: Filled) -> None:
    """Send the reads of all routes as both tenants, and wide ones as the large tenant."""
    for tenant, left_out in ((server.small, WHOLE), (server.large, WHOLE | FOR_EACH_SCOPE)):
        for (method, path), cases in CASES.items():
            if (method == "GET" or "search" in path) and (method, path) not in left_out:
                for case in cases:
                    await server.send_case(tenant, method, path, case)
    for path in WIDE:
        await server.send(server.large, "GET", path)
    for filters in WIDE_LISTS:
        await server.send(server.large, "POST", LIST, json={"filters": filters})
    for filters in SEARCHED:
        searched = {"filters": filters, "query": "dish number 77"}
        await server.send(server.large, "POST", SEARCH, json=searched)


async def writes(server: Filled) -> None:
    """Send the other requests of all routes, those that delete last, and run the stages."""
    others = [
        (method, path, case)
        for (method, path), cases in CASES.items()
        for case in cases
        if method != "GET" and (method, path) not in WHOLE
    ]
    for method, path, case in sorted(others, key=lambda other: other[0] == "DELETE"):
        await server.send_case(server.small, method, path, case)
        await server.service.engine.drain()
        await server.note(f"stages after {method} {path}")


async def jobs(server: Filled) -> None:
    """Run the statements of the sweeper's ticks and of its jobs, and one of the console."""
    engine, ledger = server.service.engine, server.service.engine.ledger
    load = LoadView(ledger.engine)
    large = ProjectId(UUID(server.large.holding.project_id))
    for name, job in {
        "page of users": ledger.owners.matching(large, "u77", limit=50),
        "circuits": ledger.circuits.down(),
        "release": ledger.due_lanes.release(FailureCode.LLM_UNAVAILABLE, limit=10),
        "load": load.lanes(),
        "look": load.look(scope_events=100),
        "sweep": ledger.due_lanes.sweep(limit=1_000),
        "schedule": ledger.curator.schedule(RunLimits(10, 1_000), limit=20),
        "runs": ledger.curator.sweep(limit=20),
        "conflicts": ledger.conflicts.close_expired(limit=1_000),
        "summaries": ledger.summaries.claim_due(limit=100, lease_s=300),
        "profiles": profiles.refresh(pause_s=0.0, most=10, ledger=ledger, dispatcher=engine.hints),
        "profile values": engine.retention.forget_profile_values(),
        "past states": engine.retention.forget_past_states(),
        "erased events": engine.retention.forget_erased(),
        "profile jobs": engine.retention.forget_profile_jobs(),
        "keys": engine.retention.forget_keys(),
        "answers": engine.retention.forget_answers(),
        "samples": engine.retention.forget_samples(),
        "audit": engine.retention.forget_audit(),
        "fold": ledger.balance.fold(),
        "seal": ledger.seals.seal(),
        "term rebuild": ledger.term_rebuild.walk(),
        "vectors": engine.services.index.catch_up(stale_for_s=15),
        "turns": engine.turns.catch_up(stale_for_s=60, limit=200),
        "accounts": ledger.balance.totals(),
    }.items():
        await job
        await server.note(f"job {name}")


async def unexecuted(url: str, executed: set[str]) -> dict[str, str]:
    """Faults of the SQL files that did not run: a large table read without an index condition."""
    faults = {}
    large = {table for table, _ in fill.statements()}
    partial = "SELECT indexrelid::regclass::text FROM pg_index WHERE indpred IS NOT NULL"
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan"
        )
        few = {row[0] for row in await connection.fetch(partial)}
        for name, words in sql_files():
            if " ".join(words.split()) in executed or name in WHOLE_FILES:
                continue
            try:
                plan = await _generic_plan(connection, words)
            except (asyncpg.UndefinedTableError, asyncpg.PostgresSyntaxError):
                continue  # a condition, which statements of SQLAlchemy contain
            for node in nodes_of(plan):
                table, index = node.get("Relation Name"), node.get("Index Name")
                if table in large and index not in few and reads_all(node):
                    faults[name] = f"{name}: {node['Node Type']} {index or ''} of {table}"
    finally:
        await connection.close()
    return faults


async def _generic_plan(connection: asyncpg.Connection[Any], words: str) -> dict[str, Any]:
    """The plan of a statement for any values."""
    await connection.execute(f"PREPARE explained AS {words}")
    types = "SELECT parameter_types FROM pg_prepared_statements WHERE name = 'explained'"
    values = ", ".join("NULL" for _ in await connection.fetchval(types))
    execute = "EXECUTE explained" + (f" ({values})" if values else "")
    answer = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {execute}")
    await connection.execute("DEALLOCATE explained")
    [explained] = json.loads(answer)
    return dict(explained["Plan"])


def reads_all(node: Mapping[str, Any]) -> bool:
    scans = "Scan" in node["Node Type"] and node["Node Type"] != "Tid Scan"
    return scans and not {"Index Cond", "Recheck Cond", "TID Cond"} & node.keys()


def sql_files() -> Iterator[tuple[str, str]]:
    """Paths and texts of the SQL files that are statements, not parts of others."""
    root = Path(pipeline.__file__).parent
    files = [file for file in root.rglob("*.sql") if "adapters" not in file.parts]
    parts = {part for file in files for part in PART.findall(file.read_text("utf-8"))}
    for file in sorted(files):
        package = import_module(".".join(("pipeline", *file.parent.relative_to(root).parts)))
        if file.stem in parts or not hasattr(package, "statement"):
            continue
        written = file.read_text("utf-8")
        tables = ("memories", "turn_vectors") if "{table}" in written else ("",)
        for table in RETAINED if "{time}" in written else tables:
            query = package.statement(file.stem, table=table, time=RETAINED.get(table, ""))
            yield str(file.relative_to(root)), Compiled.of(query).words
