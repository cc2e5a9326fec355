"""Requests generated from the OpenAPI description: no server error, and errors that explain."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.environments import python_with
from tests.support.stack import Stack

HOOKS = Path(__file__).parent / "clients" / "description_hooks.py"
EXAMPLES = 15


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of its own: the requests may make a second admin key and delete the first one."""
    with Stack(tmp_path_factory.mktemp("described")) as running:
        yield running


@pytest.mark.timeout(600)
def test_newest_description_holds_for_whatever_it_allows(
    stack: Stack, environment: dict[str, str], tmp_path: Path
) -> None:
    command = (
        *(python_with("schemathesis==4.32.5") / "st", "run", f"{stack.url}/openapi.json"),
        *("--header", f"Authorization: Token {stack.key}"),
        *("--checks", "not_a_server_error,errors_say_what_to_change"),
        *("--max-examples", str(EXAMPLES), "--phases", "examples,coverage,fuzzing"),
    )
    done = subprocess.run(
        command,
        env=environment | {"SCHEMATHESIS_HOOKS": str(HOOKS)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    [cases] = re.findall(r"(\d+) generated", done.stdout)
    print(f"\nOpenAPI description: 0 failures in {cases} generated requests")
    assert int(cases) > 500
