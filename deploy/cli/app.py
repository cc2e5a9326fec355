"""The commands of `memlane`, and the module of each."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from deploy.cli.context import Options
from deploy.cli.lazy_commands import LazyCommand, LazyCommands
from deploy.stack.exits import exit_code
from pipeline import __version__

STACK = "The stack on this machine"
API = "Any Memlane, over its API"
HELP = {"help_option_names": ["-h", "--help"]}
# The client reads these commands' options itself.
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

# In the order of the help.
COMMANDS = {
    "up": LazyCommand("deploy.cli.stack", "up", STACK),
    "scale": LazyCommand("deploy.cli.stack", "scale", STACK),
    "settings": LazyCommand("deploy.cli.stack", "settings", STACK),
    "down": LazyCommand("deploy.cli.stack", "down", STACK),
    "status": LazyCommand("deploy.cli.stack", "status", STACK),
    "logs": LazyCommand("deploy.cli.stack", "logs", STACK),
    "demo": LazyCommand("deploy.cli.demo", "demo", STACK),
    "doctor": LazyCommand("deploy.cli.doctor", "doctor", STACK),
    "reindex": LazyCommand("deploy.cli.stack", "reindex", STACK),
    "run": LazyCommand("deploy.cli.stack", "run", STACK),
    "reset": LazyCommand("deploy.cli.stack", "reset", STACK),
    "backup": LazyCommand("deploy.cli.backup", "backup", STACK),
    "restore": LazyCommand("deploy.cli.backup", "restore", STACK),
    "migrate": LazyCommand("deploy.cli.migrate", "migrate", STACK),
    "repair": LazyCommand("deploy.cli.repair", "repair", STACK),
    "plan": LazyCommand("deploy.cli.plan", "show", STACK),
    "export": LazyCommand("deploy.cli.transfer", "export", API),
    "import": LazyCommand("deploy.cli.transfer", "import_source", API),
    "verify": LazyCommand("deploy.cli.verify", "verify", API),
    "hook": LazyCommand("deploy.cli.client", "hook", API, PASSED_ON),
    "proxy": LazyCommand("deploy.cli.client", "proxy", API, PASSED_ON),
    "keys": LazyCommand("deploy.cli.keys", "app", API),
    "events": LazyCommand("deploy.cli.events", "app", API),
    "replay": LazyCommand("deploy.cli.replays", "app", API),
}


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast("dict[str, Any]", LazyCommands(COMMANDS))


app = typer.Typer(
    cls=Commands,
    name="memlane",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings=HELP,
    epilog="Settings are environment variables, MEMLANE_…, and those saved with the data; "
    "`memlane settings` lists them, `memlane doctor` checks them.",
)


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    os.umask(0o077)  # only the owner may read the data directory
    sys.exit(exit_code(lambda: app(standalone_mode=True) or 0))


def print_version(wanted: bool) -> None:
    """Callback of `--version`: print the version and exit."""
    if wanted:
        print(f"memlane {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    url: Annotated[
        str | None, typer.Option(help="Base URL of the API. Default: the stack on this machine.")
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(help="File with an API key. Default: api_key of the data directory."),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Memory for AI agents: start it, inspect it, repair it."""
    if url is not None and "://" not in url:
        raise typer.BadParameter(f"{url} has no scheme: write http://{url} or https://{url}")
    context.obj = Options(url, key_file)
