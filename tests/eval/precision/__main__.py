"""Precision of `filter_memories` and of the default cut: tables on stdout.

`python -m tests.eval.precision` stores the memories of each language for one user, and those of all
languages for another, in a real stack with `local/minilm`, and in one with a stand-in for a hosted
embedder (`infer=false`: no language model). It asks every question over HTTP with
`filter_memories`, with the default cut, and with an explicit `top_k`, which is not cut. An exact
set is a result with all memories that answer the question and no other.

The last table of a stack computes the default cut with other values from the results without a cut;
`plain questions` are forty questions about forty facts of one user, in everyday words.

`--url` and `--key` measure a running stack, for example with another embedder.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import uvloop

from tests.bench.hosted import hosted, provider
from tests.eval.precision import LANGUAGES, PrecisionSet, Question, load
from tests.eval.precision.tradeoff import LIMITS, Results, tradeoff
from tests.support.plain_questions import FACTS
from tests.support.stack import Stack

FIRST_DAY = datetime(2026, 1, 5, 9, tzinfo=UTC)
MINILM, HOSTED = "local/minilm", "hosted stand-in"
CLIENTS = 8
TOP_K = 10
MODES: Mapping[str, Mapping[str, Any]] = {
    "filter_memories": {"filter_memories": True, "top_k": TOP_K},
    "default cut": {},
    "no cut": {"top_k": TOP_K, "explain": True},
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The memories returned for a question, by name, and the rows of the answer."""

    question: Question
    returned: frozenset[str]
    results: Results

    @property
    def exact(self) -> bool:
        return self.returned == self.question.answers


class Api:
    """Client of the API that is measured."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Token {key}"}, timeout=60
        )
        self._free = asyncio.Semaphore(CLIENTS)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        async with self._free:
            response = await self._http.post(path, json=dict(body))
        response.raise_for_status()
        return dict(response.json())

    async def remember(
        self, user: str, texts: Sequence[str], apart: timedelta = timedelta(days=1)
    ) -> None:
        """Store the texts as memories, `apart` from each other; wait for the end of all events."""
        events = await asyncio.gather(
            *(self._add(user, text, FIRST_DAY + apart * n) for n, text in enumerate(texts))
        )
        for event in events:
            async with self._free:
                response = await self._http.get(f"/v1/event/{event}/", params={"wait": 60})
            assert response.json()["status"] == "SUCCEEDED", response.text

    async def _add(self, user: str, text: str, at: datetime) -> str:
        body = {
            "messages": [{"role": "user", "content": text}],
            "user_id": user,
            "infer": False,
            "timestamp": int(at.timestamp()),
        }
        return str((await self.post("/v3/memories/add/", body))["event_id"])

    async def ask(self, user: str, question: str, options: Mapping[str, Any]) -> Results:
        """Return the results."""
        body = {"query": question, "filters": {"user_id": user}, **options}
        answer = await self.post("/v3/memories/search/", body)
        assert not answer["degraded"]
        return list(answer["results"])


async def outcomes(
    api: Api, user: str, tested: PrecisionSet, options: Mapping[str, Any]
) -> list[Outcome]:
    """Ask all questions of a set."""
    names = {text: name for name, text in tested.memories.items()}
    answers = await asyncio.gather(
        *(api.ask(user, question.text, options) for question in tested.questions)
    )
    # A memory of another language is never an answer: it counts by its text.
    return [
        Outcome(question, frozenset(names.get(text, text) for text in texts_of(results)), results)
        for question, results in zip(tested.questions, answers, strict=True)
    ]


def texts_of(results: Results) -> list[str]:
    """The texts of the results."""
    return [row["memory"] for row in results]


def share(outcomes: Sequence[Outcome]) -> str:
    """Exact sets of these questions, as `right/all (percent)`."""
    right = sum(outcome.exact for outcome in outcomes)
    return f"{right}/{len(outcomes)} ({right / max(len(outcomes), 1):.0%})"


def row(name: str, rows: Sequence[Outcome]) -> str:
    """One line of the table."""
    returned = sum(len(each.returned) for each in rows)
    right = sum(len(each.returned & each.question.answers) for each in rows)
    wanted = sum(len(each.question.answers) for each in rows)
    cells = (
        name,
        share([each for each in rows if not each.question.held_out]),
        share([each for each in rows if each.question.held_out]),
        share(rows),
        share([each for each in rows if not each.question.answers]),
        f"{right / max(returned, 1):.0%}",
        f"{right / wanted:.0%}",
        f"{returned / len(rows):.1f}",
    )
    return "| " + " | ".join(cells) + " |"


HEADER = (
    "| set | exact, tuned on | exact, held out | exact, all | exact, no answer exists "
    "| precision | recall | results |\n|---|---|---|---|---|---|---|---|"
)


async def main(url: str, key: str, *, embedder: str, wrong: bool) -> None:
    """Measure and print the tables of a stack with this embedder."""
    api = Api(url, key)
    sets = [load(language) for language in LANGUAGES]
    run = uuid4().hex[:8]
    all_texts = [text for tested in sets for text in tested.memories.values()]
    for tested in sets:
        await api.remember(f"{tested.language}-{run}", list(tested.memories.values()))
    await api.remember(f"all-{run}", all_texts)
    uncut: dict[str, list[tuple[Results, frozenset[str]]]] = {}
    for mode, options in MODES.items():
        for scope in ("own", "all"):
            size = len(all_texts) if scope == "all" else len(sets[0].memories)
            print(f"\n### {embedder}, {mode}, {size} memories in the scope\n\n{HEADER}")
            total: list[Outcome] = []
            for tested in sets:
                user = f"{tested.language if scope == 'own' else scope}-{run}"
                rows = await outcomes(api, user, tested, options)
                print(row(tested.language, rows))
                total += rows
                if mode == "no cut":
                    uncut.setdefault(f"{size} memories", []).extend(
                        (
                            each.results,
                            frozenset(tested.memories[name] for name in each.question.answers),
                        )
                        for each in rows
                    )
            print(row("all", total))
            if wrong and mode == "filter_memories":
                report_wrong(total)
    uncut["plain questions"] = await plain(api, f"plain-{run}")
    print(f"\n### {embedder}, the default cut with other values\n")
    print(tradeoff(uncut, LIMITS))


async def plain(api: Api, user: str) -> list[tuple[Results, frozenset[str]]]:
    """The plain questions: their results without a cut, and the texts that answer them."""
    await api.remember(user, [fact for fact, _ in FACTS])
    answers = await asyncio.gather(
        *(api.ask(user, question, MODES["no cut"]) for _, question in FACTS)
    )
    return [(results, frozenset([fact])) for results, (fact, _) in zip(answers, FACTS, strict=True)]


def report_wrong(rows: Sequence[Outcome]) -> None:
    """Print the questions of the tuning half that were answered wrongly."""
    for each in rows:
        if not each.exact and not each.question.held_out:
            question = each.question
            print(f"  {question.text} {sorted(question.answers)} != {sorted(each.returned)}")


@contextmanager
def served(embedder: str) -> Iterator[tuple[str, str]]:
    """A new stack with this embedder for the time of the measurement: its URL and its key."""
    with ExitStack() as until:
        folder = until.enter_context(tempfile.TemporaryDirectory())
        settings = hosted(until.enter_context(provider())) if embedder == HOSTED else {}
        stack = until.enter_context(Stack(Path(folder) / "stack", settings))
        yield stack.url, stack.key


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--key")
    parser.add_argument("--wrong", action="store_true", help="list wrong answers, tuning half only")
    arguments = parser.parse_args()
    if arguments.url and arguments.key:
        uvloop.run(main(arguments.url, arguments.key, embedder="given", wrong=arguments.wrong))
    else:
        for embedder in (MINILM, HOSTED):
            with served(embedder) as (url, key):
                uvloop.run(main(url, key, embedder=embedder, wrong=arguments.wrong))
