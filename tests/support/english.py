"""Words, docstring openers and names that the project does not use, and functions to find them.

The lists come from reviews: a search for the usual term finds nothing if a text uses these.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator

BANNED: dict[str, str] = {
    r"whoever|whomever": "a client, a worker, a process",
    r"whatever|whichever": "any, every",
    r"nobody|no ?one": "no client, no worker",
    r"everybody|somebody|anybody": "every client, a person",
    r"anew": "again",
    r"meanwhile": "in the meantime: say what happens at the same time",
    r"of (?:theirs|his|hers)": "its own",
    r"so many": "the number",
    r"(?:came|comes|became|becomes|become) of": "the result, the receipt",
    r"looked at": "checked, read",
    r"owed?|owes|owing": "stale, pending, not yet written",
    r"told": "gets, receives",
    r"for ever": "without a limit",
    r"thereby|whereby|hereby|thereof|whatsoever|henceforth": "a shorter sentence",
    r"be it": "either",
    r"lest": "so that",
    r"upon": "on",
    r"he|she|his|him|himself|herself": "the client, the user, it",
}
# Names that do not say what a value is or a function does: write row, hits, text, query, event.
VALUE_NAMES = {"found", "one", "said", "held", "told", "asked", "kept", "wish", "whose"}
OPENERS = {
    "What", "Who", "Whom", "Whose", "Whoever", "How", "Whether", "Where", "Wherever", "When",
    "Whenever", "Whatever", "Which", "Why",
}  # fmt: skip
PATTERN = re.compile(rf"\b(?:{'|'.join(BANNED)})\b", re.IGNORECASE)
# Code in backticks and quotations are not ours to word.
QUOTED = re.compile(r'`[^`\n]*`|"[^"\n]*"|“[^”\n]*”')

# How a comment starts in files of other languages.
COMMENTS = {"sql": "--", "js": "//", "mjs": "//"}
# Folders and files whose strings are data.
DATA = ("tests/", "pipeline/adapters/model_rules/", "pipeline/text/")

Line = tuple[int, str]


def banned_words(lines: Iterable[Line]) -> Iterator[str]:
    """The banned words of numbered lines; quotations and code in backticks do not count."""
    for number, line in lines:
        for match in PATTERN.finditer(QUOTED.sub("", line)):
            yield f"{number}: {match[0]}"


def banned_names(tree: ast.AST) -> Iterator[str]:
    """Variables and arguments of a module that have a banned name; keys of responses may."""
    published = {key for node in ast.walk(tree) if is_response(node) for key in ast.walk(node)}
    for node in ast.walk(tree):
        if node in published:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
                pass
            case _:
                continue
        if name in VALUE_NAMES:
            yield f"{node.lineno}: {name}"


CTE = re.compile(
    r"(?:\bWITH(?: RECURSIVE)?|[,)])\s+(\w+)(?: \([^)]*\))? AS (?:NOT )?(?:MATERIALIZED )?\("
)


def banned_ctes(sql: str) -> Iterator[str]:
    """The common table expressions of a statement that have a banned name."""
    code = re.sub(r"--.*", "", sql)
    for match in CTE.finditer(code):
        if match[1] in VALUE_NAMES | {"owed"}:
            yield f"{code.count(chr(10), 0, match.start(1)) + 1}: {match[1]}"


def banned_definitions(tree: ast.AST) -> Iterator[str]:
    """Functions, classes, columns and log events of a module that have a banned word or name."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                pass
            case ast.ClassDef(name=name):
                name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
            case ast.Call(func=ast.Name(id="Column"), args=[ast.Constant(value=str(name)), *_]):
                pass
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="log")),
                args=[ast.Constant(value=str(name)), *_],
            ):
                pass
            case _:
                continue
        if name.strip("_") in VALUE_NAMES or PATTERN.search(name.replace("_", " ")):
            yield f"{node.lineno}: {name}"


def is_response(node: ast.AST) -> bool:
    """True for a class that declares the JSON of a response."""
    return isinstance(node, ast.ClassDef) and node.name.endswith("Json")


def banned_openers(tree: ast.AST) -> Iterator[str]:
    """Docstrings of a module that open with a relative or question word."""
    for node, docstring in docstrings(tree):
        opener = re.match(r"\w*", docstring)
        if opener and opener[0] in OPENERS:
            yield f"{node.lineno}: {opener[0]}"


def docstrings(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """The docstrings of a module with their nodes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                first = node.body[0]
                assert isinstance(first, ast.Expr)
                yield first.value, text


def sentences(name: str, source: str) -> Iterator[Line]:
    """Comments of a file, by line; of a Python file also docstrings, of the product messages too.

    A message is a string of several words. Test data and word lists are left out.
    """
    if not name.endswith(".py"):
        mark = COMMENTS.get(name.rpartition(".")[2], "#")
        for number, line in enumerate(source.splitlines(), start=1):
            yield number, line.partition(mark)[2]
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    tree = ast.parse(source)
    texts = [node for node, _ in docstrings(tree)]
    if not name.startswith(DATA):
        texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    for node in texts:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from enumerate(node.value.splitlines(), start=node.lineno)
