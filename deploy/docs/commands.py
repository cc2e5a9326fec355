"""docs/reference/cli.md."""

from __future__ import annotations

import typer
from typer.cli import get_docs_for_click

from deploy.cli.app import app
from deploy.docs.tables import GENERATED

INTRO = """# Command line

`memlane` is installed with the package. In a checkout, `.venv/bin/python -m deploy.cli` is the same
command.

"""


def page() -> str:
    """Every command with its arguments and options."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="memlane")
    body = text.split("\n", 1)[1].replace("```console\n$ ", "```text\n")
    return GENERATED + INTRO + body.strip() + "\n"
