"""Questions about long conversations, with Memlane, with chunks and with the whole text.

python -m tests.eval.questions                                     with the stand-in
python -m tests.eval.questions --model openai/… --judge openai/…   with live models
"""

from __future__ import annotations

import argparse
import asyncio

from tests.eval.questions.run import run
from tests.eval.report import question_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--judge")
    given = parser.parse_args()
    print(question_table(asyncio.run(run(given.model, given.judge))))  # noqa: TID251


if __name__ == "__main__":
    main()
