"""Documented guarantees at full size, on real processes: `python -m tests.bench.promises [NAME …]`.

JSON on stdout and in bench-results/.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.bench.agreement import agreement
from tests.bench.backlog import backlog
from tests.bench.outage import outage

PROMISES = {"outage": outage, "backlog": backlog, "agreement": agreement}
RESULTS = Path("bench-results")


async def main(names: list[str]) -> None:
    RESULTS.mkdir(exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            text = json.dumps({name: await PROMISES[name](Path(folder) / "stack")}, indent=2)
        (RESULTS / f"{name}.json").write_text(text + "\n")
        print(text, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.promises", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*PROMISES, []], metavar="NAME")
    with asyncio.Runner() as runner:
        sys.exit(runner.run(main(parser.parse_args().names or list(PROMISES))))
