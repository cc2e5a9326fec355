"""A whole stack of real processes for a test: up, clients, kill by name, down."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import httpx

from deploy.stack import ports

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Stack:
    """A local stack in `data_dir`.

    `settings` are further MEMLANE_… variables, not set if they are empty; `programs` replace
    Memlane's own processes, each with arguments of Python. `confirmed`: apply settings that differ
    from those of the last start in `data_dir`.
    """

    data_dir: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=ports.choose)
    programs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    confirmed: bool = False

    @property
    def environment(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("MEMLANE_")}  # noqa: TID251
        given = {
            "MEMLANE_DATA_DIR": str(self.data_dir),
            "MEMLANE_PORT": str(self.port),
            # So that a test knows which process to kill.
            "MEMLANE_API_PROCESSES": "1",
            "MEMLANE_WORKERS": "1",
            "MEMLANE_MAX_KEY_REQUESTS_PER_MIN": "0",
            **self.settings,
        }
        return inherited | {name: value for name, value in given.items() if value}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        return (self.data_dir / "api_key").read_text().strip()

    def command(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deploy.cli", verb, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def up(self) -> str:
        done = self.command("up", *(["--yes"] if self.confirmed else []), *self._stand_ins())
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _stand_ins(self) -> Sequence[str]:
        if not self.programs:
            return ()
        table = self.data_dir.with_suffix(".programs.json")
        table.write_text(json.dumps(self.programs))
        return ("--programs", str(table))

    def down(self) -> None:
        done = self.command("down")
        assert done.returncode == 0, done.stdout + done.stderr

    def pid(self, name: str) -> int:
        return int((self.data_dir / "run" / f"{name}.pid").read_text())

    def pids(self) -> dict[str, int]:
        """Pids of the running processes; a process that is being restarted has none."""
        figures = {}
        for file in (self.data_dir / "run").glob("*.pid"):
            with suppress(FileNotFoundError):  # the process has ended since the files were listed
                figures[file.stem] = int(file.read_text())
        return figures

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> int:
        pid = self.pid(name)
        os.kill(pid, how)
        return pid

    def logs(self) -> Mapping[str, str]:
        """The text of each log."""
        files = (self.data_dir / "logs").glob("*.log")
        return {file.name: file.read_text(errors="replace") for file in files}

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    async def __aenter__(self) -> Self:
        """Start in a thread, so that other stacks and servers of the test go on."""
        await asyncio.to_thread(self.up)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.down)

    def client(self) -> Client:
        return Client(self)


class ServedApi(Protocol):
    """An API with a key."""

    @property
    def url(self) -> str: ...

    @property
    def key(self) -> str: ...


class Client:
    """HTTP client of the API, as a chat backend would use it."""

    def __init__(self, stack: ServedApi) -> None:
        self.http = httpx.AsyncClient(
            base_url=stack.url, headers={"Authorization": f"Token {stack.key}"}, timeout=90
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def add(self, user_id: str, *texts: str, **options: Any) -> str:
        messages = [{"role": "user", "content": text} for text in texts]
        body = {"messages": messages, "user_id": user_id, **options}
        answer = await self.http.post("/v3/memories/add/", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "PENDING"
        return str(answer.json()["event_id"])

    async def event(self, event_id: str, *, wait: float = 0) -> dict[str, Any]:
        answer = await self.http.get(f"/v1/event/{event_id}/", params={"wait": wait})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def ended(self, event_id: str, *, within_s: float = 120) -> dict[str, Any]:
        """Wait for the end of an event and return the event. Fail on timeout."""
        deadline = time.monotonic() + within_s
        event = await self.event(event_id, wait=min(within_s, 60))
        while event["completed_at"] is None and (left := deadline - time.monotonic()) > 0:
            event = await self.event(event_id, wait=min(left, 60))
        assert event["status"] in ("SUCCEEDED", "FAILED"), event
        return event

    async def all_ended(self, ids: Sequence[str], *, within_s: float) -> list[dict[str, Any]]:
        deadline = time.monotonic() + within_s
        return [await self.ended(i, within_s=max(0.0, deadline - time.monotonic())) for i in ids]

    async def memories(self, user_id: str) -> list[dict[str, Any]]:
        body = {"filters": {"user_id": user_id}}
        answer = await self.http.post("/v3/memories/", json=body, params={"page_size": 200})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["results"])

    async def search(self, user_id: str, query: str, **options: Any) -> dict[str, Any]:
        body = {"query": query, "filters": {"user_id": user_id}, **options}
        answer = await self.http.post("/v3/memories/search/", json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


async def wait_until(
    condition: Callable[[], Awaitable[bool]],
    *,
    within_s: float,
    what: str,
    every_s: float = 0.02,
) -> None:
    """Return as soon as the condition holds; fail on timeout with `what` in the message."""
    deadline = time.monotonic() + within_s
    while not await condition():
        assert time.monotonic() < deadline, f"timeout after {within_s} s, waiting for: {what}"
        await asyncio.sleep(every_s)
