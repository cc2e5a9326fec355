"""Every read and write of a tenant's rows names the tenant, and the type checker enforces it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mypy import api as mypy

import pipeline
from tests.house.test_house import ROOT, name_of, nodes, sources

# Types that carry the tenant: an id, or a value that was made with one. An Activation is a claim of
# one lane, a RunHint one of a run, a SummaryTask one of a summary, a Grant an authenticated key, a
# WalkRequest a read of a project's graph.
TENANT = re.compile(
    r"\b(ProjectId|OrganizationId|Scope|Project|Shadow|Add|Activation|Batch|Where|Grant"
    r"|RunHint|SummaryTask|WalkRequest)\b"
)
# Where a plain UUID becomes a tenant: the key that authenticates a request, a new project, a
# project looked up in the caller's organization, the row of a claimed lane or run, a shadow's id,
# an expired run.
EDGES = {
    "pipeline/tenants/api_keys.py",
    "pipeline/tenants/private_runs.py",
    "pipeline/tenants/projects.py",
    "pipeline/curator/store.py",
    "pipeline/lanes/batches.py",
    "pipeline/profiles/store.py",
    "pipeline/search/where.py",
    "pipeline/replays/store.py",
    "pipeline/seals/store.py",
    "pipeline/summaries/store.py",
}
# Methods that serve all tenants at once, with the reason.
ALL_TENANTS = {
    "BackupStore.*": "a backup is that of the whole ledger, by the operator",
    "LedgerHealth.*": "the operator's checks of the whole ledger",
    "LedgerRepairs.*": "the operator's repairs of the whole ledger",
    "Recount.*": "the operator's check of all books",
    "LedgerSnapshot.*": "a backup is that of the whole ledger, by the operator",
    "AccessCounts.add": "counts accesses of many projects in one statement, by id",
    "ApiKeys.grants": "the look-up that makes a tenant out of an API key",
    "ApiKeys.last_admin": "a person with the database's password, who has lost the key",
    "MemoryReads.add": "stores reads of many projects in one statement, by memory",
    "Profiles.claim_due": "the sweeper",
    "Projects.allow": "whether any project allows an origin; no row of a tenant is read",
    "Projects.any": "whether this is a new installation",
    "Projects.create": "makes a tenant",
    "QueueSamples.take": "housekeeping",
    "QueueView.dispatchable_s": "the metrics; an age only",
    "QueueView.waiting_s": "the metrics; ages only",
    "Balance.add_searches": "counts searches of many projects in one statement, by project",
    "Balance.fold": "housekeeping",
    "Collections.*": "names of the vector store's collections, no tenant's data",
    "Conflicts.close_expired": "the sweeper",
    "ConsoleSessions.*": "sessions lead to an API key, the look-up that makes a tenant",
    "Circuits.*": "circuit breakers of providers, shared by all projects",
    "CuratorRuns.schedule": "the sweeper",
    "CuratorRuns.sweep": "the sweeper",
    "Direct.*": "executes statements of the stores",
    "CompiledShapes.of": "compiles statements, whose parameter names the tenant",
    "EndNotifications.*": "one connection for all requests, which checked their events' projects",
    "SealingBatch.run": "the sweeper; the project is that of the batch",
    "Seals.seal": "the sweeper",
    "Verification.page": "the project is that of the verification",
    "Erasures.claim": "the eraser takes the next erasure of any project",
    "Erasures.fold_books": "housekeeping",
    "Erasures.end": "the eraser's claimed erasures",
    "Compactions.count": "collections of the vector index",
    "Compactions.paused": "collections of the vector index",
    "Compactions.due": "collections of the vector index",
    "Compactions.pause": "collections of the vector index",
    "Compactions.forget": "collections of the vector index",
    "Erasures.record_vectors": "the eraser's claimed erasures",
    "Events.progress": "one poll for all requests that wait; each checked its event's project",
    "GraphOutbox.*": "the mirror of the graph as a whole; `covers` takes the project of a search",
    "Indexes.*": "the vector index as a whole",
    "OwnCollections.*": "the vector index as a whole; a collection's name follows from the project",
    "Lanes.claim": "a worker's edge: the lane's row names the tenant",
    "Lanes.is_low": "the worker that had the lane asks for its next hint",
    "DueLanes.doubt_hints": "the sweeper",
    "Adds.add_terms": "terms of adds that were accepted, by the id of the event",
    "Adds.locked": "group commit asks which lanes of its adds are locked",
    "DueLanes.release": "the sweeper",
    "LaneLeases.renew": "the heartbeat of all lanes a worker holds",
    "DueLanes.sweep": "the sweeper",
    "LoadView.*": "backpressure counts the events of all projects",
    "Summaries.claim": "a worker's edge: the lane's row names the tenant",
    "Summaries.claim_due": "the sweeper",
    "Summaries.task": "a worker's edge: the lane's row names the tenant",
    "PrivateRuns.expired": "the sweeper",
    "DiskSpace.require": "the whole server",
    "Statistics.analyze_grown": "housekeeping",
    "TermRebuild.cut_missing": "housekeeping",
    "TermRebuild.walk": "housekeeping",
    "Recordings.outputs": "the batch that a replay's own row names, of the project it copies",
    "Retention.*": "housekeeping",
    "VectorSource.*": "the projector",
    "MemoryVectors.*": "the projector; `where` of `stale_vectors` names the project of a search",
    "TurnVectors.*": "the projector; `keys` translates ids that a search then reads by project",
    "Webhooks.claim": "the sender takes the next deliveries of any project",
    "Webhooks.end": "the sender's claimed delivery",
    "Webhooks.forget": "housekeeping",
    "Webhooks.give_up_excess": "housekeeping",
}


def _methods() -> Iterator[tuple[str, Any]]:
    """Every public async method of a class in the ledger, as `Class.method`."""
    for entry in pkgutil.walk_packages(pipeline.__path__, "pipeline."):
        if (
            entry.name == "pipeline.stores"
            or ".migrations" in entry.name
            or ".adapters" in entry.name
        ):
            continue
        module = importlib.import_module(entry.name)
        if ".ledger." not in module.__name__ and not vars(module).keys() & {
            "AsyncEngine",
            "AsyncConnection",
            "LedgerStore",
            "WakingStore",
            "fetch",
        }:
            continue  # uses no database
        for name, value in vars(module).items():
            if not inspect.isclass(value) or value.__module__ != module.__name__:
                continue
            for method, function in vars(value).items():
                if inspect.iscoroutinefunction(function) and not method.startswith("_"):
                    yield f"{name}.{method}", function


METHODS = dict(_methods())


def _is_excepted(method: str) -> bool:
    return method in ALL_TENANTS or f"{method.split('.', maxsplit=1)[0]}.*" in ALL_TENANTS


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_a_store_takes_the_tenant_or_says_why_not(method: str) -> None:
    parameters = inspect.signature(METHODS[method]).parameters.values()
    names_tenant = any(TENANT.search(str(parameter.annotation)) for parameter in parameters)
    assert names_tenant or _is_excepted(method)


def test_no_exception_is_left_over() -> None:
    classes = {method.split(".")[0] for method in METHODS}
    known = METHODS.keys() | {f"{name}.*" for name in classes}
    assert ALL_TENANTS.keys() <= known


def test_a_project_id_that_is_taken_is_used() -> None:
    unused = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in sources("pipeline")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _takes_unused(node, "project_id")
        and not _is_declared_only(node)
    ]
    assert not unused


def _takes_unused(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    taken = [*function.args.args, *function.args.kwonlyargs]
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return any(argument.arg == name for argument in taken) and name not in used


def _is_declared_only(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell if a method of a protocol has only a docstring or `...`."""
    return all(isinstance(node, ast.Expr) for node in function.body)


def test_tenants_are_made_at_the_edges_alone() -> None:
    makers = {
        name_of(path)
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("ProjectId", "OrganizationId")
    }
    assert makers == EDGES


PREAMBLE = """
from uuid import UUID
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.stores import Ledger

async def read(ledger: Ledger, tenant: ProjectId, any_id: UUID) -> None:
"""
# Calls with the error codes that mypy reports for each; the first is the control.
CALLS: dict[str, set[str]] = {
    "    await ledger.memories.get(tenant, any_id)": set(),
    "    await ledger.memories.get(any_id, any_id)": {"arg-type"},
    "    await ledger.memories.get(any_id, tenant)": {"arg-type"},
    "    await ledger.memories.get(tenant)": {"call-arg"},
    "    Scope(any_id)": {"arg-type"},
}


def test_a_store_called_without_the_tenant_does_not_type_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    snippet = tmp_path / "snippet.py"
    snippet.write_text(PREAMBLE + "\n".join(CALLS) + "\n", "utf-8")
    output, errors, _ = mypy.run(["--config-file", "pyproject.toml", str(snippet)])
    assert not errors
    first = PREAMBLE.count("\n") + 1
    reported = set(re.findall(r"snippet\.py:(\d+): error: .*\[(.*)\]$", output, re.MULTILINE))
    expected = {
        (str(first + at), code) for at, codes in enumerate(CALLS.values()) for code in codes
    }
    assert reported == expected, output
