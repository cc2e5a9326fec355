"""Garbage collection while a program loads its modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.collector import YOUNG


@pytest.mark.parametrize("edge", ["api", "workers"])
@pytest.mark.parametrize(
    ("arguments", "rarely"),
    [(["-m", "own.program"], True), (["-c", "import own.program"], False)],
    ids=["program", "library"],
)
def test_only_a_program_collects_rarely_while_it_loads(
    tmp_path: Path, arguments: list[str], rarely: bool, edge: str
) -> None:
    package = tmp_path / "own"
    package.mkdir()
    (package / "__init__.py").write_text(Path(edge, "__init__.py").read_text())
    (package / "program.py").write_text("import gc\nprint(gc.get_threshold()[0])\n")
    command = [sys.executable, *arguments]
    env = {"PYTHONPATH": f"{tmp_path}:{Path.cwd()}"}
    young = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, check=True).stdout
    assert (int(young) == YOUNG) is rarely
