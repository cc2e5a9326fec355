"""deploy/kubernetes: the chart's files agree with the code. `make chart-test` renders them."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pipeline import __version__
from pipeline.settings import known_names, secret_names

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/kubernetes/memlane"
TEMPLATES = "\n".join(path.read_text("utf-8") for path in CHART.glob("templates/*"))
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text("utf-8"))


def refused(values: dict[str, Any]) -> bool:
    return bool(list(jsonschema.Draft7Validator(SCHEMA).iter_errors(values)))


def test_the_chart_installs_this_release() -> None:
    info = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert info["appVersion"] == info["version"] == __version__


def test_keda_and_metrics_run_the_same_statement() -> None:
    # A link, so that they cannot differ: Helm packs the file that it leads to.
    link = CHART / "files/dispatchable_age.sql"
    assert link.resolve() == ROOT / "pipeline/lanes/sql/dispatchable_age.sql"


def test_the_templates_name_settings_and_modules_that_exist() -> None:
    settings = set(re.findall(r"MEMLANE_\w+", TEMPLATES)) - {"MEMLANE_"}
    assert len(settings) > 5
    assert settings <= known_names()
    modules = re.findall(r"python, -m, ([\w.]+)", TEMPLATES)
    assert sorted(modules) == ["api", "pipeline.migrate", "workers", "workers.sweeper"]
    assert all(importlib.util.find_spec(name) for name in modules)


def test_the_schema_has_every_value_and_its_default() -> None:
    assert not refused(VALUES)
    assert set(VALUES) == set(SCHEMA["properties"]) - {"global"}


@pytest.mark.parametrize("name", sorted(secret_names()))
def test_a_secret_is_not_accepted_as_a_value(name: str) -> None:
    assert refused({"settings": {name: "text"}})


@pytest.mark.parametrize("name", sorted(set(re.findall(r"- name: (MEMLANE_\w+)", TEMPLATES))))
def test_a_setting_that_the_chart_makes_is_not_given_twice(name: str) -> None:
    assert refused({"settings": {name: "text"}})
    assert refused({"secretSettings": {name: {"secret": "memlane", "key": "text"}}})


def test_other_settings_are_accepted() -> None:
    assert not refused({"settings": {"MEMLANE_LLM__MODEL": "openai/gpt-4o-mini"}})
    assert not refused({"secretSettings": {"OPENAI_API_KEY": {"secret": "openai", "key": "key"}}})
