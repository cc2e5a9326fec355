"""Candidate recall: the share of memories that must change and are shown to the decision.

    python -m tests.eval.candidates                 # local/minilm, 5, 10 and 12 candidates

Each file of tests/eval/updates has a store of about 200 memories in one language, and updates that
change one to three of them; both are our own. A memory is given by its subject, its attribute and
its text, as an extraction labels it; an update names its targets by a part of their text.

    dense     the cosine of the embeddings alone
    no slots  cosine and words: facts and memories without attributes
    hybrid    the product's ranking: cosine, words and slots
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import numpy as np
import orjson

from pipeline.adapters.embedder_minilm import MiniLM
from pipeline.domain.consolidation.candidates import Comparable, Compared, ranked
from pipeline.text import terms
from pipeline.text.statements.slots import slot

UPDATES = Path(__file__).parent / "updates"
SHOWN = (5, 10, 12)


@dataclass(frozen=True, slots=True)
class Update:
    """A new fact, with its subject and attribute, and the positions of the memories it changes."""

    text: str
    slot: str | None
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """The memories of one persona as (slot, text), and the updates of them."""

    language: str
    memories: Sequence[tuple[str | None, str]]
    updates: Sequence[Update]


def stores() -> Iterator[Store]:
    """Read all stores. Errors: ValueError if a target names no memory, or several."""
    for path in sorted(UPDATES.glob("*.json")):
        content = orjson.loads(path.read_bytes())
        people = content["memories"]
        memories = [
            (slot(subject, attribute), text)
            for subject, attributes in people.items()
            for attribute, texts in attributes.items()
            for text in texts
        ]
        persona = next(iter(people))
        yield Store(
            content["language"],
            memories,
            [
                Update(text, slot(persona, attribute), _positions(memories, parts))
                for text, attribute, parts in content["updates"]
            ],
        )


def _positions(memories: Sequence[tuple[str | None, str]], parts: Sequence[str]) -> tuple[int, ...]:
    positions = []
    for part in parts:
        matches = [place for place, (_, text) in enumerate(memories) if part in text]
        if len(matches) != 1:
            raise ValueError(f"{part!r} is in {len(matches)} memories")
        positions += matches
    return tuple(positions)


@dataclass(slots=True)
class Recall:
    """Counts of one method: targets and updates, and those shown among the first n candidates."""

    targets: int = 0
    updates: int = 0
    shown: Counter[int] = field(default_factory=Counter)
    complete: Counter[int] = field(default_factory=Counter)

    def count(self, ranking: Sequence[UUID], targets: Sequence[int]) -> None:
        """Count the targets of one update in a ranking of all memories."""
        places = [ranking.index(UUID(int=target)) for target in targets]
        self.targets += len(places)
        self.updates += 1
        for number in SHOWN:
            hits = sum(place < number for place in places)
            self.shown[number] += hits
            self.complete[number] += hits == len(places)

    def __str__(self) -> str:
        parts = [f"{100 * self.shown[number] / self.targets:5.1f}" for number in SHOWN]
        whole = 100 * self.complete[SHOWN[-1]] / self.updates
        return f"{'  '.join(parts)}   {whole:5.1f}   ({self.targets} targets)"


async def measure() -> dict[str, dict[str, Recall]]:
    """The recall of each method in each language, embedded by local/minilm."""
    embedder = MiniLM()
    recalls: dict[str, dict[str, Recall]] = {}
    for store in stores():
        stored = np.asarray(await embedder.embed([text for _, text in store.memories]))
        facts = np.asarray(await embedder.embed([update.text for update in store.updates]))
        of_language = recalls.setdefault(store.language, {})
        for update, cosines in zip(store.updates, facts @ stored.T, strict=True):
            near = {UUID(int=at): float(cosine) for at, cosine in enumerate(cosines)}
            for method, ranking in _rankings(store, update, near).items():
                of_language.setdefault(method, Recall()).count(ranking, update.targets)
    return recalls


def _rankings(store: Store, update: Update, near: dict[UUID, float]) -> dict[str, list[UUID]]:
    """All memories, best first, by each method."""
    rows = [
        Comparable(UUID(int=at), " ".join(terms.terms(text)), key)
        for at, (key, text) in enumerate(store.memories)
    ]
    return {
        "dense": sorted(near, key=near.__getitem__, reverse=True),
        "no slots": ranked([Compared(update.text, None, near)], rows)[0],
        "hybrid": ranked([Compared(update.text, update.slot, near)], rows)[0],
    }


def total(recalls: dict[str, dict[str, Recall]], method: str) -> Recall:
    """The recall of one method over all languages."""
    whole = Recall()
    for of_language in recalls.values():
        recall = of_language[method]
        whole.targets += recall.targets
        whole.updates += recall.updates
        whole.shown += recall.shown
        whole.complete += recall.complete
    return whole


def main() -> None:
    """Print the share of targets shown at 5, 10 and 12, and of updates complete at 12."""
    recalls = asyncio.run(measure())  # noqa: TID251  a program of its own
    print(f"{'':4} {'':9} {'   '.join(f'@{number}' for number in SHOWN):>19}  all@12")
    for method in ("dense", "no slots", "hybrid"):
        for language, of_language in recalls.items():
            print(f"{language:4} {method:9} {of_language[method]}")
        print(f"{'all':4} {method:9} {total(recalls, method)}")


if __name__ == "__main__":
    main()
