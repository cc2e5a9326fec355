"""Every scenario through a real stack: with a good model, out of order in time, with bad models.

    python -m tests.eval.scenarios                         all ways
    python -m tests.eval.scenarios good "out of order"     some
    python -m tests.eval.scenarios good --only maya        scenarios whose name has this text

A table of the ways and a line for each problem. Exit code 1 if a store is wrong with the good model
or out of order, an event failed, or a memory was harmed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.eval.report import scenario_table
from tests.eval.scenarios.dialogues import load
from tests.eval.scenarios.run import WAYS, problems, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ways", nargs="*", default=[])
    parser.add_argument("--only", default="", help="a part of the scenarios' names")
    given = parser.parse_args()
    scenarios = [scenario for scenario in load() if given.only in scenario.name]
    ways = asyncio.run(run(scenarios, given.ways or WAYS))  # noqa: TID251
    print(scenario_table({way.name: way.figures() for way in ways}))
    lines = problems(ways)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
