"""Messages of `make` while pip installs, and after pip fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.install import BROKEN_HINT, INDEX_HINT, explain, progress
from deploy.stack.layout import PROJECT_ROOT

NO_INDEX = """\
WARNING: Retrying after connection broken by 'NewConnectionError': /simple/attrs/
ERROR: Could not find a version that satisfies the requirement attrs==1 (from versions: none)
ERROR: No matching distribution found for attrs==1
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("", "  collecting 0 of 5 packages ...", id="nothing yet"),
        pytest.param(
            "Ignoring a: markers don't match\nCollecting b==1\n  Downloading b\nCollecting c==2\n",
            "  collecting 2 of 4 packages ...",
            id="collecting",
        ),
        pytest.param(
            "Collecting b==1\nInstalling collected packages: b\n",
            "  unpacking 5 packages ...",
            id="unpacking",
        ),
    ],
)
def test_progress_is_counted_by_what_pip_writes(text: str, line: str) -> None:
    assert progress(text, pinned=5) == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NO_INDEX, f"ERROR: No matching distribution found for attrs==1\n{INDEX_HINT}"),
        ("Traceback (most recent call last):\n", f"ERROR: pip ended early.\n{BROKEN_HINT}"),
        ("ERROR: Errno 13\n", f"ERROR: Errno 13\n{BROKEN_HINT}"),
    ],
)
def test_a_failure_is_one_error_and_one_hint(text: str, message: str) -> None:
    assert explain(text) == message


@pytest.mark.parametrize("python", ["missing", "without packages"])
def test_make_names_the_way_out_of_a_broken_environment(python: str, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    for marker in (".made", ".installed"):
        (venv / marker).touch()
    if python != "missing":
        script = venv / "bin" / "python"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
        script.chmod(0o700)
    done = subprocess.run(
        ["make", "up", f"VENV={venv}"],
        cwd=PROJECT_ROOT,
        env={"PATH": os.defpath, "MEMLANE_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "`make clean`" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()
