"""Environments of the official clients, created once and cached.

They are separate because the clients' requirements must not mix with those of the server.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(tempfile.gettempdir()) / "memlane-compat"
# Install scripts of packages must not run.
NPM = ("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent")


def python_with(*packages: str) -> Path:
    """Folder of the executables of an environment with exactly these packages."""
    folder = CACHE / "+".join(packages).replace("==", "-")
    with _made_once(folder) as missing:
        if missing:
            _run(sys.executable, "-m", "venv", str(folder))
            _run(str(folder / "bin" / "pip"), "install", "--quiet", *packages)
    return folder / "bin"


def node_with(package: str) -> Path:
    """Folder whose node_modules contains exactly this package."""
    folder = CACHE / package.replace("@", "-")
    with _made_once(folder) as missing:
        if missing:
            folder.mkdir(parents=True)
            (folder / "package.json").write_text('{"private": true}')
            _run(*NPM, package, cwd=folder)
    return folder


@contextmanager
def _made_once(folder: Path) -> Iterator[bool]:
    """Yield whether the folder must be created; another test process waits, then uses it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder / ".made"
        missing = not made.exists()
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
        yield missing
        made.touch()


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
