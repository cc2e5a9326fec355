"""The console's files: vendored ones as recorded, within their budget, and without inline code."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from api.console.assets import FILES
from tests.house.test_house import ROOT

STATIC = ROOT / "api" / "console" / "static"
TEMPLATES = sorted((ROOT / "api" / "console" / "templates").glob("*.html"))
VENDORED = json.loads((STATIC / "vendor.json").read_text("utf-8"))
# Bytes of all scripts and styles, without the graph library, which one page loads.
BUDGET = 400_000
GRAPH = "vendor/force-graph.min.js"
LICENSES = {"0BSD", "MIT"}


@pytest.mark.parametrize("name", VENDORED)
def test_a_vendored_file_is_the_recorded_one(name: str) -> None:
    recorded = VENDORED[name]
    content = (STATIC / "vendor" / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == recorded["sha256"]
    assert recorded["license"] in LICENSES
    assert re.fullmatch(r"\d+\.\d+\.\d+", recorded["version"])
    title = f"{recorded['package']}-{recorded['version']}"
    assert title in (STATIC / "vendor" / "LICENSES.txt").read_text("utf-8")


def test_every_served_file_is_there_and_every_vendored_file_is_recorded() -> None:
    assert all((STATIC / name).is_file() for name in FILES)
    assert {f"vendor/{name}" for name in VENDORED} == {
        name for name in FILES if name.startswith("vendor/")
    }


def test_the_files_fit_the_budget() -> None:
    assert sum((STATIC / name).stat().st_size for name in FILES if name != GRAPH) <= BUDGET


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_inline_code_and_loads_only_own_files(template: Path) -> None:
    text = template.read_text("utf-8")
    assert not re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|hx-on|js:", text)
    assert not re.findall(r"(?:src|href|action)=\"(?:https?:)?//", text)
    assert "|safe" not in text.replace(" ", "")


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_form_that_changes_something_has_the_token(template: Path) -> None:
    text = template.read_text("utf-8")
    forms = re.findall(r'<form[^>]*method="post".*?</form>', text, re.DOTALL)
    signing_in = ("signin.html", "enter.html", "user_enter.html")
    for form in forms:
        proven = "csrf()" in form or "token()" in form  # a user's page has a token instead
        assert proven or template.name in signing_in, form


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_table_has_a_name_and_its_headers_a_scope(template: Path) -> None:
    text = template.read_text("utf-8")
    assert re.findall(r"<th(?![^>]*\bscope=)[ >]", text) == []
    for table in re.finditer(r"<table\b[^>]*>", text):
        region = text[: table.start()].rpartition("<div")[2]
        named = region.startswith(' class="scroll"') and region.endswith(">")
        assert "aria-label=" in (region if named else table[0]), table[0]
