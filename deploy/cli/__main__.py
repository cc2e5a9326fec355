"""python -m deploy.cli: the `memlane` command from a checkout."""

from __future__ import annotations

from deploy.cli.app import main

if __name__ == "__main__":
    main()
