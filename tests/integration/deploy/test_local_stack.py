"""The local stack with real servers; small test programs replace API, workers and sweeper."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import asyncpg
import pytest

from deploy.stack import ports
from deploy.stack.failure import StackError
from deploy.stack.identity import Identity, identify, wait_gone, working_in
from deploy.stack.journal import Phase, ProcessState
from deploy.stack.layout import PROJECT_ROOT, Layout
from deploy.stack.server import http_ok
from deploy.stack.servers import Chroma, Postgres, Redis, Server
from deploy.stack.waiting import wait_until
from tests.support.local_stack import ALL, LocalStack

DEADLINE_S = 60.0


def test_up_returns_when_everything_is_healthy_and_down_leaves_nothing(stack: LocalStack) -> None:
    done = stack.up()
    assert done.returncode == 0, done.stderr
    assert f"http://127.0.0.1:{stack.port}" in done.stdout
    assert done.stdout.count("stand-in-key") == 1
    assert f"Authorization: Token $(cat {stack.layout.api_key})" in done.stdout
    assert {name for name, note in stack.state().processes.items() if note.pid} == ALL
    assert all(note.state is ProcessState.HEALTHY for note in stack.state().processes.values())
    processes = stack.processes()
    assert {file.stem for file in stack.layout.run.glob("*.pid")} == set(processes)
    assert all(stack.pid(name) == who.pid for name, who in processes.items())

    done = stack.cli("down")
    assert (done.returncode, done.stdout) == (0, "Memlane is down.\n")
    assert wait_gone(processes.values(), timeout_s=0) == []
    assert list(stack.layout.run.glob("*.pid")) == []
    again = stack.cli("down")
    assert (again.returncode, again.stdout) == (0, "Nothing is running.\n")


MIGRATE_AFTER_WORKER = """
import pathlib, sys
key_file, worker, start = map(pathlib.Path, sys.argv[1:])
while not worker.exists():
    pass
assert not start.exists()
key_file.write_text("stand-in-key")
"""


def test_workers_load_while_the_database_is_migrated_and_then_may_start(stack: LocalStack) -> None:
    run, script = stack.layout.run, stack.programs.with_name("migrate.py")
    script.write_text(MIGRATE_AFTER_WORKER)
    table = json.loads(stack.programs.read_text())
    table["migrate"] = [str(script), "{key_file}", str(run / "worker-1.pid"), "{start_file}"]
    stack.programs.write_text(json.dumps(table))
    for _ in range(2):  # the second start finds the files of the first
        assert stack.up().returncode == 0
        assert stack.layout.start_file.exists()
        assert stack.cli("down").returncode == 0


def test_a_second_up_changes_nothing(stack: LocalStack) -> None:
    assert stack.up().returncode == 0
    before = stack.processes()
    again = stack.up()
    assert again.returncode == 0
    assert again.stdout.startswith("Memlane is already running.")
    assert "stand-in-key" in again.stdout
    assert stack.processes() == before


def test_a_lost_key_is_named_with_its_repair(stack: LocalStack) -> None:
    assert stack.up().returncode == 0
    stack.layout.api_key.unlink()
    repair = f"`memlane keys recover > {stack.layout.api_key}`"
    for options in ((), ("--brief",)):
        done = stack.up(*options)
        assert done.returncode == 0, done.stderr
        assert repair in done.stdout


def test_up_with_other_settings_names_and_applies_them(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_LLM__API_KEY": "a-secret"}
    assert stack.up().returncode == 0
    before = stack.processes()
    assert "a-secret" not in stack.layout.state.read_text()
    stack.extra = {"MEMLANE_LLM__API_KEY": "another-secret", "MEMLANE_WORKERS": "2"}
    shown = stack.cli("up", "--brief", "--programs", str(stack.programs))
    assert "with other settings: MEMLANE_LLM__API_KEY, MEMLANE_WORKERS." in shown.stdout
    assert stack.processes() == before
    done = stack.up("--yes")
    assert done.returncode == 0, done.stderr
    assert "MEMLANE_WORKERS: 1 → 2" in done.stdout
    assert "a-secret" not in done.stdout + stack.layout.state.read_text()
    after = stack.processes()
    assert set(after) == {"supervisor", "worker-2"} | ALL
    assert after["supervisor"] == before["supervisor"]
    assert wait_gone([before["worker-1"], before["api"]], timeout_s=0) == []
    assert stack.up().stdout.startswith("Memlane is already running.\n")
    assert stack.processes() == after


@pytest.mark.parametrize(
    "setting",
    [
        "MEMLANE_VECTORS=qdrant",
        "MEMLANE_BROKER_URL=redis://127.0.0.1:1/0",
        "MEMLANE_LLM__MODEL=local/rulez",
    ],
)
def test_up_with_a_setting_that_cannot_work_stops_nothing(stack: LocalStack, setting: str) -> None:
    assert stack.up().returncode == 0
    before = stack.processes()
    name, _, value = setting.partition("=")
    stack.extra = {name: value}
    done = stack.up("--yes")
    assert done.returncode == 1
    assert name in done.stderr
    assert stack.processes() == before


def test_ups_at_the_same_moment_make_one_stack(stack: LocalStack) -> None:
    def up() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "deploy.cli", "up", "--programs", str(stack.programs)]
        return subprocess.Popen(
            command, env=stack.env(), cwd=PROJECT_ROOT, stdout=subprocess.PIPE, text=True
        )

    running = [up() for _ in range(3)]
    outputs = [process.communicate(timeout=DEADLINE_S)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert all("Memlane is up." in text for text in outputs)
    assert stack.cli("down").stdout == "Memlane is down.\n"
    assert stack.cli("status").stdout == "Nothing is running.\n"


def test_what_is_killed_comes_back_on_the_same_ports(stack: LocalStack) -> None:
    assert stack.up().returncode == 0
    before, book = stack.processes(), stack.layout.ports.read_text()
    for name in ALL:
        os.kill(before[name].pid, signal.SIGKILL)

    def all_back() -> bool:
        notes = stack.state().processes
        return all(
            note.state is ProcessState.HEALTHY and note.pid != before[name].pid
            for name, note in notes.items()
        )

    assert wait_until(all_back, DEADLINE_S), stack.cli("status").stdout
    assert all(note.restarts >= 1 for note in stack.state().processes.values())
    assert stack.layout.ports.read_text() == book
    assert stack.pid("api") == stack.processes()["api"].pid
    assert http_ok(stack.port, "/readyz")
    table = stack.cli("status")
    assert table.returncode == 0
    assert set(re.findall(r"^(\S+) +\d+ +healthy", table.stdout, re.MULTILINE)) == ALL


def test_a_killed_supervisor_leaves_no_orphans_and_the_next_up_works(stack: LocalStack) -> None:
    assert stack.up().returncode == 0
    processes = stack.processes()
    os.kill(processes["supervisor"].pid, signal.SIGKILL)
    assert wait_gone(processes.values(), timeout_s=DEADLINE_S) == []

    done = stack.up()
    assert done.returncode == 0, done.stderr
    assert not {who.pid for who in stack.processes().values()} & {
        who.pid for who in processes.values()
    }


def test_a_stranger_with_a_noted_pid_survives_down(stack: LocalStack) -> None:
    stack.layout.create()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        stack.layout.pid_file("api").write_text(f"{stranger.pid}\n")
        note = {"pid": stranger.pid, "started": "long ago"}
        state = {"url": "", "llm": "", "embedder": "", "supervisor": note}
        stack.layout.state.write_text(json.dumps(state | {"processes": {"api": note}}))
        assert stack.cli("down").stdout == "Nothing is running.\n"
        assert stranger.poll() is None
        stranger.kill()


def test_a_reindex_before_the_first_start_is_one_line(stack: LocalStack) -> None:
    done = stack.cli("reindex")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "There is no ledger yet: run `make up` (or `pipeline.migrate`) first.\n"


def test_two_stacks_run_side_by_side(make_stack: Callable[[str], LocalStack]) -> None:
    first, second = make_stack("one"), make_stack("other")
    assert (first.up().returncode, second.up().returncode) == (0, 0)
    mine, theirs = first.processes(), second.processes()
    assert not {who.pid for who in mine.values()} & {who.pid for who in theirs.values()}
    assert first.cli("down").returncode == 0
    assert wait_gone(mine.values(), timeout_s=0) == []
    assert second.processes() == theirs
    assert http_ok(second.port, "/readyz")


def test_a_process_that_does_not_stay_up_is_named_with_its_log(stack: LocalStack) -> None:
    table = json.loads(stack.programs.read_text())
    table["api"] = ["-c", "raise SystemExit('no such table: events')"]
    stack.programs.write_text(json.dumps(table))
    done = stack.up()
    assert done.returncode == 1
    assert "api does not stay up" in done.stderr
    assert "no such table: events" in done.stderr
    assert stack.state().phase is Phase.FAILED
    assert list(stack.layout.run.glob("*.pid")) == []


def test_a_taken_port_is_named_before_anything_starts(
    make_stack: Callable[[str], LocalStack],
) -> None:
    first, second = make_stack("one"), make_stack("other")
    second.port = first.port
    assert first.up().returncode == 0
    done = second.up()
    assert done.returncode == 1
    assert f"port {first.port} of 127.0.0.1 cannot be used" in done.stderr
    assert second.state().processes == {}


def test_a_misspelt_setting_is_refused_by_name(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_WORKRES": "2"}
    done = stack.up()
    assert (done.returncode, done.stdout) == (2, "")
    assert "MEMLANE_WORKRES is not a Memlane setting. Did you mean MEMLANE_WORKERS?" in done.stderr
    assert not stack.layout.root.exists()


def test_a_server_given_by_url_is_used_not_started(stack: LocalStack, tmp_path: Path) -> None:
    with Chroma(tmp_path / "mine") as chroma:
        stack.extra = {"MEMLANE_CHROMA_URL": chroma.url}
        assert stack.up().returncode == 0
        assert set(stack.state().processes) == ALL - {"chroma"}


def test_run_stays_in_the_foreground_until_it_is_stopped(stack: LocalStack) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "deploy.cli", "run", "--programs", str(stack.programs)],
        env=stack.env(),
        cwd=PROJECT_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "Memlane is up.\n"
        assert "stand-in-key" not in read_banner(running.stdout)
        processes = stack.processes()
        running.send_signal(signal.SIGTERM)
        assert running.wait(DEADLINE_S) == 0
    assert wait_gone(processes.values(), timeout_s=0) == []


def read_banner(output: IO[str]) -> str:
    text = ""
    while "/v1/event/EVENT_ID/" not in text:
        line = output.readline()
        assert line, text
        text += line
    return text


def test_reset_asks_first_and_deletes_what_the_stack_wrote(stack: LocalStack) -> None:
    assert stack.up().returncode == 0
    mine = stack.layout.root / "notes.txt"
    mine.write_text("mine")
    refused = stack.cli("reset")
    assert refused.returncode == 1
    for lost in ("`env`: the saved settings", "keys of providers", "`api_key`"):
        assert lost in refused.stdout
    assert stack.layout.api_key.exists()
    done = stack.cli("reset", "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("not written by the stack: notes.txt.\n")
    assert list(stack.layout.root.iterdir()) == [mine]


def test_the_help_names_each_command_and_no_hidden_one(stack: LocalStack) -> None:
    text = stack.cli("--help").stdout
    assert "run" in text
    assert "SUPPRESS" not in text
    assert "supervise" not in text


@pytest.mark.parametrize("kind", [Postgres, Redis, Chroma])
def test_a_server_alone_survives_kill_on_the_same_port(kind: type[Server], tmp_path: Path) -> None:
    with kind(tmp_path) as server:
        first, url = server.pid, server.url
        server.kill()
        assert identify(first) is None
        assert not server.ready()
        server.start()
        assert server.ready()
        assert (server.url, server.pid != first) == (url, True)
    assert not server.ready()


def test_an_interrupted_initdb_is_done_again(tmp_path: Path) -> None:
    half = tmp_path / "postgres.init" / "data"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18")
    with Postgres(tmp_path) as postgres:
        assert postgres.ready()
    assert not half.parent.exists()


def test_a_stuck_backend_of_a_killed_postgres_does_not_stop_the_next_start(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        stuck = checkpointer(tmp_path)
        # A stopped process ignores signals, even the end of its postmaster, and keeps shared
        # memory.
        os.kill(stuck.pid, signal.SIGSTOP)
        postgres.kill()
        assert identify(stuck.pid) == stuck
        postgres.start()
        assert postgres.ready()
        assert identify(stuck.pid) is None


def test_down_ends_the_backends_that_a_forced_stop_left(stack: LocalStack) -> None:
    root = stack.layout.root
    with Postgres(root) as postgres:
        stuck = checkpointer(root)
        os.kill(stuck.pid, signal.SIGSTOP)
        postgres.kill()
        stack.cli("down")
        assert identify(stuck.pid) is None


def checkpointer(root: Path) -> Identity:
    """PostgreSQL's checkpointer, which lives as long as the postmaster."""
    for identity in working_in(root.resolve() / "postgres", "postgres"):
        with suppress(OSError):  # the process has ended since it was listed
            if "checkpointer" in Path(f"/proc/{identity.pid}/cmdline").read_text():
                return identity
    raise AssertionError("no checkpointer runs")


def test_redis_starts_beside_a_log_that_a_power_loss_has_broken(tmp_path: Path) -> None:
    with Redis(tmp_path) as redis:
        redis.kill()
        [log] = (tmp_path / "redis").glob("appendonlydir/*.incr.aof")
        with log.open("ab") as file:
            file.write(bytes(4_096))
        with pytest.raises(StackError, match="Bad file format"):
            redis.start()
        redis.start()  # as the supervisor does
        assert redis.ready()


@pytest.mark.parametrize("left", [None, ""], ids=["deleted", "emptied by a power loss"])
async def test_postgres_gets_another_password_if_its_file_is_lost(
    tmp_path: Path, left: str | None
) -> None:
    file = tmp_path / "postgres_password"
    with Postgres(tmp_path):
        file.unlink()
        if left is not None:
            file.write_text(left)
    with Postgres(tmp_path) as postgres:
        assert file.read_text()
        connection = await asyncpg.connect(postgres.url)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()


@pytest.mark.parametrize("kind", [Postgres, Redis, Chroma])
def test_a_server_gets_none_of_our_secrets(
    kind: type[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMLANE_LLM__API_KEY", "a-secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    with kind(tmp_path) as server:
        assert "a-secret" not in Path(f"/proc/{server.pid}/environ").read_text()


async def test_postgres_logs_no_values_of_a_failed_statement(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        connection = await asyncpg.connect(postgres.url)
        for statement in ("SELECT 'ZZMARKERZZ'::uuid", """SELECT '{"a": ZZMARKERZZ}'::jsonb"""):
            with pytest.raises(asyncpg.DataError):
                await connection.execute(statement)
        await connection.close()
    assert "ZZMARKERZZ" not in postgres.layout.log_file("postgres").read_text()


def test_chroma_logs_no_requests(tmp_path: Path) -> None:
    with Chroma(tmp_path) as chroma:
        assert chroma.ready()
    assert "INFO" not in chroma.layout.log_file("chroma").read_text()


def test_an_unreachable_database_is_named_within_seconds(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_DATABASE_URL": f"postgresql://me:pw@127.0.0.1:{ports.choose()}/db"}
    started = time.monotonic()
    done = stack.up()
    assert done.returncode == 1
    assert re.match(r"Memlane did not start. MEMLANE_DATABASE_URL \(127.0.0.1:\d+\): ", done.stderr)
    assert len(done.stderr.splitlines()) == 1
    # The error once took 129 s; the deadline leaves time for two busy cores.
    assert time.monotonic() - started < DEADLINE_S


def test_a_model_without_a_key_is_warned_of(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_LLM__MODEL": "openai/gpt-4o-mini"}
    done = stack.up()
    assert done.returncode == 0, done.stderr
    assert "Warning: MEMLANE_LLM__MODEL=openai/gpt-4o-mini: no key." in done.stdout


def test_qdrant_without_its_url_is_named(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_VECTORS": "qdrant"}
    done = stack.up()
    assert done.returncode == 1
    assert "MEMLANE_QDRANT_URL" in done.stderr


def test_only_lines_of_this_start_are_shown(stack: LocalStack) -> None:
    stack.layout.create()
    stack.layout.log_file("api").write_text("a line of an earlier start\n")
    table = json.loads(stack.programs.read_text())
    table["api"] = ["-c", "raise SystemExit('no such table: events')"]
    stack.programs.write_text(json.dumps(table))
    done = stack.up()
    assert "no such table: events" in done.stderr
    assert "a line of an earlier start" not in done.stderr


@pytest.mark.parametrize("command", ["up", "run"])
def test_a_data_directory_that_cannot_be_used_is_one_line(stack: LocalStack, command: str) -> None:
    file = stack.layout.root.with_name("file")
    file.write_text("")
    stack.layout = Layout(file / "data")
    done = stack.cli(command)
    assert done.returncode == 1
    assert done.stderr.startswith(f"The data directory {file / 'data'} cannot be used: ")
    assert "MEMLANE_DATA_DIR" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_down_stops_a_running_stack_without_its_environment(stack: LocalStack) -> None:
    assert stack.up().returncode == 0
    processes = stack.processes()
    # As `make down` does if .venv is broken: with the standard library only.
    command = [sys.executable, "-S", "-m", "deploy.stack.stop"]
    done = subprocess.run(
        command, env=stack.env(), cwd=PROJECT_ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Memlane is down.\n", "")
    assert wait_gone(processes.values(), timeout_s=0) == []
    again = subprocess.run(
        command, env=stack.env(), cwd=PROJECT_ROOT, capture_output=True, text=True, check=False
    )
    assert again.stdout == "Nothing is running.\n"
