"""python -m deploy.stack up | down | status | logs | reindex | reset | run"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from deploy.stack import control, rebuild, saved_settings
from deploy.stack.exits import exit_code
from deploy.stack.layout import Layout
from deploy.stack.programs import PROGRAMS, read_programs
from pipeline import settings as settings_of

COMMANDS = {
    "up": "start everything, wait until it is healthy, print URL and key, return",
    "down": "stop everything",
    "status": "a table of the processes",
    "logs": "the end of the logs",
    "reindex": "build the vector index these settings ask for, or mend the one that is served",
    "reset": "stop everything and delete all that is kept: memories, settings, keys, logs",
    "run": "like up, in the foreground: for systemd and containers",
}
SUPERVISE = "supervise"  # what `up` starts: no command for a person, so not in the help


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m deploy.stack", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    parsers[SUPERVISE] = commands.add_parser(SUPERVISE)
    for name in ("up", "run", SUPERVISE):
        parsers[name].add_argument("--programs", type=Path, help=argparse.SUPPRESS)  # for tests
    for name in ("up", "run"):
        parsers[name].add_argument(
            "--yes", action="store_true", help="apply changed settings without asking"
        )
    parsers["up"].add_argument("--brief", action="store_true", help="print one line")
    parsers["reset"].add_argument("--yes", action="store_true", help="do not ask")
    parsers["logs"].add_argument(
        "names", nargs="*", metavar="NAME", help="api, worker-1, postgres …"
    )
    parsers["logs"].add_argument("-n", type=int, default=40, dest="lines", help="lines of each")
    parsers["logs"].add_argument("--event", help="all lines of this event, merged by time")
    parsers["logs"].add_argument(
        "--pretty", action="store_true", help="short lines, merged by time"
    )
    parsers["logs"].add_argument("-f", action="store_true", dest="follow", help="until Ctrl-C")
    return top


def main() -> int:
    """Run the command line and return the exit code."""
    arguments = parser().parse_args()
    os.umask(0o077)  # only the owner may read the data directory
    return exit_code(lambda: dispatch(arguments))


def dispatch(arguments: argparse.Namespace) -> int:
    """Run the command. Those that stop or show a stack need no settings, which may be wrong."""
    layout = saved_settings.own_layout()
    match arguments.command:
        case "down":
            code = control.down(layout)
        case "status":
            code = control.status(layout)
        case "reset":
            code = control.reset(layout, sure=arguments.yes)
        case "logs":
            code = control.logs(
                layout,
                arguments.names,
                lines=arguments.lines,
                follow=arguments.follow,
                pretty=arguments.pretty,
                event_id=arguments.event,
            )
        case _:
            code = start(arguments, layout)
    return code


def start(arguments: argparse.Namespace, layout: Layout) -> int:
    """Run a command with the settings; `run` and `supervise` stay until they are stopped.

    Errors: InvalidInput for unknown settings.
    """
    saved = saved_settings.adopt()
    settings = settings_of.load()
    if arguments.command == "up":
        file, brief, sure = arguments.programs, arguments.brief, arguments.yes
        return control.up(settings, layout, saved, file, brief=brief, sure=sure)
    if arguments.command == "reindex":
        return rebuild.reindex(settings, layout, saved)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    programs = read_programs(arguments.programs) if arguments.programs else PROGRAMS
    if arguments.command == "run":
        return control.run(settings, layout, saved, programs, sure=arguments.yes)
    return control.supervise_quietly(settings, layout, programs)


if __name__ == "__main__":
    sys.exit(main())
