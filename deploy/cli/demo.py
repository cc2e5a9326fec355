"""memlane demo: the local stack and a conversation."""

from __future__ import annotations

from typing import Annotated

import typer

from deploy.cli.context import local
from deploy.demo import acts
from deploy.stack import control
from deploy.stack.saved_settings import adopt


def demo(
    kill: Annotated[bool, typer.Option(help="Kill a worker in the third act.")] = True,
) -> None:
    """Start everything, and show how a conversation becomes memory."""
    saved = adopt()
    configured, layout = local()
    if code := control.up(configured, layout, saved, brief=True):
        raise typer.Exit(code)
    raise typer.Exit(acts.run(configured, kill=kill))
