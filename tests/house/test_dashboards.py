"""deploy/monitoring/dashboards: up to date, complete, and every query names series that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.docs.dashboards import COLUMNS, dashboard
from deploy.docs.metrics import family_name, metrics, series

FOLDER = Path(__file__).resolve().parents[2] / "deploy/monitoring"
FILE = FOLDER / "dashboards/memlane.json"
BODY: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
PANELS = [panel for panel in BODY["panels"] if panel["type"] != "row"]
QUERIES = {target["expr"] for panel in PANELS for target in panel["targets"]}


def recorded() -> set[str]:
    """Names of the series that the rules record."""
    document = yaml.safe_load((FOLDER / "memlane.rules.yaml").read_text("utf-8"))
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    return {rule["record"] for rule in rules if "record" in rule}


def test_the_dashboard_is_up_to_date() -> None:
    assert FILE.read_text("utf-8") == dashboard(), "Run: python -m deploy.docs"


@pytest.mark.parametrize("query", sorted(QUERIES))
def test_a_query_names_series_that_exist(query: str) -> None:
    names = set(re.findall(r"\bmemlane[\w:]*", query))
    assert names
    assert names <= series() | recorded()


def test_every_metric_has_a_panel() -> None:
    text = "\n".join(QUERIES)
    names = set(map(family_name, metrics()))
    assert {name for name in names if not re.search(rf"\b{name}(_total|_bucket)?\b", text)} == set()


def test_a_panel_names_no_series_that_never_counts() -> None:
    """A counter has each value of its labels from the start, so a legend would be full of zeros."""
    rates = {query for query in QUERIES if re.match(r"sum by .*rate\(", query)}
    assert rates
    assert {query for query in rates if not query.endswith("> 0")} == set()
    empty = {panel["fieldConfig"]["defaults"]["noValue"] for panel in PANELS}
    assert empty == {"none in this time"}


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in BODY["panels"]
        for grid in [panel["gridPos"]]
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < COLUMNS
    assert len({panel["id"] for panel in BODY["panels"]}) == len(BODY["panels"])
