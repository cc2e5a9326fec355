"""Each file of examples/ runs as its first lines say, against a real stack."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stack import ROOT, Stack

EXAMPLES = ROOT / "examples"
LONGEST_LINES = 120


async def run(stack: Stack, name: str, *arguments: str, typed: str = "") -> str:
    options = ("--url", stack.url, "--key-file", str(stack.data_dir / "api_key"))
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, str(EXAMPLES / f"{name}.py"), *options, *arguments],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


async def test_the_helper_prints_a_receipt(stack: Stack) -> None:
    printed = await run(stack, "memlane_wait", "--user", "helper", "I live in Turku.")
    assert printed.startswith("ADD User lives in Turku (")


async def test_the_assistant_remembers_what_was_said(stack: Stack) -> None:
    first = "I am allergic to peanuts.\n/memories\n"
    assert "  User is allergic to peanuts" in await run(
        stack, "assistant_loop", "--user", "chat", typed=first
    )
    second = await run(stack, "assistant_loop", "--user", "chat", typed="Any allergy?\n/quit\nx\n")
    assert second == "I remember: User is allergic to peanuts.\n"


async def test_the_support_agent_keeps_customers_apart_and_undoes(stack: Stack) -> None:
    printed = await run(stack, "support_agent")
    assert "ADD    User uses the Android app" in printed
    assert "undo it.\nAbout ben-" in printed


async def test_the_health_log_shows_changes_and_is_erased(stack: Stack) -> None:
    printed = await run(stack, "health_log")
    assert "UPDATE User's weight is 82 kg (was: User's weight is 84 kg)" in printed
    assert "Before a prescription: ['User is allergic to penicillin']" in printed
    assert printed.endswith("Erased on request: 0 memories left.\n")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_has_a_test(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < LONGEST_LINES
    assert f'"{path.stem}"' in Path(__file__).read_text("utf-8")
