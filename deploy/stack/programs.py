"""The processes of a stack, as data."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from deploy.stack import ports
from deploy.stack.command import Command, inherited_environment
from deploy.stack.failure import StackError
from deploy.stack.layout import PROJECT_ROOT, Layout
from deploy.stack.server import Server, http_ok
from deploy.stack.servers import Chroma, Postgres, Redis
from pipeline.model_settings import MINILM, NO_MODEL, RULES, ModelSettings
from pipeline.settings import PREFIX, Settings

READY = ("--ready-file", "{ready_file}")
START = ("--start-file", "{start_file}")
# Python's arguments for each of our programs. Tests replace them with fakes (`--programs FILE`).
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "check": ("-m", "deploy.stack.check", "{report}"),
    "migrate": ("-m", "pipeline.migrate", "--key-file", "{key_file}"),
    "api": ("-m", "api", *READY, *START, "--busy-file", "{busy_file}"),
    "standby": ("-m", "api.standby", *READY, "--busy-file", "{busy_file}"),
    "worker": ("-m", "workers", "{name}", *READY, *START),
    "sweeper": ("-m", "workers.sweeper", *READY, *START),
    "reindex": ("-m", "workers.reindex"),
}

# One thread for each worker, because the workers share the cores. LiteLLM must not fetch its price
# list from the network at import.
CHILD_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHONUNBUFFERED": "1",
}
# Of workers, and of the sweeper, which writes the index: so that adds are accepted and searches
# answered quickly while events are processed. Their backends in PostgreSQL take it over.
BACKGROUND_NICE = 10
# The stack's own servers, each with the setting that names another one.
SERVERS: Mapping[type[Server], str] = {
    Postgres: "database_url",
    Redis: "broker_url",
    Chroma: "chroma_url",
}


@dataclass(frozen=True)
class Program:
    """One process to supervise.

    `prepare`: makes everything ready for a start and returns the command; may block. `ready`: may
    block for a second. `end_rest`: ends processes that outlived this one; may block. `command`: of
    one of our own programs, to find out if new settings change it.
    """

    name: str
    prepare: Callable[[], Command]
    ready: Callable[[], bool]
    end_rest: Callable[[], None] = lambda: None
    command: Command | None = None


@dataclass(frozen=True)
class Plan:
    """All processes of a stack. `edges` wait for the start file, until `migrate` and `check` end.

    `check` is None if the settings name only the stack's own servers and models.
    """

    servers: tuple[Program, ...]
    migrate: Command
    check: Command | None
    edges: tuple[Program, ...]


def plan(
    settings: Settings, layout: Layout, programs: Mapping[str, tuple[str, ...]] = PROGRAMS
) -> Plan:
    """The processes for these settings.

    Errors: StackError if the API's port is in use, or if a server's binary is missing.
    """
    require_complete(settings)
    require_port(settings)
    servers = own_servers(settings, layout)
    env = environment(settings, layout, servers)
    return Plan(
        servers=tuple(
            Program(server.name, server.prepared, server.ready, server.end_rest)
            for server in servers
        ),
        migrate=_python(programs, layout, env, "migrate"),
        check=check_command(settings, layout, programs),
        edges=_edges(settings, layout, programs, env),
    )


def running_edges(
    settings: Settings, layout: Layout, programs: Mapping[str, tuple[str, ...]] = PROGRAMS
) -> tuple[Program, ...]:
    """API, workers and sweeper for these settings, on the servers that run already."""
    require_complete(settings)
    env = environment(settings, layout, running_servers(settings, layout))
    return _edges(settings, layout, programs, env)


def _edges(
    settings: Settings,
    layout: Layout,
    programs: Mapping[str, tuple[str, ...]],
    env: Mapping[str, str],
) -> tuple[Program, ...]:
    """API, workers and sweeper.

    By default, one API process starts, and the others once it is busy. A number in the settings is
    that of processes that start at once.
    """
    build = functools.partial(_python, programs, layout, env)
    # The first one has the plain name; all share one port.
    apis = ("api", *(f"api-{n}" for n in range(2, settings.api_processes + 1)))
    workers = (f"worker-{number}" for number in range(1, settings.workers + 1))
    noted = "{ready_file}" in programs["api"]  # not by a stand-in of a test

    def ready(name: str) -> bool:
        return (not noted or layout.ready_file(name).exists()) and http_ok(settings.port, "/readyz")

    wait = noted and "api_processes" not in settings.model_fields_set
    layout.busy_file.unlink(missing_ok=True)
    return (
        *(
            _program(layout, build("standby", name=name), name)
            if wait and name != "api"
            else _program(layout, build("api", name=name), name, functools.partial(ready, name))
            for name in apis
        ),
        *(_program(layout, build("worker", name=n, nice=BACKGROUND_NICE), n) for n in workers),
        _program(layout, build("sweeper", nice=BACKGROUND_NICE), "sweeper"),
    )


def _program(
    layout: Layout, command: Command, name: str, ready: Callable[[], bool] | None = None
) -> Program:
    """One of our programs; `ready`: by default, if its ready file exists."""
    command = replace(command, env={**command.env, "PROMETHEUS_MULTIPROC_NAME": name})
    ready_file = layout.ready_file(name)

    def prepare() -> Command:
        ready_file.unlink(missing_ok=True)
        return command

    return Program(name, prepare, ready or ready_file.exists, command=command)


def require_complete(settings: Settings) -> None:
    """Check settings that need no server: those which need each other, and built-in models.

    Errors: StackError.
    """
    models = [
        ("MEMLANE_LLM__MODEL", settings.llm, RULES),
        *(("MEMLANE_LLM__FALLBACKS", model, RULES) for model in settings.llm.fallbacks),
        ("MEMLANE_EMBEDDER__MODEL", settings.embedder, MINILM),
        ("MEMLANE_RERANKER__MODEL", settings.reranker, ""),
    ]
    for setting, model, built_in in models:
        if reason := no_such_built_in(model, built_in):
            raise StackError(f"{setting}={reason}: set it to {advised(built_in)}.")
    if settings.vectors == "qdrant" and settings.qdrant_url is None:
        raise StackError("MEMLANE_VECTORS=qdrant: set MEMLANE_QDRANT_URL, too.")


def no_such_built_in(model: ModelSettings, built_in: str) -> str | None:
    """The reason why a `local/` model cannot be used; None for `built_in` and remote models."""
    if model.model == built_in or not model.model.startswith("local/"):
        return None
    return f"{model.model}: there is no such built-in"


def advised(built_in: str) -> str:
    """The models that a setting may name. `built_in`: empty if there is none."""
    return f"provider/model or {built_in}" if built_in else "provider/model"


def require_port(settings: Settings) -> None:
    """Check that the API's port is free. Errors: StackError."""
    if reason := ports.problem(settings.port):
        raise StackError(
            f"port {settings.port} of {ports.HOST} cannot be used: {reason}. "
            "Set MEMLANE_PORT to another one."
        )


def names_others(settings: Settings) -> bool:
    """True if the settings name a server or model outside the stack."""
    urls = (settings.database_url, settings.broker_url, settings.chroma_url)
    models = (*settings.llm.chain, settings.embedder, settings.reranker)
    remote = any(
        not model.model.startswith("local/") and model.model != NO_MODEL for model in models
    )
    return remote or settings.vectors == "qdrant" or any(url is not None for url in urls)


def check_command(
    settings: Settings, layout: Layout, programs: Mapping[str, tuple[str, ...]] = PROGRAMS
) -> Command | None:
    """The command that checks the settings, with the user's own environment variables only.

    The stack's own servers are not checked: they may not run yet.
    """
    if not names_others(settings):
        return None
    env = inherited_environment() | CHILD_ENVIRONMENT
    return _python(programs, layout, env, "check")


def own_kinds(settings: Settings) -> list[type[Server]]:
    """Classes of the servers that are needed and that no setting names."""
    return [
        kind
        for kind, setting in SERVERS.items()
        if getattr(settings, setting) is None
        and (kind is not Chroma or settings.vectors == "chroma")
    ]


def own_servers(settings: Settings, layout: Layout) -> list[Server]:
    """The stack's own servers, on their last ports if these are still free."""
    kinds = own_kinds(settings)
    names = [kind.name for kind in kinds]
    port_of = ports.remembered(layout.ports, names, reserved={settings.port})
    return [kind(layout.root, port=port_of[kind.name]) for kind in kinds]


def running_servers(settings: Settings, layout: Layout) -> list[Server]:
    """The stack's own servers on the ports that they listen on."""
    port_of = ports.read(layout.ports)
    return [kind(layout.root, port=port_of.get(kind.name)) for kind in own_kinds(settings)]


def environment(settings: Settings, layout: Layout, servers: list[Server]) -> dict[str, str]:
    """Environment of api, workers and sweeper: the user's variables and the URLs of our servers."""
    env = inherited_environment()
    if any(server.name == "postgres" for server in servers):
        # Database clients would apply variables such as PGSSLMODE to our server.
        env = {name: value for name, value in env.items() if not name.startswith("PG")}
        env["MEMLANE_SEARCHES_AT_ONCE"] = str(searches_at_once(settings))
    # Several processes of one machine cannot share the port; the API's /metrics has their figures.
    env.pop("MEMLANE_PROBE_PORT", None)
    env |= CHILD_ENVIRONMENT
    env |= {f"{PREFIX}{SERVERS[type(server)]}".upper(): server.url for server in servers}
    env["MEMLANE_DATA_DIR"] = str(layout.root)
    env["PROMETHEUS_MULTIPROC_DIR"] = str(layout.metrics)  # one /metrics for all of them
    env["MEMLANE_PORT"] = str(settings.port)
    for name in ("NO_PROXY", "no_proxy"):  # our own servers are not behind a proxy
        env[name] = ",".join(filter(None, [env.get(name), ports.HOST, "localhost"]))
    return env


def searches_at_once(settings: Settings, *, cores: int = os.cpu_count() or 1) -> int:
    """Maximum number of searches that one API process computes at the same time.

    Default on one machine with PostgreSQL: for all API processes together, the number of cores
    times the number of processes in a search's path (API, PostgreSQL, and the vector store if
    separate).
    """
    passed = 2 if settings.vectors == "pgvector" else 3
    return settings.searches_at_once or max(1, passed * cores // settings.api_processes)


def _python(
    programs: Mapping[str, tuple[str, ...]],
    layout: Layout,
    env: Mapping[str, str],
    kind: str,
    *,
    name: str | None = None,
    nice: int = 0,
) -> Command:
    """The command of one of our programs."""
    name = name or kind
    values = {
        "name": name,
        "ready_file": str(layout.ready_file(name)),
        "busy_file": str(layout.busy_file),
        "start_file": str(layout.start_file),
        "key_file": str(layout.api_key),
        "report": str(layout.check_report),
    }
    argv = (sys.executable, *(part.format(**values) for part in programs[kind]))
    return Command(argv, env, cwd=PROJECT_ROOT, nice=nice)


def read_programs(path: Path) -> dict[str, tuple[str, ...]]:
    """The table of programs, with those in a JSON file replaced: `{"api": ["-m", "x"], …}`."""
    replaced = json.loads(path.read_text())
    return dict(PROGRAMS) | {kind: tuple(argv) for kind, argv in replaced.items()}
