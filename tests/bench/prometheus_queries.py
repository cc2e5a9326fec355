"""Every query of the dashboard and the rules, run once: `python -m tests.bench.prometheus_queries`.

A real Prometheus (Debian's package `prometheus`, found on the PATH) on the loopback address scrapes
the running stack at `--url` and evaluates the rules. Prints each query without a series, each alert
whose condition holds, and a JSON object with the totals. Exits with 1 if a query is refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import yaml

from tests.support.prometheus import RULES, NoPrometheus, prometheus
from tests.support.stack import wait_until

MONITORING = Path(__file__).resolve().parents[2] / "deploy/monitoring"
SCRAPED_S = 120.0
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


async def run(url: str) -> bool:
    """Run all queries. False if one was refused."""
    queries = [*dashboard_queries(), *rule_queries()]
    refused, empty, holding = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        async with prometheus([urlsplit(url).netloc], Path(folder)) as server:

            async def scraped() -> bool:
                return await server.scrapes() >= SCRAPES

            await wait_until(scraped, within_s=SCRAPED_S, what="scrapes of the stack")
            for query in queries:
                try:
                    rows = await server.instant(query.text)
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
    try:
        sys.exit(not asyncio.run(run(parser.parse_args().url)))  # noqa: TID251  a separate process
    except NoPrometheus as error:
        sys.exit(str(error))
