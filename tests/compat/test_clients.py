"""Every public method of the official clients works as their users expect, or is listed here."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.compat.environments import node_with, python_with

CLIENTS = Path(__file__).parent / "clients"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("line", ["2.2.1", "1.0.11", "0.1.118"], ids=["newest", "1.x", "0.1.x"])
def test_the_python_client(line: str, kind: str, environment: dict[str, str]) -> None:
    executables = python_with(f"mem0ai=={line}")
    script = CLIENTS / "python_client.py"
    done = subprocess.run(
        [executables / "python", script, kind],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    judge(f"mem0ai {line} {kind}", done, at_least=30)


@pytest.mark.timeout(600)
def test_the_node_client_newest(environment: dict[str, str]) -> None:
    folder = node_with("mem0ai@3.3.1")
    script = shutil.copy(CLIENTS / "node_client.mjs", folder)
    done = subprocess.run(
        ["node", script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    judge("mem0ai 3.3.1 for node", done, at_least=25)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("line", ["2.4.6", "1.0.39"])
def test_the_older_node_client(line: str, environment: dict[str, str]) -> None:
    folder = node_with(f"mem0ai@{line}")
    script = shutil.copy(CLIENTS / "node_older_client.mjs", folder)
    done = subprocess.run(
        ["node", script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    judge(f"mem0ai {line} for node", done, at_least=9)


def judge(client: str, done: subprocess.CompletedProcess[str], *, at_least: int) -> None:
    rows: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr[-3_000:]
    failed = {row["method"]: row["said"] for row in rows if not row["works"]}
    print(f"\n{client}: {len(rows) - len(failed)} of {len(rows)} methods as documented")
    assert len(rows) >= at_least, rows
    assert failed == {}
