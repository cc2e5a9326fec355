"""The stack of compose.yaml in containers, for tests that otherwise use the local stack."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from tests.support.composed import Composed, missing_images
from tests.support.containers import docker
from tests.support.stack import Stack

ADDRESS = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
# No limit of requests, as in the local stack of tests.
UNLIMITED = {"MEMLANE_MAX_KEY_REQUESTS_PER_MIN": "0"}
ENDS = "is started, stopped and described by Compose, not by `make`"


@dataclass
class ComposedStack(Stack):
    """A stack whose `settings` are the URLs of its servers, on the network of the containers."""

    _composed: Composed | None = field(default=None, init=False)

    @property
    def composed(self) -> Composed:
        """The running containers."""
        assert self._composed is not None, "not started"
        return self._composed

    def up(self) -> str:
        """Start the containers; skips the test if their images cannot be had."""
        if missing := missing_images():
            pytest.skip(f"neither here nor in a registry in reach: {', '.join(missing)}")
        folder = self.data_dir / "compose"
        folder.mkdir(parents=True)
        self._composed = Composed(folder, self.port, changes=UNLIMITED)
        self._composed.__enter__()
        (self.data_dir / "api_key").write_text(self._composed.key)
        self.settings = self._servers(self._composed)
        return ""

    def _servers(self, composed: Composed) -> Mapping[str, str]:
        """Settings with which a process of this host reaches the servers."""
        host = {
            service: docker(
                "inspect", "--format", ADDRESS, composed.containers(service)[0]
            ).stdout.strip()
            for service in ("postgres", "valkey", "chroma")
        }
        password, broker_password = (
            composed.values[name] for name in ("POSTGRES_PASSWORD", "VALKEY_PASSWORD")
        )
        return {
            "MEMLANE_DATABASE_URL": f"postgresql://memlane:{password}@{host['postgres']}/memlane",
            "MEMLANE_BROKER_URL": f"redis://:{broker_password}@{host['valkey']}:6379/0",
            "MEMLANE_CHROMA_URL": f"http://{host['chroma']}:8000",
        }

    def down(self) -> None:
        """Remove the containers and their volumes."""
        self.composed.__exit__()

    def command(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Skip the test: it is about the local stack."""
        pytest.skip(f"`{verb} {' '.join(arguments)}`: a stack in containers {ENDS}")

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to the first process of each container of a service: all its workers.

        The host sends it. Docker does not start a container again that it has killed itself.
        """
        pids = [
            int(docker("inspect", "--format", "{{.State.Pid}}", container).stdout)
            for container in self.composed.containers(name.partition("-")[0])
        ]
        assert pids
        for pid in pids:
            os.kill(pid, how)
        return pids[0]

    def logs(self) -> Mapping[str, str]:
        """The logs of all containers, as one text."""
        return {"compose": self.composed.run("logs", "--no-color")}
