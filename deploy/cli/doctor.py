"""memlane doctor: checks of this machine, its settings, servers and models, one line for each."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import typer

from deploy.cli import ledger_checks
from deploy.cli.context import local
from deploy.cli.findings import FAIL, OK, WARN, Finding, show
from deploy.cli.recovery import database_url
from deploy.stack import journal, ports
from deploy.stack.check import CHECKS, call_llm
from deploy.stack.failure import StackError
from deploy.stack.layout import Layout, command_line, recovery_line
from deploy.stack.postgres import find_binaries
from deploy.stack.programs import SERVERS, advised, no_such_built_in, own_kinds
from deploy.stack.servers import find_redis
from deploy.stack.supervisor import is_running
from pipeline import settings as settings_of
from pipeline.model_settings import MINILM, NO_MODEL, RULES, ModelSettings
from pipeline.settings import Settings

LEAST_FREE_BYTES = 2**30
PYTHON = "3.11"
# Time for an API to answer: it is on this host.
PORT_S = 2.0
RULES_NOTE = f"{RULES}: fixed rules, no language model. Set MEMLANE_LLM__MODEL to use one"


def doctor() -> None:
    """Check this machine, settings, servers, models and the ledger: one line each.

    `memlane repair` does what can be done without a decision.
    """
    raise typer.Exit(show(examine(*local())))


def examine(configured: Settings, layout: Layout) -> list[Finding]:
    """Run all checks of this machine, its settings, and the configured servers and models."""
    running = is_running(layout)
    reports = asyncio.run(_probe(configured))  # noqa: TID251  a separate process
    return [
        check_python(),
        check_settings(),
        check_data_dir(layout.root),
        check_stack(layout, running=running),
        check_port(configured.port, running=running),
        *check_key(layout),
        *_servers(configured, layout, reports, running=running),
        *_models(configured, reports),
        *_ledger(configured, layout),
    ]


def _ledger(configured: Settings, layout: Layout) -> list[Finding]:
    """Findings about the ledger; none if there is no database to ask."""
    try:
        url = database_url(configured, layout)
    except StackError:
        return []
    return asyncio.run(ledger_checks.examine(url, configured))  # noqa: TID251  a separate process


async def _probe(configured: Settings) -> Mapping[str, journal.Report]:
    """Check the servers and models; unlike `up`, with a call to each language model."""
    checks = {**CHECKS, "llm": call_llm}
    reports = await asyncio.gather(*(probe(configured) for probe in checks.values()))
    return dict(zip(checks, reports, strict=True))


def check_python() -> Finding:
    """The Python version. It is always OK: an older Python cannot install the package."""
    return Finding("python", OK, f"{platform.python_version()} ({PYTHON} or newer needed)")


def check_settings() -> Finding:
    """The settings that are set. An unknown one stops every command at its start."""
    names = settings_of.given_names()
    text = f"{len(names)} set: {', '.join(names)}" if names else "none set: all defaults"
    return Finding("settings", OK, text)


def check_data_dir(root: Path) -> Finding:
    """Check that the data directory is writable and has 1 GiB of free space.

    If it does not exist, its first existing parent is checked.
    """
    place = next(path for path in (root, *root.parents) if path.exists())
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        advice = "set MEMLANE_DATA_DIR to a directory you may write to"
        return Finding("data", FAIL, f"{root} cannot be written to", advice)
    free_bytes = shutil.disk_usage(place).free
    text = f"{root}, {free_bytes / 2**30:.1f} GiB free"
    if free_bytes < LEAST_FREE_BYTES:
        return Finding("data", WARN, text, "free some space: a full disk stops the ledger")
    return Finding("data", OK, text)


def check_stack(layout: Layout, *, running: bool) -> Finding:
    """State of the local stack, as its supervisor reports it."""
    state = journal.read(layout)
    if not running or state is None:
        return Finding("stack", OK, f"not running; `{command_line('up')}` starts it")
    unhealthy = [
        name
        for name, note in state.processes.items()
        if note.state is not journal.ProcessState.HEALTHY
    ]
    if state.phase is journal.Phase.HEALTHY and not unhealthy:
        return Finding("stack", OK, f"running, {len(state.processes)} processes healthy")
    text = f"{state.phase}: {', '.join(unhealthy) or 'all processes healthy'}"
    return Finding("stack", WARN, text, f"see `{command_line('logs')}`")


def check_port(port: int, *, running: bool) -> Finding:
    """Check that the API's port is free, or used by this stack or by an API without a stack."""
    if running:
        return Finding("port", OK, f"{port}, used by this stack")
    if version := api_version(port):
        return Finding("port", OK, f"{port}, used by an API of Memlane {version}")
    if reason := ports.problem(port):
        text = f"{port} of {ports.HOST} cannot be used: {reason}"
        return Finding("port", FAIL, text, "set MEMLANE_PORT to another one")
    return Finding("port", OK, f"{port} is free")


def api_version(port: int) -> str | None:
    """Version of the API that listens on a port of this host, as in a container; None without."""
    try:
        answer = httpx.get(f"http://{ports.HOST}:{port}/healthz", timeout=PORT_S).json()
    except (httpx.HTTPError, ValueError):
        return None
    return str(answer["version"]) if isinstance(answer, dict) and "version" in answer else None


def check_key(layout: Layout) -> list[Finding]:
    """Check that a stack that was started before has its key; no finding for a new one."""
    if not layout.env.exists():
        return []
    if layout.key() is None:
        advice = f"`{recovery_line(layout.api_key)}` creates another one"
        return [Finding("key", WARN, f"no key file {layout.api_key}", advice)]
    return [Finding("key", OK, f"in {layout.api_key}")]


def _servers(
    configured: Settings,
    layout: Layout,
    reports: Mapping[str, journal.Report],
    *,
    running: bool,
) -> list[Finding]:
    """Findings about the configured servers, and the servers that the local stack runs itself."""
    advice = "check that it runs, and the host, port, user and password in this setting"
    names = {"postgres": "database", "redis": "broker", "chroma": "vectors"}
    findings = []
    for kind, setting in SERVERS.items():
        if kind in own_kinds(configured):
            findings.append(_own(kind.name, names[kind.name], layout, running=running))
        elif getattr(configured, setting) is not None:
            report = reports[setting.removesuffix("_url")]
            good = f"MEMLANE_{setting.upper()} answers"
            findings.append(_reported(names[kind.name], report, good, advice))
    if configured.vectors == "pgvector":
        findings.append(Finding("vectors", OK, "pgvector, in the database"))
    if configured.vectors == "qdrant":
        good = "MEMLANE_QDRANT_URL answers"
        findings.append(_reported("vectors", reports["qdrant"], good, advice))
        if configured.qdrant_url is None:
            text, fix = "MEMLANE_VECTORS=qdrant without a server", "set MEMLANE_QDRANT_URL"
            findings[-1] = Finding("vectors", FAIL, text, fix)
    return findings


def _own(kind: str, check: str, layout: Layout, *, running: bool) -> Finding:
    """A server of the local stack: it listens, or its binary is installed."""
    if running:
        port = ports.read(layout.ports).get(kind)
        if port is not None and ports.problem(port) is not None:
            return Finding(check, OK, f"own {kind} listens on port {port}")
        advice = f"see `{command_line('logs')}`"
        return Finding(check, FAIL, f"own {kind} does not listen", advice)
    try:
        BINARIES[kind]()
    except StackError as error:
        return Finding(check, FAIL, f"own {kind} cannot start", str(error))
    return Finding(check, OK, f"own {kind} is installed and starts with the stack")


def _find_chroma() -> None:
    if importlib.util.find_spec("chromadb_rust_bindings") is None:
        raise StackError(
            "install it with `pip install 'memlane[local]'`, or set MEMLANE_CHROMA_URL"
        )


BINARIES: Mapping[str, Callable[[], object]] = {
    "postgres": find_binaries,
    "redis": find_redis,
    "chroma": _find_chroma,
}


def _models(configured: Settings, reports: Mapping[str, journal.Report]) -> list[Finding]:
    findings = [
        _model("llm", configured.llm, reports["llm"], built_in=RULES),
        _model("embedder", configured.embedder, reports["embedder"], built_in=MINILM),
    ]
    if configured.reranker.model != NO_MODEL:
        findings.append(_model("reranker", configured.reranker, reports["reranker"], built_in=""))
    return findings


def _model(name: str, model: ModelSettings, report: journal.Report, *, built_in: str) -> Finding:
    """A built-in model, or the report about a remote one."""
    if model.model == built_in:
        return Finding(name, OK, RULES_NOTE if built_in == RULES else f"{built_in}, built in")
    if reason := no_such_built_in(model, built_in):
        advice = f"set MEMLANE_{name.upper()}__MODEL to {advised(built_in)}"
        return Finding(name, FAIL, reason, advice)
    good = f"{model.model}: provider known" if name == "reranker" else f"{model.model} answers"
    advice = f"check MEMLANE_{name.upper()}__MODEL, …__API_BASE and …__API_KEY"
    return _reported(name, report, good, advice)


def _reported(check: str, report: journal.Report, good: str, advice: str) -> Finding:
    if report.refused:
        return Finding(check, FAIL, "; ".join(report.refused), advice)
    if report.warnings:
        return Finding(check, WARN, "; ".join(report.warnings), advice)
    return Finding(check, OK, good)
