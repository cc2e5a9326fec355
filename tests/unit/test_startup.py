"""Start of a process: what it says if its settings are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from deploy.stack.command import inherited_environment
from pipeline import startup
from pipeline.settings import Settings

SERVERS = {
    "MEMLANE_DATABASE_URL": "postgresql://memlane:a-secret@127.0.0.1:1/memlane",
    "MEMLANE_BROKER_URL": "redis://127.0.0.1:1/0",
    "MEMLANE_CHROMA_URL": "http://127.0.0.1:1",
}
PROCESSES = ("api", "workers w", "workers.sweeper", "workers.reindex", "pipeline.migrate")


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({}, "MEMLANE_DATABASE_URL is not set"),
        ({"MEMLANE_PORT": "a-secret"}, "MEMLANE_PORT: Input should be a valid integer"),
    ],
    ids=["missing", "invalid"],
)
def test_a_process_with_wrong_settings_ends_with_one_sentence(
    process: str, variables: dict[str, str], text: str
) -> None:
    inherited = {
        name: value
        for name, value in inherited_environment().items()
        if not name.startswith("MEMLANE_")
    }
    done = subprocess.run(
        [sys.executable, "-m", *process.split()],
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == startup.REFUSED, done.stderr
    assert done.stderr.startswith(text)
    assert len(done.stderr.splitlines()) == 1
    assert "a-secret" not in done.stderr


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"MEMLANE_DATABASE_URL": ""}, "MEMLANE_DATABASE_URL"),
        ({"MEMLANE_BROKER_URL": ""}, "MEMLANE_BROKER_URL"),
        ({"MEMLANE_CHROMA_URL": ""}, "MEMLANE_CHROMA_URL"),
        ({"MEMLANE_VECTORS": "qdrant"}, "MEMLANE_QDRANT_URL"),
        ({"MEMLANE_GRAPH_STORE": "bolt"}, "MEMLANE_BOLT_URL"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_server_without_a_url_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variables: dict[str, str],
    missing: str,
) -> None:
    for name, value in (SERVERS | variables).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        startup.load()
    assert ended.value.code == startup.REFUSED
    assert capsys.readouterr().err.startswith(f"{missing} is not set.")


def test_a_complete_environment_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SERVERS.items():
        monkeypatch.setenv(name, value)
    assert isinstance(startup.load(), Settings)
    monkeypatch.setenv("MEMLANE_VECTORS", "pgvector")
    monkeypatch.setenv("MEMLANE_CHROMA_URL", "")
    assert startup.load().chroma_url is None


def test_a_process_waits_for_its_start_file(tmp_path: Path) -> None:
    start_file = tmp_path / "start"
    process = Thread(target=startup.wait_for, args=(start_file,), daemon=True)
    process.start()
    assert process.is_alive()
    start_file.touch()
    process.join(timeout=10)
    assert not process.is_alive()
    startup.wait_for(None)
