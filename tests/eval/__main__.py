"""The whole evaluation, written to docs/benchmarks/evaluation.*.

    python -m tests.eval                                     scenarios, graphs, also after shuffled
                                                             arrival, questions, candidates and
                                                             precision, with the stand-in
    python -m tests.eval --model openai/… --judge openai/…   scenarios and questions, live models

With the stand-in the exit code is 1 if a store or a graph is wrong or a memory was harmed.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys

from tests.eval import report
from tests.eval.graphs import late
from tests.eval.graphs import run as graphs
from tests.eval.models import STAND_IN
from tests.eval.questions.run import run as ask_questions
from tests.eval.report import graph_table, late_table, question_table, scenario_table
from tests.eval.scenarios.dialogues import load
from tests.eval.scenarios.run import LIVE, WAYS, problems
from tests.eval.scenarios.run import run as play_scenarios


async def evaluate(model: str | None, judge: str | None) -> list[str]:
    """Run and record all parts; the problems of the scenarios."""
    name = model or STAND_IN
    ways = await play_scenarios(load(), LIVE if model else WAYS, model)
    figures = {way.name: way.figures() for way in ways}
    report.record("scenarios", figures, name)
    print(scenario_table(figures))
    lines = problems(ways)
    print("\n".join(lines))
    if model is None:
        lines += await evaluate_graphs() + await evaluate_late()
    answers = await ask_questions(model, judge)
    report.record("questions", answers, name)
    print(question_table(answers))
    return lines


async def evaluate_graphs() -> list[str]:
    """Run and record the dialogues with a graph; the problems."""
    ways = await graphs.run(graphs.load(), dict.fromkeys(graphs.WAYS, ()))
    figures = {way.name: way.figures() for way in ways}
    report.record("graphs", figures)
    print(graph_table(figures))
    lines = graphs.problems(ways)
    print("\n".join(lines))
    return lines


async def evaluate_late() -> list[str]:
    """Run and record the graphs after shuffled arrival; the problems."""
    played = await late.run()
    figures = late.figures(played)
    report.record("graphs_late", figures)
    print(late_table(figures))
    lines = late.problems(played)
    print("\n".join(lines))
    return lines


def record_printed() -> None:
    """Run the measurements that need no model, and record what they print."""
    for part, (title, _) in report.PRINTED.items():
        command = [sys.executable, "-m", f"tests.eval.{part}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"{title}\n\n{done.stdout}")
        report.record(part, done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--judge")
    given = parser.parse_args()
    lines = asyncio.run(evaluate(given.model or None, given.judge or None))  # noqa: TID251
    if given.model:
        return 0
    record_printed()
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
