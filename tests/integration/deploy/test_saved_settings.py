"""Settings that live with the data: a new shell, a change, a refusal, and more workers."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import asyncpg

from deploy.cli.recovery import database_url
from deploy.stack.change import SettingsChange
from deploy.stack.identity import wait_gone
from deploy.stack.journal import Journal, Phase, ProcessState
from deploy.stack.layout import Layout
from deploy.stack.saved_settings import SavedSettings
from pipeline.model_settings import LLMSettings
from pipeline.settings import Settings
from tests.support.local_stack import ALL, STAND_IN, LocalStack
from tests.support.stack import wait_until

# The start of a program that ends at once with one of the settings.
CHECK = """
import os, sys
if os.environ.get("MEMLANE_LOG_LEVEL") == "error":
    sys.exit(1)
"""


def test_a_new_shell_uses_the_saved_settings_and_names_them(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_LLM__MODEL": "openai/gpt-4o-mini", "MEMLANE_LLM__API_KEY": "a-secret"}
    assert stack.up().returncode == 0
    assert stack.layout.env.stat().st_mode & 0o777 == 0o600
    before = stack.processes()
    stack.extra = {}
    done = stack.up()
    assert done.returncode == 0, done.stderr
    names = "MEMLANE_LLM__API_KEY, MEMLANE_LLM__MODEL"
    assert f"From {stack.layout.env}, not set in this shell: {names}." in done.stdout
    assert stack.processes() == before
    assert stack.cli("down").returncode == 0
    assert stack.up().returncode == 0
    assert stack.state().llm == "openai/gpt-4o-mini"
    assert "secret" not in done.stdout


def test_a_first_start_replaces_no_embedder(stack: LocalStack) -> None:
    model = {"MODEL": "openai/text-embedding-3-small", "API_KEY": "a-secret"}
    stack.extra = {f"MEMLANE_EMBEDDER__{name}": value for name, value in model.items()}
    done = stack.up()
    assert done.returncode == 0, done.stderr
    assert "is replaced" not in done.stdout


def test_a_first_start_that_failed_does_not_decide_the_next_one(stack: LocalStack) -> None:
    table = json.loads(stack.programs.read_text())
    del table["migrate"]  # the real one
    broken = table | {"worker": ["-c", "raise SystemExit('no worker')"]}
    stack.programs.write_text(json.dumps(broken))
    stack.extra = {
        "MEMLANE_LLM__MODEL": "openai/gpt-x",
        "MEMLANE_EMBEDDER__MODEL": "openai/another",
        "MEMLANE_EMBEDDER__API_BASE": f"http://127.0.0.1:{stack.port}/v1",
    }
    failed = stack.up()
    assert failed.returncode == 1
    assert "worker-1 does not stay up" in failed.stderr
    stack.extra = {}
    stack.programs.write_text(json.dumps(table))
    done = stack.up()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Settings that change" not in done.stdout


def test_a_stack_that_was_healthy_decides_the_next_start(tmp_path: Path) -> None:
    layout, file = Layout(tmp_path), SavedSettings(tmp_path / "env", {}, {})
    layout.create()
    model = Settings.model_construct(llm=LLMSettings(model="openai/gpt-x"))
    Journal(layout, model).write()
    assert SettingsChange.of(Settings(), layout, file, None, []).downgrades == []
    Journal(layout, model).phase(Phase.HEALTHY)
    Journal(layout, model).failed("a port in use", None)
    (sentence,) = SettingsChange.of(Settings(), layout, file, None, []).downgrades
    assert "openai/gpt-x is replaced by local/rules" in sentence


def test_a_changed_setting_is_shown_and_needs_a_yes(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_LLM__API_KEY": "a-secret", "MEMLANE_WORKER_CONCURRENCY": "50"}
    assert stack.up().returncode == 0
    before, file = stack.processes(), stack.layout.env.read_text()
    stack.extra = {"MEMLANE_LLM__API_KEY": "another-secret", "MEMLANE_WORKER_CONCURRENCY": ""}
    refused = stack.up()
    assert refused.returncode == 1
    assert "MEMLANE_LLM__API_KEY: (secret) → (another secret)" in refused.stdout
    assert "MEMLANE_WORKER_CONCURRENCY: 50 → (default)" in refused.stdout
    assert "Nothing was changed." in refused.stderr
    assert "another-secret" not in refused.stdout + refused.stderr
    assert (stack.processes(), stack.layout.env.read_text()) == (before, file)
    done = stack.up("--yes")
    assert done.returncode == 0, done.stderr
    after = stack.processes()
    assert {name for name in ALL if after[name] == before[name]} == {"postgres", "redis", "chroma"}
    assert "MEMLANE_WORKER_CONCURRENCY" not in stack.layout.env.read_text()


def test_a_model_is_not_replaced_by_the_rules_without_a_yes(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_LLM__MODEL": "openai/gpt-4o-mini"}
    assert stack.up().returncode == 0
    stack.extra = {"MEMLANE_LLM__MODEL": "local/rules"}
    for _ in ("running", "stopped"):
        done = stack.up()
        assert done.returncode == 1
        assert "openai/gpt-4o-mini is replaced by local/rules" in done.stdout
        stack.cli("down")


def test_a_stack_of_a_release_that_saved_nothing_keeps_its_model(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_LLM__MODEL": "openai/gpt-4o-mini"}
    assert stack.up().returncode == 0
    stack.layout.env.unlink()
    before = stack.processes()
    stack.extra = {}
    done = stack.up()
    assert done.returncode == 1
    assert "openai/gpt-4o-mini is replaced by local/rules" in done.stdout
    assert stack.processes() == before


def test_a_model_whose_line_is_lost_is_not_replaced_by_the_rules(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_LLM__MODEL": "openai/gpt-4o-mini", "MEMLANE_WORKER_CONCURRENCY": "50"}
    assert stack.up().returncode == 0
    stack.extra = {}
    file = stack.layout.env.read_text()
    stack.layout.env.write_text(file.replace("MEMLANE_LLM__MODEL=openai/gpt-4o-mini\n", ""))
    for _ in ("running", "stopped"):
        done = stack.up()
        assert done.returncode == 1
        assert "openai/gpt-4o-mini is replaced by local/rules" in done.stdout
        stack.cli("down")


def test_a_setting_that_was_changed_in_the_file_is_named_and_applied(stack: LocalStack) -> None:
    stack.extra = {"MEMLANE_LLM__API_KEY": "a-secret", "MEMLANE_WORKER_CONCURRENCY": "50"}
    assert stack.up().returncode == 0
    stack.extra = {}
    file = stack.layout.env.read_text()
    stack.layout.env.write_text(file.replace("a-secret", "another").replace("=50", "=60"))
    done = stack.up()
    assert done.returncode == 0, done.stderr
    assert "MEMLANE_WORKER_CONCURRENCY: (before) → 60" in done.stdout
    assert "MEMLANE_LLM__API_KEY: (before) → (secret)" in done.stdout
    assert "replaced one by one" in done.stdout or "is replaced" in done.stdout


def test_an_index_that_was_never_built_is_refused_before_anything_stops(stack: LocalStack) -> None:
    table = json.loads(stack.programs.read_text())
    del table["migrate"]
    stack.programs.write_text(json.dumps(table))
    assert stack.up().returncode == 0
    asyncio.run(add_turn(database_url(Settings(), stack.layout)))  # noqa: TID251
    before = stack.processes()
    stack.extra = {"MEMLANE_VECTOR_BUCKETS": "3"}
    done = stack.up("--yes")
    assert done.returncode == 1
    assert "Run `make reindex`" in done.stderr
    assert "Nothing was changed: Memlane keeps running as it was." in done.stderr
    assert stack.processes() == before


async def add_turn(url: str) -> None:
    """Insert a row that has a place in the vector index."""
    connection = await asyncpg.connect(url)
    columns, row = "(event_id, ordinal, lane_id)", "(gen_random_uuid(), 0, gen_random_uuid())"
    await connection.execute(f"INSERT INTO turn_vectors {columns} VALUES {row}")
    await connection.close()


def test_workers_are_added_and_drained_without_a_restart(stack: LocalStack) -> None:
    assert stack.up().returncode == 0
    before = stack.processes()
    done = stack.memlane("scale", "workers=3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Adding or draining processes ..." in done.stdout
    assert "one by one" not in done.stdout
    more = stack.processes()
    assert set(more) == set(before) | {"worker-2", "worker-3"}
    assert all(more[name] == who for name, who in before.items())
    assert stack.memlane("scale", "workers=1").returncode == 0
    assert stack.processes() == before
    assert wait_gone([more["worker-2"], more["worker-3"]], timeout_s=0) == []
    assert "MEMLANE_WORKERS=1" in stack.layout.env.read_text()
    assert stack.memlane("scale", "sheep=2").returncode == 1


def await_healthy(stack: LocalStack) -> None:
    """Wait until the worker of the settings before is healthy again."""

    async def healthy() -> bool:
        return stack.state().processes["worker-1"].state is ProcessState.HEALTHY

    asyncio.run(wait_until(healthy, within_s=60, what="worker-1 is healthy"))  # noqa: TID251


def test_a_process_that_fails_with_new_settings_is_replaced_by_the_one_before(
    stack: LocalStack,
) -> None:
    table = json.loads(stack.programs.read_text())
    script = stack.layout.root.with_name("picky.py")
    script.write_text(STAND_IN.replace("import http", CHECK + "import http", 1))
    table["worker"] = [str(script), *table["worker"][1:]]
    stack.programs.write_text(json.dumps(table))
    assert stack.up().returncode == 0
    file = stack.layout.env.read_text()
    stack.extra = {"MEMLANE_LOG_LEVEL": "error"}
    done = stack.up("--yes")
    assert done.returncode == 1
    assert "worker-1 does not stay up" in done.stderr
    assert stack.layout.env.read_text() == file
    await_healthy(stack)


def test_settings_are_listed_with_their_sources_and_without_secrets(stack: LocalStack) -> None:
    stack.layout.create()
    stack.layout.env.write_text("MEMLANE_LLM__API_KEY='a-secret'  # mine\nMEMLANE_LEASE_S=7\n")
    stack.extra = {"MEMLANE_LEASE_S": "8"}
    table = stack.memlane("settings").stdout
    assert "a-secret" not in table
    assert re.search(r"MEMLANE_LLM__API_KEY +\(secret\) +\S+/env", table)
    assert re.search(r"MEMLANE_LEASE_S +8 +environment, not saved", table)


def test_a_misspelt_saved_setting_is_named_with_its_file_and_stops_no_down(
    stack: LocalStack,
) -> None:
    assert stack.up().returncode == 0
    with stack.layout.env.open("a") as file:
        file.write("MEMLANE_WORKRES=2\n")
    done = stack.up()
    assert done.returncode == 2
    text = f"{stack.layout.env}: MEMLANE_WORKRES is not a Memlane setting. Did you mean"
    assert done.stderr.startswith(text)
    assert stack.cli("status").returncode == 0
    assert stack.memlane("status").returncode == 0
    assert stack.memlane("logs", "api").returncode == 0
    assert stack.cli("down").stdout == "Memlane is down.\n"
    assert stack.memlane("down").stdout == "Nothing is running.\n"


def test_a_broken_line_of_the_saved_settings_is_named_without_its_value(stack: LocalStack) -> None:
    stack.layout.create()
    stack.layout.env.write_text("MEMLANE_LEASE_S=7\nmy secret\n")
    done = stack.up()
    assert done.returncode == 1
    assert "write NAME='value' on each line" in done.stderr
    assert "secret" not in done.stderr
