"""Memlane's image as containers: the services of compose.yaml on servers of this host.

The vendors' images of PostgreSQL, Valkey and Chroma are left out: the servers are the local stack's
own, on loopback. Containers share the network of the host. Everything else of a service is that of
compose.yaml: command, read-only root, capabilities, tmpfs, memory.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from deploy.stack import ports
from deploy.stack.server import http_ok
from deploy.stack.waiting import wait_until
from tests.support.compose import services

IMAGE = "memlane"
WITHIN_S = 120.0


def docker(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run docker; fails with its output."""
    done = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def hardened(service: str) -> list[str]:
    """Options of `docker run` for what compose.yaml allows this service."""
    raw = services()[service].raw
    options = ["--network", "host", "--memory", str(raw["mem_limit"])]
    options += [part for name in raw["cap_drop"] for part in ("--cap-drop", name)]
    options += [part for name in raw["security_opt"] for part in ("--security-opt", name)]
    options += [part for place in raw["tmpfs"] for part in ("--tmpfs", place)]
    return options + (["--read-only"] if raw["read_only"] else [])


@dataclass
class Containers:
    """Containers of one test. `environment`: the servers' URLs. Removed by `close`."""

    environment: Mapping[str, str]
    port: int = field(default_factory=ports.choose)
    name: str = field(default_factory=lambda: f"memlane-test-{uuid4().hex[:8]}")
    probes: dict[str, int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        return self.run("migrate", "cat", "/var/lib/memlane/api_key").stdout.strip()

    def run(
        self, service: str, *command: str, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in a container of this service; by default, the service's."""
        words = command or services()[service].command
        return docker("run", "--rm", *self._options(service, 0), IMAGE, *words, check=check)

    def start(self, service: str, title: str) -> float:
        """Start a service and wait until it is ready. Returns the seconds that this took."""
        probe = self.port if service == "api" else ports.choose()
        self.probes[title] = probe
        options = ["--detach", "--name", f"{self.name}-{title}", *self._options(service, probe)]
        began = time.monotonic()
        docker("run", *options, IMAGE, *services()[service].command)
        wait_until(lambda: http_ok(probe, "/readyz"), WITHIN_S)
        assert http_ok(probe, "/readyz"), self.log(title)
        return time.monotonic() - began

    def _options(self, service: str, probe: int) -> list[str]:
        variables = {
            **services()[service].environment,
            **self.environment,
            "MEMLANE_HOST": "127.0.0.1",
            "MEMLANE_PORT": str(self.port),
            "MEMLANE_PROBE_PORT": str(probe) if service != "api" and probe else "",
        }
        given = [f"--env={name}={value}" for name, value in variables.items() if value]
        return [*hardened(service), f"--volume={self.name}:/var/lib/memlane", *given]

    def log(self, title: str) -> str:
        """Log of a container."""
        done = docker("logs", f"{self.name}-{title}", check=False)
        return done.stdout + done.stderr

    def exec(self, title: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a running container."""
        return docker("exec", f"{self.name}-{title}", *command, check=False)

    def stop(self, title: str) -> tuple[int, float]:
        """Send SIGTERM as Compose does. Returns the exit code, and seconds until the end."""
        began = time.monotonic()
        docker("stop", "--time", "30", f"{self.name}-{title}")
        code = docker("inspect", "--format", "{{.State.ExitCode}}", f"{self.name}-{title}").stdout
        return int(code), time.monotonic() - began

    def kill(self, title: str) -> None:
        """Kill a container."""
        docker("kill", f"{self.name}-{title}")

    def close(self) -> None:
        """Remove all containers and the volume."""
        for title in self.probes:
            docker("rm", "--force", f"{self.name}-{title}", check=False)
        docker("volume", "rm", "--force", self.name, check=False)
