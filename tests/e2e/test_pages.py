"""README and docs as printed: every `sh` block runs, and its output matches the block after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pages import ROOT, Run, Shell, blocks, environment, pages
from tests.support.stack import Stack

# Pages that change the stack's settings.
ALONE = {"docs/howto/vectors.md", "docs/howto/production.md"}
RUNNABLE = [
    path.relative_to(ROOT).as_posix()
    for path in pages()
    if any(block.runs for block in blocks(path.read_text("utf-8")))
]


@pytest.fixture(scope="module")
def page_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("pages")) as running:
        yield running


@pytest.fixture
def stack_of(page: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    """The stack that all pages share, or a separate one for pages that change settings."""
    if page not in ALONE:
        yield request.getfixturevalue("page_stack")
        return
    with Stack(tmp_path / "stack") as own:
        yield own


@pytest.mark.parametrize("page", RUNNABLE)
def test_a_page_does_what_it_prints(page: str, stack_of: Stack, tmp_path: Path) -> None:
    with Shell(environment(stack_of.environment, tmp_path), tmp_path / "errors") as shell:
        run = Run(shell, stack_of.url, stack_of.data_dir)
        ran = 0
        for _, shown, output in run.steps((ROOT / page).read_text("utf-8")):
            ran += 1
            if shown is not None:
                run.compare(shown, output)
        assert ran


def test_there_are_pages_to_run() -> None:
    assert "README.md" in RUNNABLE
    assert len(RUNNABLE) > 5
