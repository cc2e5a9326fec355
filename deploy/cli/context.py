"""Options of the `memlane` command itself, and output of results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from deploy.cli.connection import ApiConnection
from deploy.stack.failure import StackError
from deploy.stack.layout import Layout, command_line, recovery_line
from deploy.stack.saved_settings import adopt
from pipeline import settings
from pipeline.settings import Settings

PIPE_COLUMNS = 160
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's answer as JSON.")]
User = Annotated[str | None, typer.Option("--user", help="Only of this user_id.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Only of this agent_id.")]
AppId = Annotated[str | None, typer.Option("--app", help="Only of this app_id.")]
Run = Annotated[str | None, typer.Option("--run", help="Only of this run_id.")]


@dataclass(frozen=True)
class Options:
    """URL of the API and file of the key; both default to those of the local stack."""

    url: str | None = None
    key_file: Path | None = None

    def address(self) -> tuple[str, Path]:
        """URL of the API, and file of the key."""
        configured, layout = local()
        url = self.url or f"http://127.0.0.1:{configured.port}"
        return url, self.key_file or layout.api_key

    def connect(self) -> ApiConnection:
        """A connection to the API. Errors: StackError if the key cannot be read."""
        url, path = self.address()
        return ApiConnection(url, key_in(path.expanduser()))


def key_in(path: Path) -> str:
    """The API key in a file. Errors: StackError without one."""
    try:
        key, reason = path.read_text("ascii").strip(), "it is empty"
    except OSError as error:
        key, reason = "", error.strerror or type(error).__name__
    except UnicodeDecodeError:
        key, reason = "", "it is not ASCII"
    if len(key.split()) > 1:
        key, reason = "", "it has more than one word"
    if not key:
        raise StackError(
            f"No API key at {path} ({reason}). Start the local stack with `{command_line('up')}`;"
            f" if its key is lost, `{recovery_line(path)}` creates another one. Or name the file of"
            " a key with --key-file."
        )
    return key


def options(context: typer.Context) -> Options:
    """The options of this call, which the root command stored."""
    stored = context.obj
    assert isinstance(stored, Options)
    return stored


def local() -> tuple[Settings, Layout]:
    """The settings, from the environment and those saved, and the layout of their data directory.

    Errors: InvalidInput for an unknown setting; pydantic's ValidationError for an invalid value.
    """
    adopt()
    configured = settings.load()
    return configured, Layout(configured.data_dir.expanduser().resolve())


def screen(pipe_columns: int = PIPE_COLUMNS) -> Console:
    """The terminal; in a pipe, this wide: by default, so that no id is cut."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=pipe_columns)


def print_json(answer: Mapping[str, Any]) -> None:
    """The API's answer, indented."""
    print(json.dumps(answer, indent=2, ensure_ascii=False))


def print_answer(answer: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """The API's answer as JSON, or this line about it."""
    if as_json:
        print_json(answer)
    else:
        print(text)


def print_table(rows: Sequence[Mapping[str, str]], *, empty: str) -> None:
    """Print a table with one column for each key of the first row, or `empty` without rows."""
    if not rows:
        print(empty)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in rows[0]:
        table.add_column(name, no_wrap=name == "id", overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    screen().print(table, markup=False)


def scope_text(ids: Mapping[str, str | None]) -> str:
    """The entity ids of a scope that are set: "user=maya run=3"."""
    names = ("user", "agent", "app", "run")
    return " ".join(f"{name}={value}" for name in names if (value := ids.get(f"{name}_id")))


def when(time: str | None) -> str:
    """A time from the API in local time, for people."""
    return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M") if time else ""
