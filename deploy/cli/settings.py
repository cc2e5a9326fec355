"""memlane settings and the arguments of memlane scale."""

from __future__ import annotations

import re
from collections.abc import Sequence

from deploy.cli.context import print_table
from deploy.stack.failure import StackError
from deploy.stack.fingerprint import changes
from deploy.stack.journal import read
from deploy.stack.layout import Layout, command_line
from deploy.stack.saved_settings import SavedSettings, masked
from deploy.stack.supervisor import is_running
from pipeline.settings import Settings

COUNTED = {"workers": "MEMLANE_WORKERS", "api": "MEMLANE_API_PROCESSES"}
MOST = 64


def show(saved: SavedSettings, configured: Settings, layout: Layout) -> int:
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
        names = ", ".join(changed)
        print(
            f"The running stack has other values of {names}; `{command_line('up')}` applies them."
        )
    return 0


def _source(name: str, saved: SavedSettings) -> str:
    same = saved.file.get(name) == saved.shell.get(name)
    return "environment, and saved" if same else "environment, not saved"


def numbers(counts: Sequence[str]) -> dict[str, int]:
    """The settings of `workers=3` and `api=2`. Errors: StackError for anything else."""
    values = {}
    for count in counts:
        match = re.fullmatch(r"(\w+)=(\d{1,4})", count)
        if match is None or match[1] not in COUNTED or not 1 <= int(match[2]) <= MOST:
            raise StackError(f"{count[:40]}: write workers=N or api=N, with N from 1 to {MOST}.")
        values[COUNTED[match[1]]] = int(match[2])
    return values
