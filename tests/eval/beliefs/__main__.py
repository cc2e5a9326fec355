"""Exact belief sets over HTTP: `python -m tests.eval.beliefs`.

Stores the memories of each user verbatim, a few seconds apart, as an import does, and asks every
question with the default cut, with `filter_memories`, and with an explicit `top_k`, which is not
cut. A row for each half of the questions. `--url` and `--key` measure a running stack; `--wrong`
lists the wrong answers.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import uvloop

from deploy.docs.tables import table
from tests.eval.beliefs import EVERYDAY, FOREIGN, HALVES, BeliefSet, Question, load
from tests.eval.precision.__main__ import MINILM, MODES, Api, served, texts_of

APART = timedelta(seconds=20)
HEAD = ("mode", "questions", "exact", "precision", "answers kept", "results")


async def ask(
    api: Api, belief_set: BeliefSet, user: str, options: Mapping[str, Any]
) -> list[tuple[Question, frozenset[str]]]:
    """The texts returned for each question of a set."""
    answers = await asyncio.gather(
        *(api.ask(user, question.text, options) for question in belief_set.questions)
    )
    returned = [frozenset(texts_of(results)) for results in answers]
    return list(zip(belief_set.questions, returned, strict=True))


def row(
    mode: str, name: str, answers_of: Sequence[tuple[Question, frozenset[str]]]
) -> tuple[str, ...]:
    """One line of the table."""
    exact = sum(returned == question.answers for question, returned in answers_of)
    right = sum(len(returned & question.answers) for question, returned in answers_of)
    wanted = sum(len(question.answers) for question, _ in answers_of)
    returned = sum(len(texts) for _, texts in answers_of)
    return (
        mode,
        name,
        f"{exact} of {len(answers_of)} ({exact / len(answers_of):.0%})",
        f"{right / max(returned, 1):.0%}",
        f"{right} of {wanted} ({right / wanted:.1%})",
        f"{returned / len(answers_of):.1f}",
    )


async def main(url: str, key: str, *, wrong: bool) -> None:
    """Measure and print the table."""
    api, run = Api(url, key), uuid4().hex[:8]
    sets = load()
    for each in sets:
        await api.remember(f"{each.name}-{run}", each.texts, apart=APART)
    rows = []
    for mode, options in MODES.items():
        answers_of = {
            each.name: await ask(api, each, f"{each.name}-{run}", options) for each in sets
        }
        every = [pair for name, pairs in answers_of.items() if name != EVERYDAY for pair in pairs]
        foreign = [pair for pair in every if pair[0].half == FOREIGN]
        halves = {half: [pair for pair in every if pair[0].half == half] for half in HALVES}
        beliefs = [pair for pairs in halves.values() for pair in pairs]
        rows += [row(mode, half, pairs) for half, pairs in halves.items()]
        rows += [row(mode, "both halves", beliefs), row(mode, EVERYDAY, answers_of[EVERYDAY])]
        rows.append(row(mode, FOREIGN, foreign))
        if wrong:
            for question, returned in [*every, *answers_of[EVERYDAY]]:
                if returned != question.answers:
                    print(mode, question.text, sorted(question.answers), "!=", sorted(returned))
    print(table(HEAD, rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--key")
    parser.add_argument("--wrong", action="store_true", help="list wrong answers")
    arguments = parser.parse_args()
    if arguments.url and arguments.key:
        uvloop.run(main(arguments.url, arguments.key, wrong=arguments.wrong))
    else:
        with served(MINILM) as (url, key):
            uvloop.run(main(url, key, wrong=arguments.wrong))
