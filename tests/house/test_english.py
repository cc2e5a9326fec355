"""Plain English and documented code: words, openers, names, docstrings, sources.

`python -m tests.house.test_english` lists all breaches, and the public names without a docstring.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.house.test_house import ROOMS, ROOT, kept_files, name_of
from tests.support.english import (
    banned_ctes,
    banned_definitions,
    banned_names,
    banned_openers,
    banned_words,
    sentences,
)
from tests.support.pages import FENCE

MIGRATIONS = "pipeline/ledger/migrations/versions/"
COMMENTED = {".py", ".sql", ".toml", ".yml", ".yaml", ".js", ".mjs", ".lua"}
LONGEST_WITHOUT_DOCSTRING = 12
P90_OF_FUNCTION_LINES = 30
DOCUMENTED_SHARE = 0.99

Function = ast.FunctionDef | ast.AsyncFunctionDef
# What breaks a rule, by file.
Breaches = dict[str, list[str]]


@cache
def texts() -> dict[str, str]:
    """Content of every file that the rules read, by name."""
    # Other projects wrote the vendored files.
    names = {name_of(p): p for p in kept_files() if "api/console/static/vendor/" not in name_of(p)}
    return {
        name: path.read_text("utf-8")
        for name, path in names.items()
        if path.suffix in COMMENTED | {".md"} or path.name in ("Makefile", "Dockerfile")
    }


@cache
def trees() -> dict[str, ast.Module]:
    """Every Python file, parsed."""
    return {name: ast.parse(text) for name, text in texts().items() if name.endswith(".py")}


def product() -> dict[str, ast.Module]:
    """The product's Python files, without the database migrations."""
    return {
        name: tree
        for name, tree in trees().items()
        if name.split("/")[0] in ROOMS and not name.startswith(MIGRATIONS)
    }


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions and methods of a module."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def length(node: Function) -> int:
    """Lines of a function, from `def` to its end."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def public(body: list[ast.stmt]) -> Iterator[ast.ClassDef | Function]:
    """Public functions, classes and methods; functions inside functions are not."""
    for node in body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body)


@cache
def promised() -> set[str]:
    """Methods of the ports: their docstrings are there, not repeated in each adapter."""
    return {
        method.name
        for node in trees()["pipeline/ports.py"].body
        if isinstance(node, ast.ClassDef)
        for method in functions(ast.Module(node.body, []))
    }


def implements_a_port(name: str, node: ast.AST) -> bool:
    """Tell if an adapter or a wrapper of a model repeats a method of a port."""
    return (
        isinstance(node, Function)
        and name.startswith(("pipeline/adapters/", "pipeline/models/"))
        and node.name in promised()
    )


def documented() -> dict[str, tuple[list[str], int]]:
    """Public names without a docstring, and the number of public names, by file."""
    counts = {}
    for name, tree in product().items():
        nodes = [node for node in public(tree.body) if not implements_a_port(name, node)]
        missing = [f"{node.lineno}: {node.name}" for node in nodes if not ast.get_docstring(node)]
        counts[name] = (missing, len(nodes))
    return counts


# ── rules, file by file ──────────────────────────────────────────────────────────────────────────


def words() -> Breaches:
    """Banned words in comments, docstrings, messages and pages."""
    breaches = {}
    for name, text in texts().items():
        if name.endswith(".md"):
            page = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
            breaches[name] = list(banned_words(enumerate(page.splitlines(), start=1)))
        else:
            breaches[name] = list(banned_words(sentences(name, text)))
    return breaches


def openers() -> Breaches:
    """Docstrings that open with a question word."""
    return {name: list(banned_openers(tree)) for name, tree in trees().items()}


def names() -> Breaches:
    """Variables and arguments named for nothing."""
    return {name: list(banned_names(tree)) for name, tree in trees().items()}


def definitions() -> Breaches:
    """Functions, classes, columns and log events of the product with a banned word or name.

    The column `owed` stays: workers of the release before read it.
    """
    return {
        name: [line for line in banned_definitions(tree) if not line.endswith(": owed")]
        for name, tree in product().items()
    }


def ctes() -> Breaches:
    """Common table expressions with a banned name."""
    return {
        name: list(banned_ctes(text)) for name, text in texts().items() if name.endswith(".sql")
    }


def long_private_functions() -> Breaches:
    """Private functions of more than 12 lines without a docstring."""
    return {
        name: [
            f"{node.lineno}: {node.name}"
            for node in functions(tree)
            if node.name.startswith("_")
            and length(node) > LONGEST_WITHOUT_DOCSTRING
            and not ast.get_docstring(node)
        ]
        for name, tree in product().items()
    }


def classes() -> Breaches:
    """Classes of the server and of tests/support that share their name with another one there."""
    server = {name: tree for name, tree in product().items() if not name.startswith("clients/")}
    support = {name: tree for name, tree in trees().items() if name.startswith("tests/support/")}
    defined: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, tree in (server | support).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append((name, node.lineno))
    breaches: Breaches = defaultdict(list)
    for title, homes in defined.items():
        for name, line in homes[1:]:
            breaches[name].append(f"{line}: {title} (also {homes[0][0]})")
    return breaches


def sources() -> Breaches:
    """`Source:` lines that name a file which does not exist."""
    pattern = re.compile(
        r"Source: .*?(?<![\w/.])((?:tests|docs|pipeline|workers|deploy)/[\w/.-]*\w)"
    )
    return {
        name: [
            f"{number}: {path}"
            for number, line in sentences(name, text)
            for path in pattern.findall(line)
            if not (ROOT / path).exists()
        ]
        for name, text in texts().items()
        if not name.endswith(".md")
    }


RULES: list[Callable[[], Breaches]] = [
    words, openers, names, definitions, ctes, long_private_functions, classes, sources,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_file_breaks_the_rule(rule: Callable[[], Breaches]) -> None:
    breaches = {name: lines for name, lines in rule().items() if lines}
    assert breaches == {}, rule.__doc__


@pytest.mark.parametrize(
    ("text", "banned"),
    [
        ("Whoever holds it", ["1: Whoever"]),
        ("x\nis owed anew", ["2: owed", "2: anew"]),
        ("what became of it", ["1: became of"]),
        ('the word "whoever" and `told`', []),
        ("the client, the row, the theory", []),
    ],
)
def test_the_check_sees_a_banned_word(text: str, banned: list[str]) -> None:
    assert list(banned_words(enumerate(text.splitlines(), start=1))) == banned


def test_the_checks_see_banned_names_and_openers() -> None:
    tree = ast.parse('''
def read(told):
    """What it reads."""
    for one in (held := told):
        row = one
    try:
        row()
    except OSError as said:
        pass

class Row:
    """Whose it is."""

def whatever():
    """A row."""
''')
    assert sorted(banned_names(tree)) == ["2: told", "4: held", "4: one", "8: said"]
    assert sorted(banned_openers(tree)) == ["12: Whose", "3: What"]


def test_the_checks_see_banned_definitions_and_ctes() -> None:
    tree = ast.parse("""
class WhatWasTold: ...

def _held(): ...

log.warning("projection_owed")
Column("said", Text)
Column("said_at", Text)
""")
    assert sorted(banned_definitions(tree)) == [
        "2: What_Was_Told", "4: _held", "6: projection_owed", "7: said",
    ]  # fmt: skip
    sql = "-- told AS (\nWITH held AS MATERIALIZED (\n), lane AS (\n), kept (id) AS (SELECT 1)"
    assert list(banned_ctes(sql)) == ["2: held", "4: kept"]


# ── rules over the whole ─────────────────────────────────────────────────────────────────────────


def test_public_functions_and_classes_have_a_docstring() -> None:
    counts = documented().values()
    missing = sum(len(names) for names, _ in counts)
    share = 1 - missing / sum(total for _, total in counts)
    assert share >= DOCUMENTED_SHARE, f"{share:.1%}; {missing} have none."


def test_nine_of_ten_functions_are_short() -> None:
    lengths = sorted(length(node) for tree in product().values() for node in functions(tree))
    p90 = lengths[len(lengths) * 9 // 10]
    print(f"{len(lengths)} functions: median {lengths[len(lengths) // 2]}, p90 {p90} lines")
    assert p90 <= P90_OF_FUNCTION_LINES


if __name__ == "__main__":
    by_rule = {rule.__name__: rule() for rule in RULES}
    by_rule["docstring"] = {name: missing for name, (missing, _) in documented().items()}
    for title, breaches in by_rule.items():
        for name, lines in sorted(breaches.items()):
            if lines:
                print(f"{title} {name}: {'; '.join(lines)}")
