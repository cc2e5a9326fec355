"""reindex: build the configured vector index beside the one in use, then use it.

A running stack continues with its own settings; it restarts with the new ones once the new index is
complete.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence

from deploy.stack import control, ports
from deploy.stack.failure import StackError
from deploy.stack.layout import PROJECT_ROOT, Layout, command_line
from deploy.stack.maintenance import alone
from deploy.stack.programs import PROGRAMS, environment, own_kinds
from deploy.stack.saved_settings import SavedSettings
from deploy.stack.server import Server
from deploy.stack.servers import Redis
from deploy.stack.supervisor import is_running
from pipeline.settings import Settings

# Exit code of workers.reindex if another index than the one in use is complete.
WHOLE = 3


def reindex(settings: Settings, layout: Layout, saved: SavedSettings) -> int:
    """Build or repair the index. Returns 0 if it is in use, or will be after `up`.

    The settings of a new index are saved: the memories cannot be read with those before.
    """
    layout.create()
    running = is_running(layout)
    with servers(settings, layout, running=running) as needed:
        code = build(settings, layout, needed)
    if code != WHOLE:
        return code
    if not running:
        save(settings, saved)
        return 0
    print("Restarting with it ...")
    return control.down(layout) or control.up(settings, layout, saved, sure=True)


def build(settings: Settings, layout: Layout, needed: list[Server]) -> int:
    """Build or repair the index on servers that run. Returns the exit code of workers.reindex."""
    argv = (sys.executable, *PROGRAMS["reindex"])
    env = environment(settings, layout, needed)
    layout.metrics.mkdir(parents=True, exist_ok=True)  # `up` creates it, and may not have run yet
    return subprocess.run(argv, env=env, cwd=PROJECT_ROOT, check=False).returncode


def save(settings: Settings, saved: SavedSettings) -> None:
    """Save the settings of a new index, which the next start uses."""
    saved.write(saved.current(settings))
    print(f"`{command_line('up')}` serves it; its settings are saved.")


@contextlib.contextmanager
def servers(
    settings: Settings, layout: Layout, *, running: bool, without: Sequence[type[Server]] = (Redis,)
) -> Iterator[list[Server]]:
    """The servers that are needed: those of the running stack, else started for this block.

    Errors: StackError if another command has started servers on the data directory.
    """
    known = ports.read(layout.ports)
    with contextlib.ExitStack() as started:
        needed: list[Server] = []
        kinds = [kind for kind in own_kinds(settings) if kind not in without]
        if kinds and not running:
            started.enter_context(alone(layout))
        for kind in kinds:
            server = kind(layout.root, port=known.get(kind.name))
            if not server.ready():
                if running and kind.name == "postgres":
                    raise StackError("the stack runs, but its PostgreSQL does not answer")
                server = started.enter_context(kind(layout.root))
            needed.append(server)
        yield needed
