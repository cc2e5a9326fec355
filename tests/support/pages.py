"""Documentation pages as programs.

Fenced `sh` blocks are run in order, in one shell for each page. A `json` or `text` block directly
after one is its output, in part: a JSON object may leave out keys, a list with elements its tail,
and `…` stands for any text. An empty list is shown only for an empty list. Ids, times and durations
differ from run to run; an id in an output block stands for the real one in all later blocks.
`sh title="not tested here: <reason>"` is not run. `python` blocks run with the newest Mem0 client,
in tests/compat.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
URL, DATA_DIR = "http://127.0.0.1:8000", ".memlane/"
NOT_TESTED = "not tested here: "
FENCE = re.compile(r"^ *```(\w+)(?: title=\"([^\"\n]*)\")?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
DURATIONS = {"ms", "latency"}
MARK = "===== end of block"
# The environment of a page is installed already: its `make` must install nothing.
MAKE = """#!/bin/sh
exec {make} -o .venv/.installed -o .venv/.installed-dev "$@"
"""
# The system's Python of a fresh checkout: only .venv/bin/python has the packages.
PYTHON = """#!/bin/sh
exec {python} -S "$@"
"""


@dataclass(frozen=True)
class Block:
    """A fenced block: `number` is the line of its fence, `start` and `end` delimit its text."""

    language: str
    title: str | None
    text: str
    number: int
    start: int
    end: int

    @property
    def runs(self) -> bool:
        return self.language == "sh" and self.title is None


def pages() -> list[Path]:
    """README and all pages below docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: str) -> list[Block]:
    return [
        Block(
            match[1],
            match[2],
            match[3],
            page.count("\n", 0, match.start()) + 1,
            match.start(3),
            match.end(3),
        )
        for match in FENCE.finditer(page)
    ]


def environment(of_stack: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Environment variables of a shell in a fresh checkout after `make up`.

    The stack's, with a home in `folder`, and a `make` and a `python3` for the page.
    """
    variables = {name: value for name, value in of_stack.items() if name != "PYTHONPATH"}
    tools, path = folder / "tools", variables["PATH"]
    tools.mkdir()
    make, python = shutil.which("make", path=path), Path(sys.executable).resolve()
    for name, script in {
        "make": MAKE.format(make=make),
        "python3": PYTHON.format(python=python),
        "python": PYTHON.format(python=python),
    }.items():
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    return {**variables, "PATH": f"{tools}:{path}", "HOME": str(folder)}


@dataclass
class Shell:
    """A bash process at the root of the checkout; standard error goes to a file."""

    environment: Mapping[str, str]
    errors: Path

    def __enter__(self) -> Self:
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                ["bash", "--noprofile", "--norc"],
                cwd=ROOT,
                env=dict(self.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate("exit\n", timeout=10)

    def run(self, commands: str) -> str:
        """Run commands; return standard output. Fail if the last command fails."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{commands}\nprintf '\\n{MARK} %s\\n' $?\n")
        stdin.flush()
        lines: list[str] = []
        for line in stdout:
            if line.startswith(MARK):
                assert line.split()[-1] == "0", (
                    f"{commands}\n{''.join(lines)}\n{self.errors.read_text()}"
                )
                return "".join(lines).strip("\n")
            lines.append(line)
        raise AssertionError(f"The shell ended in: {commands}\n{self.errors.read_text()}")


@dataclass
class Run:
    """Run of a page against a stack at `url` with its data in `data_dir`."""

    shell: Shell
    url: str
    data_dir: Path
    ids: dict[str, str] = field(default_factory=dict)

    def steps(self, page: str) -> Iterator[tuple[Block, Block | None, str]]:
        """Run each `sh` block; yield it, the output block after it, and its standard output."""
        all_blocks = blocks(page)
        for block, after in zip(all_blocks, [*all_blocks[1:], None], strict=True):
            if block.runs:
                shown = after if after and after.language in ("json", "text") else None
                yield block, shown, self.shell.run(self._real(block.text))

    def _real(self, commands: str) -> str:
        text = placed(commands, self.url, self.data_dir)
        return UUID.sub(lambda match: self.ids.get(match[0], match[0]), text)

    def compare(self, shown: Block, output: str) -> None:
        if shown.language == "text":
            assert re.search(_pattern(shown.text.strip()), output), f"{shown.text}\n≠\n{output}"
        else:
            self.same(json.loads(shown.text), parsed(output), f"line {shown.number}")

    def same(self, shown: Any, real: Any, place: str) -> None:
        """Fail with the place in the document if the shown value is not part of the real one."""
        match shown, real:
            case dict(), dict():
                for key, value in shown.items():
                    assert key in real, f"{place}: no {key} in {real}"
                    if key not in DURATIONS:
                        self.same(value, real[key], f"{place}.{key}")
            case list(), list():
                shortened = 0 < len(shown) <= len(real)
                assert shortened or shown == real, f"{place}: {shown} ≠ {real}"
                for number, (value, other) in enumerate(zip(shown, real, strict=False)):
                    self.same(value, other, f"{place}[{number}]")
            case str(), str():
                assert self._same_text(shown, real), f"{place}: {shown!r} ≠ {real!r}"
            case float(), int() | float():
                pass
            case _:
                assert shown == real, f"{place}: {shown!r} ≠ {real!r}"

    def _same_text(self, shown: str, real: str) -> bool:
        if UUID.fullmatch(shown) and UUID.fullmatch(real):
            return self.ids.setdefault(shown, real) == real
        both_times = TIME.match(shown) and TIME.match(real)
        return bool(both_times or re.fullmatch(_pattern(shown), real))


def placed(text: str, url: str, data_dir: Path) -> str:
    """The text, with the stack's URL and data directory."""
    return text.replace(URL, url).replace(DATA_DIR, f"{data_dir}/")


def parsed(output: str) -> Any:
    """Last JSON document of an output that contains nothing else."""
    decoder, rest = json.JSONDecoder(), output.strip()
    while True:
        document, end = decoder.raw_decode(rest)
        rest = rest[end:].strip()
        if not rest:
            return document


def _pattern(shown: str) -> str:
    return "(?s)" + ".*?".join(map(re.escape, shown.split("…")))
