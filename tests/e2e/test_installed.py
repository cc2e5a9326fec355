"""The wheel contains every file of the packages, and runs outside the checkout."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from deploy.stack.layout import PROJECT_ROOT
from pipeline import __version__
from tests.support.stack import Stack

PACKAGES = ("api", "workers", "pipeline", "deploy")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*command, "--directory", str(folder)], cwd=PROJECT_ROOT, check=True)
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    listed = subprocess.check_output(["git", "ls-files", *PACKAGES], cwd=PROJECT_ROOT, text=True)
    tracked = {name for name in listed.splitlines() if (PROJECT_ROOT / name).is_file()}
    assert {Path(name).suffix for name in tracked} >= {".py", ".sql", ".md", ".json"}
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert tracked - packed == set()
    assert {"memlane_client/__init__.py", "memlane_client/py.typed"} <= packed
    assert wheel.name == f"memlane-{__version__}-py3-none-any.whl"


async def test_memlane_runs_from_the_wheel_outside_the_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    site, stack = tmp_path / "site", Stack(tmp_path / "data")
    environment = stack.environment | {"PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}

    async def run(*command: str | Path) -> str:
        done = await asyncio.to_thread(
            subprocess.run,
            [str(word) for word in command],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    async def memlane(*arguments: str) -> str:
        return await run(site / "bin" / "memlane", *arguments)

    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
    await run(*pip, "--target", site, wheel)
    try:
        assert stack.url in await memlane("up")
        if sys.platform == "linux":
            assert Path(f"/proc/{stack.pid('api')}/cwd").readlink() == site
        async with stack.client() as client:
            event_id = await client.add("maya", "I live in Turku.")
            assert "SUCCEEDED" in await memlane("events", "show", event_id, "--wait", "60")
    finally:
        await memlane("down")
