"""Processes of the stack: their environment, and no secret on a command line."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from deploy.stack import ports
from deploy.stack.banner import banner
from deploy.stack.failure import StackError
from deploy.stack.journal import ProcessNote, State
from deploy.stack.layout import PROJECT_ROOT, Layout
from deploy.stack.programs import (
    PROGRAMS,
    environment,
    own_servers,
    plan,
    read_programs,
    require_complete,
    searches_at_once,
)
from pipeline.model_settings import LLMSettings, ModelSettings
from pipeline.settings import Settings

OWN = {
    "database_url": SecretStr("postgresql://u:p@db.example/memlane"),
    "broker_url": SecretStr("redis://broker.example/0"),
    "chroma_url": "http://chroma.example:8000",
}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "data")
    made.create()
    return made


def settings(**values: Any) -> Settings:
    return Settings(port=ports.choose(), **values)


def test_every_process_of_the_stack_is_in_the_plan(layout: Layout) -> None:
    made = plan(settings(api_processes=2, workers=2), layout)
    assert [program.name for program in made.servers] == ["postgres", "redis", "chroma"]
    edges = ["api", "api-2", "worker-1", "worker-2", "sweeper"]
    assert [program.name for program in made.edges] == edges
    prepared = [program.prepare().env for program in made.edges]
    assert [env["PROMETHEUS_MULTIPROC_NAME"] for env in prepared] == edges


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("database_url", ["redis", "chroma"]),
        ("broker_url", ["postgres", "chroma"]),
        ("chroma_url", ["postgres", "redis"]),
    ],
)
def test_a_server_given_by_url_is_not_started(layout: Layout, given: str, left: list[str]) -> None:
    chosen = settings(**{given: OWN[given]})
    assert [server.name for server in own_servers(chosen, layout)] == left


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"llm": LLMSettings(model="local/rulez")}, "MEMLANE_LLM__MODEL=local/rulez: "),
        (
            {"llm": LLMSettings(model="openai/x", fallbacks=(ModelSettings(model="local/rulez"),))},
            "MEMLANE_LLM__FALLBACKS=local/rulez: ",
        ),
        ({"embedder": ModelSettings(model="local/mini")}, "MEMLANE_EMBEDDER__MODEL=local/mini: "),
        ({"reranker": ModelSettings(model="local/any")}, "MEMLANE_RERANKER__MODEL=local/any: "),
    ],
)
def test_a_built_in_model_that_does_not_exist_is_refused_by_name(
    given: dict[str, Any], named: str
) -> None:
    with pytest.raises(StackError, match=f"{named}.*provider/model"):
        require_complete(settings(**given))


@pytest.mark.parametrize("vectors", ["pgvector", "qdrant"])
def test_chroma_is_started_only_where_it_holds_the_vectors(layout: Layout, vectors: str) -> None:
    names = [server.name for server in own_servers(settings(vectors=vectors), layout)]
    assert names == ["postgres", "redis"]


def test_workers_get_their_name_and_files(layout: Layout) -> None:
    made = plan(settings(workers=2, **OWN), layout)
    worker = next(program for program in made.edges if program.name == "worker-2")
    command = worker.prepare()
    ready, start = str(layout.ready_file("worker-2")), str(layout.start_file)
    files = ("--ready-file", ready, "--start-file", start)
    assert command.argv[1:] == ("-m", "workers", "worker-2", *files)
    assert command.cwd == PROJECT_ROOT


def test_requests_get_a_processor_before_workers_and_the_sweeper(layout: Layout) -> None:
    made = plan(settings(workers=1, **OWN), layout)
    nice = {p.name: p.prepare().nice for p in made.edges if p.name != "api-2"}
    assert nice == {"api": 0, "worker-1": 10, "sweeper": 10}


def test_an_old_ready_file_does_not_make_a_new_worker_ready(layout: Layout) -> None:
    sweeper = plan(settings(**OWN), layout).edges[-1]
    layout.ready_file("sweeper").touch()
    assert sweeper.ready()
    sweeper.prepare()
    assert not sweeper.ready()


def test_children_learn_where_the_servers_are(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMLANE_GRAPH", "off")
    monkeypatch.setenv("PGSSLMODE", "require")
    chosen = settings()
    servers = own_servers(chosen, layout)
    env = environment(chosen, layout, servers)
    urls = [server.url for server in servers]
    names = ["MEMLANE_DATABASE_URL", "MEMLANE_BROKER_URL", "MEMLANE_CHROMA_URL"]
    assert [env[name] for name in names] == urls
    assert (env["MEMLANE_GRAPH"], env["MEMLANE_DATA_DIR"]) == ("off", str(layout.root))
    assert env["OMP_NUM_THREADS"] == env["OPENBLAS_NUM_THREADS"] == "1"
    assert "PGSSLMODE" not in env
    assert ports.HOST in env["NO_PROXY"].split(",")


@pytest.mark.parametrize(
    ("values", "at_once"),
    [
        pytest.param({}, 12, id="three-a-core"),
        pytest.param({"vectors": "pgvector"}, 8, id="two-a-core-where-the-ledger-is-the-index"),
        pytest.param({"api_processes": 3}, 4, id="shared-by-the-processes"),
        pytest.param({"api_processes": 64}, 1, id="never-none"),
        pytest.param({"searches_at_once": 5}, 5, id="as-it-was-set"),
    ],
)
def test_searches_share_the_cores_with_the_ledger(values: dict[str, Any], at_once: int) -> None:
    assert searches_at_once(settings(**{"api_processes": 1} | values), cores=4) == at_once


def test_no_secret_is_on_a_command_line(layout: Layout) -> None:
    for server in own_servers(settings(), layout):
        command = server.command()
        secrets = [layout.secret("postgres_password"), layout.secret("redis_password")]
        line = " ".join(command.launch(tied=True))
        assert not any(secret in line for secret in secrets), server.name


def test_secrets_are_kept_and_private(layout: Layout) -> None:
    first = layout.secret("redis_password")
    assert layout.secret("redis_password") == first
    assert (layout.root / "redis_password").stat().st_mode & 0o777 == 0o600
    assert layout.root.stat().st_mode & 0o777 == 0o700


def test_a_taken_api_port_is_reported_at_once(layout: Layout) -> None:
    with socket.create_server((ports.HOST, ports.choose())) as server:
        port = server.getsockname()[1]
        with pytest.raises(StackError, match=f"port {port} .* MEMLANE_PORT"):
            plan(Settings(port=port), layout)


def test_programs_can_be_replaced_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "programs.json"
    file.write_text(json.dumps({"api": ["-c", "pass"]}))
    table = read_programs(file)
    assert table == dict(PROGRAMS) | {"api": ("-c", "pass")}


def banner_of(layout: Layout, llm: str) -> str:
    return banner(layout, State(supervisor=ProcessNote(), url="http://x", llm=llm, embedder="e"))


def test_the_banner_says_plainly_when_no_language_model_is_in_use(layout: Layout) -> None:
    layout.api_key.write_text("key-1\n")
    text = banner_of(layout, "local/rules")
    assert "NOT a language model" in text
    assert text.count("key-1") == 1
    assert f"Authorization: Token $(cat {layout.api_key})" in text
    assert "NOT a language model" not in banner_of(layout, "openai/gpt-4o-mini")
