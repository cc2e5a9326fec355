"""The Compose file of deploy/docker as a running stack, with passwords and a port of its own."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self
from uuid import uuid4

from deploy.stack import ports
from deploy.stack.server import http_ok
from deploy.stack.waiting import wait_until
from tests.support.compose import FOLDER, services

UP_S, READY_S = 300.0, 120.0
# Not in the format of docker-compose 1.29: the project's name is given, and the image is built.
NEWER = re.compile(r"^name: .*\n|^  build:\n(?:    .*\n)+", re.MULTILINE)


@cache
def program() -> Sequence[str]:
    """Compose's command: the plugin of Docker, else docker-compose."""
    plugin = ("docker", "compose")
    done = subprocess.run([*plugin, "version"], capture_output=True, check=False)
    return plugin if done.returncode == 0 else ("docker-compose",)


def missing_images() -> list[str]:
    """Images of the Compose file that are neither here nor in a registry in reach."""
    names = {str(service.raw["image"]) for service in services().values()}
    return [
        name
        for name in sorted(names)
        if not _succeeds("docker", "image", "inspect", name)
        and not _succeeds("docker", "pull", "--quiet", name)
    ]


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@dataclass
class Composed:
    """A running stack in `folder`; removed with its volumes at the end.

    `changes`: values of .env.example that differ. `values`: the passwords and the address.
    """

    folder: Path
    port: int = field(default_factory=ports.choose)
    changes: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    name: str = field(default_factory=lambda: f"memlane{uuid4().hex[:8]}")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        return self.run("exec", "-T", "api", "cat", "/var/lib/memlane/api_key").strip()

    def run(self, *arguments: str) -> str:
        """Run a command of Compose and return its output."""
        done = subprocess.run(
            [*program(), "--project-name", self.name, *arguments],
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C"},  # noqa: TID251
            capture_output=True,
            text=True,
            timeout=UP_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ready(self) -> None:
        """Wait until the API is ready."""
        wait_until(lambda: http_ok(self.port, "/readyz"), READY_S)
        assert http_ok(self.port, "/readyz"), self.run("logs", "--tail", "20")

    def containers(self, service: str) -> Sequence[str]:
        """Ids of a service's containers."""
        return self.run("ps", "--quiet", service).split()

    def __enter__(self) -> Self:
        text = (FOLDER / "compose.yaml").read_text("utf-8")
        (self.folder / "compose.yaml").write_text(NEWER.sub("", text), "utf-8")
        shutil.copy(FOLDER / "create-role.sh", self.folder)
        self.values = {
            "POSTGRES_PASSWORD": secrets.token_hex(12),
            "VALKEY_PASSWORD": secrets.token_hex(12),
            "PUBLISHED_ADDRESS": f"127.0.0.1:{self.port}",
        }
        given = {**self.changes, **self.values}
        example = (FOLDER / ".env.example").read_text("utf-8").splitlines()
        lines = [line for line in example if line.partition("=")[0] not in given]
        lines += [f"{name}={value}" for name, value in given.items()]
        (self.folder / ".env").write_text("\n".join(lines), "utf-8")
        try:
            self.run("up", "--detach")
            self.ready()
        except BaseException:
            self.run("down", "--volumes")
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.run("down", "--volumes")
