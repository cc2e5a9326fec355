"""Whole paths over HTTP: `python -m tests.eval.paths`.

A real stack stores the facts of each town, with a stand-in that knows the relations of each fact,
and answers the questions of one, two and three hops. `whole path`: all memories of the path are
among the first five results. `plain`: questions of one hop; the memory is the first result, or
among the first five. `--url` and `--key` ask a running stack that has the towns, as users of their
names; `--wrong` lists the questions without a whole path.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from deploy.docs.tables import table
from tests.eval import models
from tests.eval.paths import towns
from tests.eval.paths.known import KnownRelations
from tests.eval.paths.towns import Town
from tests.eval.paths.worlds import FOREIGN, HopQuestion, load
from tests.eval.precision.__main__ import Api, texts_of
from tests.support.llm_server import LLMServer
from tests.support.stack import Stack

FIRST = 5
HEAD = ("town", "memories", "2 hops", "3 hops", "plain, first", "plain, in five", "results")


@dataclass(frozen=True)
class Outcome:
    """A question, the facts of its path, and the first results."""

    question: HopQuestion
    path: frozenset[str]
    first: Sequence[str]
    results: int

    @property
    def whole(self) -> bool:
        return self.path <= set(self.first)

    @property
    def leads(self) -> bool:
        return bool(self.first) and self.first[0] in self.path


async def ask(api: Api, town: Town, questions: Sequence[HopQuestion]) -> list[Outcome]:
    """The first results of each question, as the default answer has them."""
    stated = {edge: text for text, edges in town.world.facts for edge in edges}

    async def one(question: HopQuestion) -> Outcome:
        texts = texts_of(await api.ask(town.world.name, question.text, {}))
        path = frozenset(stated[edge] for edge in question.path)
        return Outcome(question, path, texts[:FIRST], len(texts))

    return list(await asyncio.gather(*map(one, questions)))


def row(town: Town, chains: Sequence[Outcome], plain: Sequence[Outcome]) -> tuple[str, ...]:
    """One line of the table."""
    by_hops = [[outcome for outcome in chains if len(outcome.path) == hops] for hops in (2, 3)]
    every = [*chains, *plain]
    return (
        town.world.name,
        str(len(town.world.facts)),
        *(f"{sum(outcome.whole for outcome in some)} of {len(some)}" for some in by_hops),
        f"{sum(outcome.leads for outcome in plain)} of {len(plain)}",
        f"{sum(outcome.whole for outcome in plain)} of {len(plain)}",
        f"{sum(outcome.results for outcome in every) / len(every):.1f}",
    )


async def measure(api: Api, *, wrong: bool) -> None:
    """Ask all questions of all towns, and print the table."""
    rows = []
    for town in _towns():
        chains = await ask(api, town, town.world.questions)
        plain = await ask(api, town, town.plain)
        rows.append(row(town, chains, plain))
        for outcome in (*chains, *plain) if wrong else ():
            if not outcome.whole:
                print(outcome.question.text, outcome.question.path, *outcome.first, sep="\n    ")
    print(table(HEAD, rows))


def _towns() -> list[Town]:
    """The generated towns, and the worlds of foreign/, which have no questions of one hop."""
    return [*map(towns.load, towns.names()), *(Town(world, ()) for world in load(FOREIGN))]


async def remember(stack: Stack, town: Town) -> None:
    """Store the facts of a town, each as an add of its own, for a user of its name."""
    async with stack.client() as client:
        events = [await client.add(town.world.name, text) for text, _ in town.world.facts]
        for event in events:
            ended = await client.event(event, wait=60)
            assert ended["status"] == "SUCCEEDED", ended


async def main(*, wrong: bool) -> None:
    """Measure a stack of its own."""
    worlds = _towns()
    known = {text: edges for town in worlds for text, edges in town.world.facts}
    with tempfile.TemporaryDirectory() as folder:
        async with LLMServer(KnownRelations(known)) as server:
            settings = models.stand_in(server) | {"MEMLANE_GRAPH": "on"}
            async with Stack(Path(folder) / "stack", settings) as stack:
                for town in worlds:
                    await remember(stack, town)
                await measure(Api(stack.url, stack.key), wrong=wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--key")
    parser.add_argument("--wrong", action="store_true")
    arguments = parser.parse_args()
    if arguments.url and arguments.key:
        uvloop.run(measure(Api(arguments.url, arguments.key), wrong=arguments.wrong))
    else:
        uvloop.run(main(wrong=arguments.wrong))
