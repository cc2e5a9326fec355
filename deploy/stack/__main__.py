"""python -m deploy.stack supervise: the supervisor that `memlane up` starts in the background."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from deploy.stack import control, saved_settings
from deploy.stack.exits import exit_code
from deploy.stack.programs import PROGRAMS, read_programs
from pipeline import settings


def main() -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy.stack", description=__doc__)
    parser.add_argument("command", choices=["supervise"])
    parser.add_argument("--programs", type=Path, help=argparse.SUPPRESS)  # for tests
    programs = parser.parse_args().programs
    os.umask(0o077)  # only the owner may read the data directory
    return exit_code(lambda: supervise(read_programs(programs) if programs else PROGRAMS))


def supervise(programs: Mapping[str, tuple[str, ...]]) -> int:
    """Start the stack with the saved settings, and stay until it stops.

    Errors: InvalidInput for unknown settings.
    """
    layout = saved_settings.own_layout()
    saved_settings.adopt()
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    return control.supervise_quietly(settings.load(), layout, programs)


if __name__ == "__main__":
    sys.exit(main())
