"""Commands whose modules are imported when one is used."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import typer


@dataclass(frozen=True)
class LazyCommand:
    """A command: the function or the Typer app `name` of `module`, and its panel in the help."""

    module: str
    name: str
    panel: str
    context_settings: Mapping[str, Any] = field(default_factory=dict)


class LazyCommands(Mapping[str, Any]):
    """The commands of a Typer group by name, each imported by the first look at it.

    The modules of some commands cost seconds of CPU, which the other commands do not need. The help
    of the group imports all of them. The values are commands of Typer, which has no public type.
    """

    def __init__(self, commands: Mapping[str, LazyCommand]) -> None:
        self._commands = commands
        self._load = functools.cache(self._imported)

    def __getitem__(self, name: str) -> Any:
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)

    def _imported(self, name: str) -> Any:
        """The command of this name. Errors: KeyError."""
        lazy = self._commands[name]
        target = getattr(importlib.import_module(lazy.module), lazy.name)
        group = typer.Typer(rich_markup_mode="markdown")
        if isinstance(target, typer.Typer):
            group.add_typer(target, name=name, rich_help_panel=lazy.panel)
        else:
            settings = dict(lazy.context_settings)
            group.command(name, rich_help_panel=lazy.panel, context_settings=settings)(target)
        return typer.main.get_group(group).commands[name]
