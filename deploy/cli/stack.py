"""memlane up, down, status, logs, scale, settings, reindex, run and reset: the local stack."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.context import local, print_table
from deploy.stack import control, rebuild
from deploy.stack.failure import StackError
from deploy.stack.fingerprint import changes
from deploy.stack.journal import read
from deploy.stack.layout import Layout, command_line
from deploy.stack.programs import PROGRAMS, read_programs
from deploy.stack.saved_settings import SavedSettings, adopt, masked, own_layout
from deploy.stack.supervisor import is_running
from pipeline.settings import Settings

COUNTED = {"workers": "MEMLANE_WORKERS", "api": "MEMLANE_API_PROCESSES"}
MOST = 64

Programs = Annotated[Path | None, typer.Option(hidden=True)]  # for tests
Changes = Annotated[bool, typer.Option("--yes", help="Apply changed settings without asking.")]


def up(
    brief: Annotated[
        bool, typer.Option("--brief", help="Print one line, without the key.")
    ] = False,
    yes: Changes = False,
    programs: Programs = None,
) -> None:
    """Start everything, wait until it is healthy, print the URL, the key and a first curl."""
    saved = adopt()
    configured, layout = local()
    raise typer.Exit(control.up(configured, layout, saved, programs, brief=brief, sure=yes))


def run(yes: Changes = False, programs: Programs = None) -> None:
    """Run like `up`, in the foreground until SIGTERM, for systemd."""
    saved = adopt()
    configured, layout = local()
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    table = read_programs(programs) if programs else PROGRAMS
    raise typer.Exit(control.run(configured, layout, saved, table, sure=yes))


def scale(
    counts: Annotated[list[str], typer.Argument(help="workers=3, api=2", metavar="NAME=NUMBER…")],
) -> None:
    """Add or drain workers or API processes of the running stack. The others go on."""
    saved = adopt()
    layout = local()[1]
    raise typer.Exit(control.scale(layout, saved, _numbers(counts)))


def settings() -> None:
    """Print the settings in force and their sources. Secrets are masked."""
    saved = adopt()
    _show(saved, *local())


def down() -> None:
    """Stop everything. Memories stay."""
    raise typer.Exit(control.down(own_layout()))


def status() -> None:
    """Print a table of the processes. Exit code 3 if nothing runs."""
    raise typer.Exit(control.status(own_layout()))


def logs(
    names: Annotated[list[str] | None, typer.Argument(help="api, worker-1, postgres …")] = None,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Last lines of each.")] = 40,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until Ctrl-C.")] = False,
    event: Annotated[str | None, typer.Option(help="All lines of this event, by time.")] = None,
    pretty: Annotated[bool, typer.Option("--pretty", help="Short lines, by time.")] = False,
) -> None:
    """Print the end of all logs, or of the named ones."""
    code = control.logs(
        own_layout(), names or [], lines=lines, follow=follow, pretty=pretty, event_id=event
    )
    raise typer.Exit(code)


def reindex() -> None:
    """Build the configured vector index, or repair the one in use."""
    saved = adopt()
    configured, layout = local()
    raise typer.Exit(rebuild.reindex(configured, layout, saved))


def reset(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Stop everything and delete all memories, settings, keys and logs."""
    raise typer.Exit(control.reset(own_layout(), sure=yes))


def _show(saved: SavedSettings, configured: Settings, layout: Layout) -> None:
    """Print each setting that is set, with its value and source."""
    current = saved.current(configured)
    rows = [
        {
            "setting": name,
            "value": masked(name, value),
            "from": str(saved.path) if name in saved.taken else _source(name, saved),
        }
        for name, value in current.items()
    ]
    print_table(rows, empty="Nothing is set: all settings have their defaults.")
    state = read(layout) if is_running(layout) else None
    changed = changes(configured, state.salt, state.settings) if state else []
    if changed:
        up = command_line("up")
        print(f"The running stack has other values of {', '.join(changed)}; `{up}` applies them.")


def _source(name: str, saved: SavedSettings) -> str:
    same = saved.file.get(name) == saved.shell.get(name)
    return "environment, and saved" if same else "environment, not saved"


def _numbers(counts: Sequence[str]) -> dict[str, int]:
    """The settings of `workers=3` and `api=2`. Errors: StackError for anything else."""
    values = {}
    for count in counts:
        match = re.fullmatch(r"(\w+)=(\d{1,4})", count)
        if match is None or match[1] not in COUNTED or not 1 <= int(match[2]) <= MOST:
            raise StackError(f"{count[:40]}: write workers=N or api=N, with N from 1 to {MOST}.")
        values[COUNTED[match[1]]] = int(match[2])
    return values
