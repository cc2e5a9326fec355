"""Every dialogue with a graph through a real stack: with a good model and with bad ones.

    python -m tests.eval.graphs                      all ways
    python -m tests.eval.graphs good other_ids       some
    python -m tests.eval.graphs good --only sams     dialogues whose name has this text

A table of the ways and a line for each problem. Exit code 1 if a graph is wrong with the good
model, an event failed, or a relation was harmed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.eval.graphs.run import WAYS, load, problems, run
from tests.eval.report import graph_table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ways", nargs="*", default=[])
    parser.add_argument("--only", default="", help="a part of the dialogues' names")
    given = parser.parse_args()
    scenarios = [scenario for scenario in load() if given.only in scenario.name]
    ways = asyncio.run(run(scenarios, dict.fromkeys(given.ways or WAYS, ())))  # noqa: TID251
    print(graph_table({way.name: way.figures() for way in ways}))
    lines = problems(ways)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
