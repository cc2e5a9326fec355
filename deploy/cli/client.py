"""memlane hook, memlane proxy: the client's commands, with the local stack's URL and key."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import typer

from deploy.cli.context import options
from deploy.stack.layout import PROJECT_ROOT

# The client's folder in a checkout; the wheel has the package beside this one.
CLIENT = PROJECT_ROOT / "clients" / "python"
# Starts the client with the name of this command and the address as its default.
START = (
    "import sys; from memlane_client.__main__ import main;"
    " main(sys.argv[3:], prog='memlane', url=sys.argv[1], key_file=sys.argv[2])"
)


def hook(context: typer.Context) -> None:
    """Handle the hook of a coding agent: JSON on standard input. `memlane hook --help`: options."""
    _become("hook", context)


def proxy(context: typer.Context) -> None:
    """Serve the memory proxy, which is off by default. `memlane proxy --help` lists its options."""
    _become("proxy", context)


def _become(command: str, context: typer.Context) -> NoReturn:
    """Replace this process by the client's command, which does not import the server."""
    url, key_file = options(context).address()
    arguments = [sys.executable, "-c", START, url, str(key_file), command, *context.args]
    paths = [str(CLIENT), os.environ.get("PYTHONPATH", "")]  # noqa: TID251  of the new process
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}  # noqa: TID251
    sys.stdout.flush()
    os.execve(sys.executable, arguments, environment)  # noqa: S606  the same Python
