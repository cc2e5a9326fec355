"""README and docs: complete, up to date and linked. test_english.py checks their words."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from api.routers import ROUTERS
from deploy.docs.pages import PAGES
from pipeline.settings import known_names
from tests.bench import footprint, report
from tests.eval import report as evaluation
from tests.support.pages import FENCE, NOT_TESTED, ROOT, blocks, pages

NAMES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "examples/README.md")
PAPERS = [ROOT / name for name in NAMES]
LANGUAGES = {"sh", "json", "text", "python", "js", "http", "sql"}
LONGEST_README = 150
LINK = re.compile(r"\]\(([^)\s]+)\)")
# Number, title, quote, status, date and tests of a decision.
DECISION = re.compile(
    r"# (\d+)\. (.+)\n\n> (.+)\n\n(Accepted|Changed) · (\d{4}-\d\d-\d\d) · held by"
    r" (review|`tests/[\w/]+\.py`(?:\sand\s(?:review|`tests/[\w/]+\.py`))?)\n\n## Context\n"
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


ALL = {name_of(path): path.read_text("utf-8") for path in [*pages(), *PAPERS]}


# ── generated pages ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("page", PAGES)
def test_a_generated_page_is_up_to_date(page: str) -> None:
    assert read(f"docs/reference/{page}") == PAGES[page](), "Run: python -m deploy.docs"


def test_the_benchmark_page_shows_the_record() -> None:
    page = report.page(report.recorded())
    assert read("docs/benchmarks/hosted.md") == page, "Run: python -m tests.bench.report"


def test_the_page_of_start_and_memory_shows_the_record() -> None:
    page = footprint.page(footprint.recorded())
    assert read("docs/benchmarks/footprint.md") == page, (
        "Run: python -m tests.bench.footprint --page"
    )


def test_the_evaluation_page_shows_the_record() -> None:
    page = evaluation.page(evaluation.recorded())
    assert read("docs/benchmarks/evaluation.md") == page, "Run: python -m tests.eval.report"


def test_the_settings_page_has_every_setting() -> None:
    written = set(
        re.findall(r"^\| `(MEMLANE_\w+)`", read("docs/reference/settings.md"), re.MULTILINE)
    )
    # A group such as MEMLANE_LLM is set by its nested names.
    groups = {name.split("__")[0] for name in known_names() if "__" in name}
    assert written == known_names() - groups


@pytest.mark.parametrize("page", ALL)
def test_a_page_names_only_settings_that_exist(page: str) -> None:
    named = set(re.findall(r"MEMLANE_[A-Z0-9_]*[A-Z0-9]", ALL[page]))
    assert named <= known_names()


@pytest.mark.parametrize("page", ALL)
def test_a_page_names_only_files_and_modules_that_exist(page: str) -> None:
    rooms = "api|workers|pipeline|deploy|tests|examples"
    paths = re.findall(rf"(?<![\w/.-])(?:{rooms})/[\w./*-]*", FENCE.sub("", ALL[page]))
    modules = re.findall(rf"python -m ((?:{rooms})[\w.]*)", ALL[page])
    missing = [path for path in paths if not list(ROOT.glob(path.rstrip("./")))]
    missing += [name for name in modules if importlib.util.find_spec(name) is None]
    assert missing == []


# ── API compatibility ────────────────────────────────────────────────────────────────────────────


def _documented_routes() -> dict[tuple[str, str], str]:
    """State of each endpoint in the table, by method and path."""
    page = read("docs/reference/api-compat.md")
    rows = re.findall(r"^\| ([A-Z]+) \| `(/\S+)` \| ([a-z ]+) \|", page, re.MULTILINE)
    return {(method, path): state for method, path, state in rows}


# Routes of operations, which the table leaves out.
OPERATIONS = ("/livez", "/healthz", "/readyz", "/metrics", "/console")


def _served_routes() -> set[tuple[str, str]]:
    return {
        (method, route.path.replace(":path", ""))
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and not route.path.startswith(OPERATIONS)
        for method in route.methods or ()
    }


def test_the_compat_table_has_every_route_and_no_other() -> None:
    documented, served = _documented_routes(), _served_routes()
    assert set(documented.values()) <= {"works", "differs", "not yet", "ours"}
    assert {route for route, state in documented.items() if state != "not yet"} == served


# ── pages ────────────────────────────────────────────────────────────────────────────────────────


def test_the_readme_is_short() -> None:
    assert len(read("README.md").splitlines()) <= LONGEST_README


@pytest.mark.parametrize("page", ALL)
def test_a_fenced_block_is_run_or_says_why_not(page: str) -> None:
    assert len(re.findall(r"^ *```", ALL[page], re.MULTILINE)) == 2 * len(blocks(ALL[page])), (
        "A fence is not closed or named."
    )
    for block in blocks(ALL[page]):
        assert block.language in LANGUAGES, f"line {block.number}: {block.language}"
        if block.language == "sh" and (block.title is not None or page in NAMES):
            title = block.title or ""
            assert title.startswith(NOT_TESTED), f"line {block.number}: {title}"


def test_commands_of_a_checkout_name_its_environment() -> None:
    """The system's Python has none of the packages."""
    bare = re.compile(r"(?<!\.venv/bin/)python3? (?:-m (?:tests|deploy|pytest|memlane_client)|- <)")
    wrong = {name_of(path): bare.findall(path.read_text("utf-8")) for path in pages()}
    assert not {name: commands for name, commands in wrong.items() if commands}


def test_decisions_are_numbered_and_have_the_same_parts() -> None:
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    for number, path in enumerate(decisions, start=1):
        text = path.read_text("utf-8")
        assert path.name.startswith(f"{number:04d}-")
        assert text.startswith(f"# {number}. ")
        assert re.findall(r"^(> |## .+)", text, re.MULTILINE) == [
            "> ", "## Context", "## Decision", "## Alternatives", "## Consequence",
        ], path.name  # fmt: skip
        assert not re.search(r"^## .+\n+(## |\Z)", text, re.MULTILINE), f"{path.name}: empty part"
    assert len(decisions) > 30


def test_decisions_have_a_status_a_date_and_a_test() -> None:
    """The index repeats them, and a changed decision says what changed on that date."""
    index = read("docs/decisions/index.md")
    for path in (ROOT / "docs/decisions").glob("[0-9]*.md"):
        text = path.read_text("utf-8")
        head = DECISION.match(text)
        assert head, f"{path.name}: Accepted · 2026-01-31 · held by `tests/…/test_x.py`"
        number, title, quote, status, day, held_by = head.groups()
        assert date.fromisoformat(day)
        for test in re.findall(r"`(.+?)`", held_by):
            assert (ROOT / test).is_file(), f"{path.name}: {test}"
        assert (status == "Changed") == (f"\nChanged on {day}: " in text), path.name
        row = f"| {number} | [{title}]({path.name}) | {quote} | {status.lower()} {day} |"
        assert f"{row}\n" in index


# ── links and site ───────────────────────────────────────────────────────────────────────────────


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", title.lower()).strip() for title in titles]
    return {slug.replace(" ", "-") for slug in slugs}


@pytest.mark.parametrize("page", ALL)
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", ALL[page])):
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / page).parent / file if file else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            broken.append(link)
    assert broken == []


def test_the_site_builds_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # noqa: TID251  a variable of mkdocs
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    loaded = re.compile(r'<(?:script|img|iframe)[^>]*src="https?:|<link[^>]*href="https?:')
    built = list(tmp_path.rglob("*.html"))
    assert len(built) > len(PAGES)
    assert [path.name for path in built if loaded.search(path.read_text("utf-8"))] == []
