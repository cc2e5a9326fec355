"""A local stack with real servers; small programs stand in for API, workers and sweeper."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from deploy.stack.command import inherited_environment
from deploy.stack.identity import Identity
from deploy.stack.journal import State, read
from deploy.stack.layout import PROJECT_ROOT, Layout

STAND_IN = """
import http.server, os, pathlib, signal, sys
kind, *rest = sys.argv[1:]
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
if kind == "migrate":
    pathlib.Path(rest[0]).write_text("stand-in-key")
elif kind == "api":
    address = ("127.0.0.1", int(os.environ["MEMLANE_PORT"]))
    http.server.HTTPServer(address, Ready).serve_forever()
else:
    pathlib.Path(rest[0]).touch()
    while True:
        signal.pause()
"""
ALL = {"postgres", "redis", "chroma", "api", "worker-1", "sweeper"}


@dataclass
class LocalStack:
    layout: Layout
    port: int
    programs: Path
    extra: dict[str, str]

    def env(self) -> dict[str, str]:
        inherited = inherited_environment().items()
        others = {name: text for name, text in inherited if not name.startswith("MEMLANE_")}
        mine = {
            "MEMLANE_DATA_DIR": str(self.layout.root),
            "MEMLANE_API_PROCESSES": "1",
            "MEMLANE_WORKERS": "1",
            "MEMLANE_PORT": str(self.port),
        }
        return others | mine | self.extra

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run("deploy.cli", *arguments)

    def _run(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env=self.env(),
            cwd=PROJECT_ROOT,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def up(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.cli("up", "--programs", str(self.programs), *options)

    def memlane(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run("deploy.cli", *arguments)

    def state(self) -> State:
        state = read(self.layout)
        assert state is not None
        return state

    def processes(self) -> dict[str, Identity]:
        """The supervisor, and the processes in its state file that are alive."""
        me = self.state().supervisor.identity()
        assert me is not None
        return {"supervisor": me, **self.state().survivors()}

    def pid(self, name: str) -> int:
        return int(self.layout.pid_file(name).read_text())
