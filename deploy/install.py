"""python deploy/install.py LOCK: run pip with one line of progress, and a hint if it fails.

The environment's own Python runs it; it uses only the standard library.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--root-user-action=ignore")
LOOK_S, LINE_S = 0.5, 10.0  # how often a terminal's line is renewed; how often a log gets one
UNREACHED = re.compile(r"connection broken|ConnectionError|No matching distribution|ReadTimeout")
INDEX_HINT = (
    "The package index was not reached, or does not have this package: check the network,"
    " or set PIP_INDEX_URL to another index."
)
BROKEN_HINT = "If the environment is broken: `make clean`, then the same again."


def main() -> int:
    """Install the lock file. Returns pip's exit code."""
    lock, log = Path(sys.argv[1]), Path(sys.prefix) / "install.log"
    pinned = len(re.findall(r"^\S+==", lock.read_text(), re.MULTILINE))
    print(f"Installing {lock} into {sys.prefix} ...", flush=True)
    with log.open("wb") as output:
        command = (sys.executable, *PIP, "--progress-bar=off", "--require-hashes", "-r", str(lock))
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as pip:
            watch(pip, log, pinned)
    text = log.read_text(errors="replace")
    if pip.returncode:
        print(explain(text), f"All output of pip is in {log}.", sep="\n", file=sys.stderr)
    return pip.returncode


def watch(pip: subprocess.Popen[bytes], log: Path, pinned: int) -> None:
    """Show pip's progress until it ends: in place on a terminal, else a line every 10 s."""
    terminal, shown = sys.stdout.isatty(), time.monotonic()
    while not ended(pip):
        if terminal or time.monotonic() - shown >= LINE_S:
            shown = time.monotonic()
            line = progress(log.read_text(errors="replace"), pinned)
            print(f"\r\033[K{line}" if terminal else line, end="" if terminal else "\n", flush=True)
    if terminal:
        print("\r\033[K", end="", flush=True)


def ended(pip: subprocess.Popen[bytes]) -> bool:
    """True if pip ends within LOOK_S seconds."""
    try:
        pip.wait(LOOK_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def progress(text: str, pinned: int) -> str:
    """One line of progress, from pip's output."""
    wanted = pinned - len(re.findall(r"^Ignoring ", text, re.MULTILINE))
    if "\nInstalling collected packages" in text:
        return f"  unpacking {wanted} packages ..."
    collected = len(re.findall(r"^(?:Collecting|Requirement already) ", text, re.MULTILINE))
    return f"  collecting {collected} of {wanted} packages ..."


def explain(text: str) -> str:
    """Pip's last error, and what to do about it."""
    errors = re.findall(r"^ERROR: .*", text, re.MULTILINE)
    reason = errors[-1] if errors else "ERROR: pip ended early."
    return f"{reason}\n{INDEX_HINT if UNREACHED.search(text) else BROKEN_HINT}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted: `make` goes on with it the next time.")
