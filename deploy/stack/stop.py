"""python -m deploy.stack.stop: `make down` for a broken environment. Standard library only."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from deploy.stack.identity import Identity, send, wait_gone

DOWN_WITHIN_S = 60.0


def main() -> int:
    """Stop the supervisor that state.json names; it stops all other processes."""
    root = Path(os.environ.get("MEMLANE_DATA_DIR") or ".memlane").expanduser()  # noqa: TID251
    try:
        note = json.loads((root / "run" / "state.json").read_text())["supervisor"]
        who = Identity(note["pid"], note["started"])
    except (OSError, ValueError, KeyError, TypeError):
        print("Nothing is running.")
        return 0
    if not send(who, signal.SIGTERM):
        print("Nothing is running.")
        return 0
    if wait_gone([who], DOWN_WITHIN_S):
        print(f"The supervisor, pid {who.pid}, did not stop within {DOWN_WITHIN_S:.0f} s.")
        return 1
    print("Memlane is down.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
