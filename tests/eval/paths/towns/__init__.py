"""Towns: generated worlds of many people, with questions of one, two and three hops.

A file says what there is and how it is worded. Who is whose sister is drawn with the file's seed,
so a town is always the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import yaml

from tests.eval.paths.worlds import Edge, HopQuestion, World

FOLDER = Path(__file__).parent
SUFFIX = ".yaml"
PERSON = "person"


@dataclass(frozen=True)
class Step:
    """A relation between two things, and its fact in words."""

    source: str
    target: str
    text: str
    edge: Edge


@dataclass(frozen=True)
class Town:
    """A world, with the questions of one hop about its facts."""

    world: World
    plain: tuple[HopQuestion, ...]


def names() -> list[str]:
    """The names of all towns."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def load(name: str) -> Town:
    """The town of this name."""
    raw = yaml.safe_load((FOLDER / f"{name}{SUFFIX}").read_text("utf-8"))
    chance = random.Random(raw["seed"])
    things = {kind: _words(text) for kind, text in raw["things"].items()}
    things[PERSON] = things["woman"] + things["man"]
    relations: Mapping[str, Mapping[str, Any]] = raw["relations"]
    steps = {key: _steps(relation, things, chance) for key, relation in relations.items()}
    facts = [(step.text, (step.edge,)) for of in steps.values() for step in of.values()]
    chance.shuffle(facts)
    questions = tuple(_questions(raw["chains"], relations, steps, chance, raw.get("fixes", {})))
    plain = tuple(
        _questions(raw["plain"].split() * 2, relations, steps, chance, raw.get("fixes", {}))
    )
    return Town(World(name, tuple(facts), questions), plain)


def _words(text: str) -> list[str]:
    return [word.replace("_", " ") for word in text.split()]


def _steps(
    relation: Mapping[str, Any], things: Mapping[str, Sequence[str]], chance: random.Random
) -> dict[str, Step]:
    """One relation from each of `count` things, by its source. `once`: no target has two."""
    sources, targets = things[relation["from"]], things[relation["to"]]
    wordings = cycle(relation["says"])
    steps = {}
    taken: set[str] = set()
    for source in chance.sample(sources, relation["count"]):
        target = chance.choice([each for each in targets if each not in taken | {source}])
        if relation.get("once"):
            taken.add(target)
        text = next(wordings).format(s=source, t=target)
        steps[source] = Step(source, target, text, (source, relation["edge"], target))
    return steps


def _questions(
    chains: Sequence[str],
    relations: Mapping[str, Mapping[str, Any]],
    steps: Mapping[str, Mapping[str, Step]],
    chance: random.Random,
    fixes: Mapping[str, str],
) -> Iterator[HopQuestion]:
    """A question for each chain, about a thing that it begins at. `fixes`: endings of words."""
    for chain in chains:
        *first, last = chain.split()
        paths = [path for start in steps[(*first, last)[0]] if (path := _path(start, chain, steps))]
        path = chance.choice(paths)
        phrase = path[0].source
        for key in first:
            phrase = chance.choice(_fitting(relations[key]["nouns"], phrase)).format(x=phrase)
        text = chance.choice(_fitting(relations[last]["asks"], phrase)).format(x=phrase)
        for wrong, right in fixes.items():
            text = text.replace(wrong, right)
        yield HopQuestion(text, tuple(step.edge for step in path))


def _fitting(wordings: Sequence[str], phrase: str) -> Sequence[str]:
    """The wordings that say whose it is: no "the boss of Ana's sister" for her boss's sister."""
    if phrase[:1].isupper():
        return wordings
    return [each for each in wordings if not any(s in each for s in ("{x}'", "{x}s"))] or wordings


def _path(start: str, chain: str, steps: Mapping[str, Mapping[str, Step]]) -> list[Step]:
    """The steps of a chain from this thing, none of them twice; empty if it breaks off."""
    path: list[Step] = []
    at = start
    for key in chain.split():
        step = steps[key].get(at)
        if step is None or any(step.target == other.source for other in path):
            return []
        path.append(step)
        at = step.target
    return path
