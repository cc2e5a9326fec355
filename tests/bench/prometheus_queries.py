"""Every query of the dashboard and the rules, run once: `python -m tests.bench.prometheus_queries`.

A real Prometheus (Debian's package `prometheus`, found on the PATH) on the loopback address scrapes
the running stack at `--url` and evaluates the rules. Prints each query without a series, each alert
whose condition holds, and a JSON object with the totals. Exits with 1 if a query is refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml

from deploy.stack.ports import choose
from tests.support.stack import wait_until

MONITORING = Path(__file__).resolve().parents[2] / "deploy/monitoring"
RULES = MONITORING / "memlane.rules.yaml"
STARTED_S, SCRAPED_S = 60.0, 120.0
# Scrapes after which rates have values.
SCRAPES = 10


@dataclass(frozen=True, slots=True)
class Query:
    """A query of the panel or rule `title`. An alert has series only while its condition holds."""

    title: str
    text: str
    alert: bool = False


def dashboard_queries() -> list[Query]:
    body = json.loads((MONITORING / "dashboards/memlane.json").read_text("utf-8"))
    return [
        Query(panel["title"], target["expr"])
        for panel in body["panels"]
        for target in panel.get("targets", ())
    ]


def rule_queries() -> list[Query]:
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    return [
        Query(rule.get("alert") or rule["record"], rule["expr"], "alert" in rule) for rule in rules
    ]


@asynccontextmanager
async def prometheus(
    url: str, folder: Path, *, every_s: int = 1
) -> AsyncIterator[httpx.AsyncClient]:
    """A Prometheus with the rules that scrapes a stack; a client of its API."""
    program = shutil.which("prometheus")
    if program is None:
        sys.exit("prometheus is not on the PATH: Debian's package prometheus has it.")
    target = {"targets": [urlsplit(url).netloc]}
    config = {
        "global": {"scrape_interval": f"{every_s}s", "evaluation_interval": f"{every_s}s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "memlane", "static_configs": [target]}],
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
        async with httpx.AsyncClient(base_url=f"http://{address}", timeout=30.0) as client:
            await wait_until(lambda: _ready(client), within_s=STARTED_S, what="Prometheus")
            yield client
    finally:
        process.terminate()
        await process.wait()


async def _ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/-/ready")).is_success
    except httpx.TransportError:
        return False


async def instant(client: httpx.AsyncClient, query: str) -> list[dict[str, Any]]:
    """The series of an instant query. Errors: HTTPStatusError if Prometheus refuses it."""
    response = await client.get("/api/v1/query", params={"query": query})
    response.raise_for_status()
    rows: list[dict[str, Any]] = response.json()["data"]["result"]
    return rows


async def run(url: str) -> bool:
    """Run all queries. False if one was refused."""
    queries = [*dashboard_queries(), *rule_queries()]
    refused, empty, holding = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        async with prometheus(url, Path(folder)) as client:

            async def scraped() -> bool:
                rows = await instant(client, "sum_over_time(up[5m])")
                return bool(rows) and float(rows[0]["value"][1]) >= SCRAPES

            await wait_until(scraped, within_s=SCRAPED_S, what="scrapes of the stack")
            for query in queries:
                try:
                    rows = await instant(client, query.text)
                except httpx.HTTPStatusError as error:
                    refused.append(f"{query.title}: {error.response.text}")
                    continue
                if query.alert and rows:
                    holding.append(query.title)
                elif not query.alert and not rows:
                    empty.append(query.title)
    for line in (*refused, *(f"no series: {title}" for title in empty)):
        print(line)
    totals = {
        "queries": len(queries),
        "refused": len(refused),
        "without_series": len(empty),
        "alerts_whose_condition_holds": holding,
    }
    print(json.dumps(totals))
    return not refused


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.bench.prometheus_queries", description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    sys.exit(not asyncio.run(run(parser.parse_args().url)))  # noqa: TID251  a separate process
