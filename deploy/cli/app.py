"""The commands of `memlane`, and what each calls."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli import (
    backup,
    client,
    doctor,
    events,
    findings,
    keys,
    migrate,
    plan,
    repair,
    replays,
    transfer,
    verify,
)
from deploy.cli import settings as settings_command
from deploy.cli.context import Options, local
from deploy.demo import acts
from deploy.stack import control, rebuild
from deploy.stack.exits import exit_code
from deploy.stack.programs import PROGRAMS
from deploy.stack.saved_settings import adopt, own_layout
from pipeline import __version__

STACK = "The stack on this machine"
API = "Any Memlane, over its API"
Sure = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

app = typer.Typer(
    name="memlane",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Settings are environment variables, MEMLANE_…, and those saved with the data; "
    "`memlane settings` lists them, `memlane doctor` checks them.",
)
app.add_typer(keys.app, name="keys", rich_help_panel=API)
app.add_typer(events.app, name="events", rich_help_panel=API)
app.add_typer(replays.app, name="replay", rich_help_panel=API)
app.command("export", rich_help_panel=API)(transfer.export)
app.command("import", rich_help_panel=API)(transfer.import_source)
app.command("verify", rich_help_panel=API)(verify.verify)
app.command("hook", rich_help_panel=API, context_settings=client.PASSED_ON)(client.hook)
app.command("proxy", rich_help_panel=API, context_settings=client.PASSED_ON)(client.proxy)
app.command("backup", rich_help_panel=STACK)(backup.backup)
app.command("restore", rich_help_panel=STACK)(backup.restore)
app.command("migrate", rich_help_panel=STACK)(migrate.migrate)
app.command("repair", rich_help_panel=STACK)(repair.repair)
app.command("plan", rich_help_panel=STACK)(plan.show)


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


@app.command(rich_help_panel=STACK)
def up(
    brief: Annotated[
        bool, typer.Option("--brief", help="Print one line, without the key.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Apply changed settings without asking.")
    ] = False,
) -> None:
    """Start everything, wait until it is healthy, print the URL, the key and a first curl."""
    saved = adopt()
    configured, layout = local()
    raise typer.Exit(control.up(configured, layout, saved, brief=brief, sure=yes))


@app.command(rich_help_panel=STACK)
def scale(
    counts: Annotated[list[str], typer.Argument(help="workers=3, api=2", metavar="NAME=NUMBER…")],
) -> None:
    """Add or drain workers or API processes of the running stack. The others go on."""
    saved = adopt()
    layout = local()[1]
    raise typer.Exit(control.scale(layout, saved, settings_command.numbers(counts)))


@app.command("settings", rich_help_panel=STACK)
def show_settings() -> None:
    """Print the settings in force and their sources. Secrets are masked."""
    saved = adopt()
    raise typer.Exit(settings_command.show(saved, *local()))


@app.command(rich_help_panel=STACK)
def down() -> None:
    """Stop everything. Memories stay."""
    raise typer.Exit(control.down(own_layout()))


@app.command(rich_help_panel=STACK)
def status() -> None:
    """Print a table of the processes. Exit code 3 if nothing runs."""
    raise typer.Exit(control.status(own_layout()))


@app.command(rich_help_panel=STACK)
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


@app.command(rich_help_panel=STACK)
def demo(
    kill: Annotated[bool, typer.Option(help="Kill a worker in the third act.")] = True,
) -> None:
    """Start everything, and show how a conversation becomes memory."""
    saved = adopt()
    configured, layout = local()
    if code := control.up(configured, layout, saved, brief=True):
        raise typer.Exit(code)
    raise typer.Exit(acts.run(configured, kill=kill))


@app.command("doctor", rich_help_panel=STACK)
def check() -> None:
    """Check this machine, settings, servers, models and the ledger: one line each.

    `memlane repair` does what can be done without a decision.
    """
    raise typer.Exit(findings.show(doctor.examine(*local())))


@app.command(rich_help_panel=STACK)
def reindex() -> None:
    """Build the configured vector index, or repair the one in use."""
    saved = adopt()
    configured, layout = local()
    raise typer.Exit(rebuild.reindex(configured, layout, saved))


@app.command(rich_help_panel=STACK)
def run(yes: Sure = False) -> None:
    """Run like `up`, in the foreground until SIGTERM, for systemd."""
    saved = adopt()
    configured, layout = local()
    raise typer.Exit(control.run(configured, layout, saved, PROGRAMS, sure=yes))


@app.command(rich_help_panel=STACK)
def reset(yes: Sure = False) -> None:
    """Stop everything and delete all memories, settings, keys and logs."""
    raise typer.Exit(control.reset(own_layout(), sure=yes))
