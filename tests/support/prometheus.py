"""A Prometheus server on the loopback address, from Debian's package `prometheus`."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from deploy.stack.ports import choose
from tests.support.stack import wait_until

RULES = Path(__file__).resolve().parents[2] / "deploy/monitoring/memlane.rules.yaml"
STARTED_S = 60.0


class NoPrometheus(Exception):
    """The program is not installed."""


class Prometheus:
    """Client of a server's API."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def instant(self, query: str) -> list[dict[str, Any]]:
        """The series of an instant query. Errors: HTTPStatusError if Prometheus refuses it."""
        response = await self._http.get("/api/v1/query", params={"query": query})
        response.raise_for_status()
        rows: list[dict[str, Any]] = response.json()["data"]["result"]
        return rows

    async def range(self, query: str, *, since: float, until: float) -> list[dict[str, Any]]:
        """The series of a query between two times (Unix), each with 200 values at most."""
        step = max(1.0, (until - since) / 200)
        span: dict[str, str | float] = {
            "query": query,
            "start": since,
            "end": until,
            "step": step,
        }
        response = await self._http.get("/api/v1/query_range", params=span)
        response.raise_for_status()
        rows: list[dict[str, Any]] = response.json()["data"]["result"]
        return rows

    async def scrapes(self) -> int:
        """Number of scrapes of the first target in the last minutes."""
        rows = await self.instant("count_over_time(up[5m])")
        return int(rows[0]["value"][1]) if rows else 0

    async def alerts(self) -> Mapping[str, str]:
        """State of each alert: inactive, pending or firing."""
        response = await self._http.get("/api/v1/rules", params={"type": "alert"})
        response.raise_for_status()
        groups = response.json()["data"]["groups"]
        return {rule["name"]: rule["state"] for group in groups for rule in group["rules"]}


@asynccontextmanager
async def prometheus(
    targets: Sequence[str], folder: Path, *, rules: Path = RULES, every: str = "1s"
) -> AsyncIterator[Prometheus]:
    """A server with rules that scrapes `host:port` targets. Errors: NoPrometheus."""
    program = shutil.which("prometheus")
    if program is None:
        raise NoPrometheus("prometheus is not on the PATH: Debian's package prometheus has it.")
    config = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "memlane", "static_configs": [{"targets": list(targets)}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), "utf-8")
    address = f"127.0.0.1:{choose()}"
    process = await asyncio.create_subprocess_exec(
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=error",
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://{address}", timeout=30.0) as http:
            await wait_until(lambda: _ready(http), within_s=STARTED_S, what="Prometheus")
            yield Prometheus(http)
    finally:
        process.terminate()
        await process.wait()


async def _ready(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/-/ready")).is_success
    except httpx.TransportError:
        return False
