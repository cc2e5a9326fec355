"""The Python and Node examples of README and docs, as printed, with the newest official client."""

from __future__ import annotations

import subprocess

import pytest

from tests.compat.environments import node_with, python_with
from tests.support.pages import ROOT, blocks, pages, placed
from tests.support.stack import Stack


def examples(language: str) -> dict[str, str]:
    return {
        f"{path.relative_to(ROOT)}:{block.number}": block.text
        for path in pages()
        for block in blocks(path.read_text("utf-8"))
        if block.language == language
    }


EXAMPLES, NODE_EXAMPLES = examples("python"), examples("js")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", EXAMPLES)
def test_a_python_example_runs_with_the_newest_client(
    place: str, stack: Stack, environment: dict[str, str]
) -> None:
    python = python_with("mem0ai==2.2.1") / "python"
    done = subprocess.run(
        [python, "-c", placed(EXAMPLES[place], stack.url, stack.data_dir)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "bike" in done.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", NODE_EXAMPLES)
def test_a_node_example_runs_with_the_newest_client(
    place: str, stack: Stack, environment: dict[str, str]
) -> None:
    script = node_with("mem0ai@3.3.1") / "example.mjs"
    script.write_text(placed(NODE_EXAMPLES[place], stack.url, stack.data_dir))
    done = subprocess.run(
        ["node", script], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "bike" in done.stdout


def test_there_are_examples() -> None:
    assert EXAMPLES
    assert NODE_EXAMPLES
