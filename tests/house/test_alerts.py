"""deploy/monitoring/memlane.rules.yaml: metrics that exist, a runbook each, alerts that fire."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from fastapi.routing import APIRoute

from api.routers import ROUTERS
from deploy.cli.app import app
from deploy.docs.metrics import series

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy/monitoring/memlane.rules.yaml"
RUNBOOKS = ROOT / "docs/howto/runbooks"
GROUPS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text("utf-8"))["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}

ADD = '{method="POST",route="/v3/memories/add/"'
QUICK, ALL = (f'memlane_http_seconds_bucket{ADD},le="0.1"}}', f"memlane_http_seconds_count{ADD}}}")
BAD, GOOD = (f'memlane_http_answers_total{ADD},status="{status}"}}' for status in (503, 200))
SLOW = {QUICK: "0+8x70", ALL: "0+10x70"}, {QUICK: "0+10x70", ALL: "0+10x70"}
FAILING = {BAD: "0+2x70", GOOD: "0+8x70"}, {BAD: "0x70", GOOD: "0+8x70"}
AGE = "memlane_queue_dispatchable_seconds"
WRITES_FAILED = "memlane_vector_writes_failed_total"
WAITS = 'memlane_queue_waiting_seconds{reason="%s"}'
RUNS = 'memlane_stage_seconds_count{stage="extract"}'
Series = dict[str, str]


def waits(code: str) -> tuple[Series, Series]:
    return {WAITS % code: "0+60x70"}, {WAITS % code: "0x70", AGE: "500x70"}


def counts(name: str) -> tuple[Series, Series]:
    """A counter that grows, and one that does not."""
    return {name: "0+3x70"}, {name: "7x70"}


# Series, one value a minute, with which an alert fires, and with which it does not.
CASES: dict[str, tuple[Series, Series]] = {
    "MemlaneAddsSlowFast": SLOW,
    "MemlaneAddsSlowSlow": SLOW,
    "MemlaneAddsFailFast": FAILING,
    "MemlaneAddsFailSlow": FAILING,
    "MemlaneSearchableLateFast": ({AGE: "31x70"}, {AGE: "30x70"}),
    "MemlaneSearchableLateSlow": ({AGE: "31x70"}, {AGE: "30x70"}),
    # The second process is a worker, whose gauges of the ledger are never set.
    "MemlaneBooksUnbalanced": (
        {'memlane_ledger_balanced{pod="a"}': "0x70", 'memlane_ledger_up{pod="a"}': "1x70"},
        {
            'memlane_ledger_balanced{pod="a"}': "1x70",
            'memlane_ledger_up{pod="a"}': "1x70",
            'memlane_ledger_balanced{pod="b"}': "0x70",
            'memlane_ledger_up{pod="b"}': "0x70",
        },
    ),
    "MemlaneLedgerDown": (
        {'memlane_ledger_up{pod="a"}': "0x70"},
        {'memlane_ledger_up{pod="a"}': "1x70", 'memlane_ledger_up{pod="b"}': "0x70"},
    ),
    # An outage of the provider is no backlog.
    "MemlaneBacklog": ({AGE: "61x70"}, {AGE: "0x70", WAITS % "LLM_UNAVAILABLE": "0+60x70"}),
    "MemlaneLanesStuck": (
        {AGE: "0+60x70", RUNS: "5x70"},
        {AGE: "0+60x70", RUNS: "0+5x70"},
    ),
    "MemlaneProviderDown": waits("LLM_UNAVAILABLE"),
    "MemlaneProviderRejects": waits("LLM_REJECTED"),
    "MemlaneStoreDown": (
        {"memlane_searches_without_vectors_total": "7x70", WRITES_FAILED: "0+3x70"},
        {
            "memlane_searches_without_vectors_total": "7x70",
            WRITES_FAILED: "7x70",
            WAITS % "STORE_UNAVAILABLE": "0x70",
        },
    ),
    "MemlaneDeadLetters": (
        {'memlane_events_ended_total{status="FAILED",code="POISON_CRASH"}': "0+3x70"},
        {
            'memlane_events_ended_total{status="FAILED",code="POISON_CRASH"}': "7x70",
            'memlane_events_ended_total{status="FAILED",code="INVALID_INPUT"}': "0+3x70",
        },
    ),
    "MemlaneWebhooksDead": counts('memlane_webhook_tries_total{state="DEAD"}'),
    "MemlaneSweeperSilent": counts("memlane_sweeper_ticks_total")[::-1],
    "MemlaneHintsLost": counts("memlane_kicks_failed_total"),
    "MemlaneWorkersCrash": counts('memlane_lanes_swept_total{was="RUNNING"}'),
    "MemlaneUnsealed": (
        {"memlane_seals_oldest_seconds": "0+60x70"},
        {"memlane_seals_oldest_seconds": "300x70"},
    ),
    "MemlaneSealsRefused": counts('memlane_seals_refused_total{what="row"}'),
    "MemlaneGraphMirrorLate": (
        {"memlane_graph_mirror_lag_seconds": "0+60x70"},
        {"memlane_graph_mirror_lag_seconds": "300x70"},
    ),
    "MemlaneAddsRefused": counts('memlane_adds_refused_total{limit="server"}'),
}
# Labels that an alert keeps of its series.
KEPT_LABELS = {
    "MemlaneDeadLetters": {"code": "POISON_CRASH"},
    "MemlaneSealsRefused": {"what": "row"},
}


def case(name: str, *, fires: bool) -> dict[str, Any]:
    """A test of promtool: the alert after 65 minutes, of which the slow ones wait 60."""
    rule = ALERTS[name]
    labels = {**rule["labels"], **KEPT_LABELS.get(name, {})}
    firing = [{"exp_labels": labels, "exp_annotations": rule["annotations"]}]
    return {
        "name": f"{name} {'fires' if fires else 'does not fire'}",
        "interval": "1m",
        "input_series": [
            {"series": key, "values": values} for key, values in CASES[name][not fires].items()
        ],
        "alert_rule_test": [
            {"alertname": name, "eval_time": "65m", "exp_alerts": firing if fires else []}
        ],
    }


def test_every_alert_has_a_case() -> None:
    assert set(CASES) == set(ALERTS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_names_metrics_that_exist(rule: dict[str, Any]) -> None:
    recorded = {other["record"] for other in RULES if "record" in other}
    names = set(re.findall(r"\bmemlane[\w:]*", rule["expr"]))
    assert names
    assert names <= series() | recorded


def test_the_routes_of_the_objectives_exist() -> None:
    [pattern] = {match for rule in RULES for match in re.findall(r'route=~"([^"]+)"', rule["expr"])}
    posted = {
        route.path
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and "POST" in (route.methods or ())
    }
    assert set(pattern.split("|")) <= posted


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_links_its_runbook(name: str) -> None:
    page = ROOT / ALERTS[name]["annotations"]["runbook_url"]
    assert page == RUNBOOKS / f"{name}.md"
    text = page.read_text("utf-8")
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Effect", "Look at", "Do"]
    assert f"({'runbooks/' + name}.md)" in (RUNBOOKS.parent / "monitoring.md").read_text("utf-8")


def test_no_runbook_is_without_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == set(ALERTS)


def test_runbooks_name_commands_and_metrics_that_exist() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in RUNBOOKS.glob("*.md"):
        text = page.read_text("utf-8")
        for command, part in re.findall(r"`memlane ([a-z]+)(?: ([a-z]+))?", text):
            assert command in commands, page.name
            parts = getattr(commands[command], "commands", None)
            assert not parts or part in parts, page.name
        assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets, page.name
        families = {name.removesuffix("_bucket") for name in series()}
        assert set(re.findall(r"`(memlane_\w+)", text)) <= families, page.name


def test_each_alert_fires_and_holds(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: Debian's package prometheus has it.")
    (tmp_path / FILE.name).write_bytes(FILE.read_bytes())
    tests = [case(name, fires=fires) for name in ALERTS for fires in (True, False)]
    document = {"rule_files": [FILE.name], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(document), "utf-8")
    for command in (["check", "rules", FILE.name], ["test", "rules", "tests.yaml"]):
        done = subprocess.run(
            [promtool, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
