"""Recall of follow-up questions, with and without their conversation, over HTTP.

`python -m tests.eval.followups` starts a stack of its own, stores the memories of each file in
tests/eval/followups verbatim, and prints recall@5 by language. `dialogues` end in a question that
says little by itself, `changes` in one about another subject than the turns before it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from tests.support.stack import Client, Stack

DATA = Path(__file__).with_name("followups")
TOP_K = 5


@dataclass(frozen=True, slots=True)
class Recall:
    """Recall of one question: alone, and with its conversation."""

    language: str
    kind: str
    alone: float
    together: float


async def measure(client: Client) -> list[Recall]:
    """The recall of every question of every file."""
    recalls = []
    for path in sorted(DATA.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        user = f"followups-{data['language']}"
        await _store(client, user, data["memories"])
        for kind in ("dialogues", "changes"):
            for dialogue in data[kind]:
                gold = {data["memories"][number] for number in dialogue["gold"]}
                messages = [
                    {"role": role, "content": content} for role, content in dialogue["messages"]
                ]
                alone = await _search(client, user, {"query": messages[-1]["content"]})
                together = await _search(client, user, {"messages": messages})
                recalls.append(
                    Recall(data["language"], kind, _share(gold, alone), _share(gold, together))
                )
    return recalls


async def _store(client: Client, user: str, texts: Sequence[str]) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    body = {"messages": messages, "user_id": user, "infer": False}
    answer = await client.http.post("/v3/memories/add/", json=body)
    event = await client.ended(answer.json()["event_id"])
    assert event["status"] == "SUCCEEDED", event


async def _search(client: Client, user: str, question: dict[str, Any]) -> list[str]:
    body = {"filters": {"user_id": user}, "top_k": TOP_K, "threshold": 0.0, **question}
    answer = await client.http.post("/v3/memories/search/", json=body)
    assert answer.status_code == 200, answer.text
    return [row["memory"] for row in answer.json()["results"]]


def _share(gold: set[str], texts: Sequence[str]) -> float:
    return len(gold & set(texts)) / len(gold)


def table(recalls: Sequence[Recall]) -> Iterator[str]:
    """One line for each kind and language, and one for each kind."""
    for kind in ("dialogues", "changes"):
        rows = [recall for recall in recalls if recall.kind == kind]
        for language in ["all", *sorted({row.language for row in rows})]:
            chosen = [row for row in rows if language in ("all", row.language)]
            alone, together = mean(r.alone for r in chosen), mean(r.together for r in chosen)
            yield (
                f"{kind:10} {language:4} n={len(chosen):3}  alone {alone:6.1%}"
                f"  with the conversation {together:6.1%}  ratio {together / alone:.2f}"
            )


async def _main() -> None:
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder) / "stack") as stack:
        async with stack.client() as client:
            sys.stdout.writelines(f"{line}\n" for line in table(await measure(client)))


if __name__ == "__main__":
    asyncio.run(_main())  # noqa: TID251  a program of its own
