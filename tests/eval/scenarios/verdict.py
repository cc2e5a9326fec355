"""Verdicts on played scenarios: expected against final memories, and memories that were harmed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.eval.scenarios.dialogues import Scenario
from tests.eval.scenarios.oracle import Oracle, key
from tests.eval.scenarios.play import Played


@dataclass(frozen=True)
class Difference:
    """Expected memories that do not stand, and memories that stand but are not expected."""

    missing: tuple[str, ...]
    extra: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra)


def difference(played: Played) -> Difference:
    """The final store against the expected one, with the wording of any repeat."""
    scenario = played.scenario
    standing = {key(text): text for text in played.texts}
    missing = []
    for name in scenario.final:
        wordings = [key(text) for text in scenario.wordings(name)]
        matches = [wording for wording in wordings if wording in standing]
        if not matches:
            missing.append((scenario.facts[name].becomes or scenario.facts[name].text).plain)
        for wording in matches[:1]:
            del standing[wording]
    left = set(map(key, scenario.may_stand))
    extra = [text for normal, text in standing.items() if normal not in left]
    twice = len(played.texts) - len({key(text) for text in played.texts})
    return Difference(tuple(missing), tuple(extra) + ("(a text stands twice)",) * twice)


def harmed(played: Played, oracle: Oracle) -> list[str]:
    """Facts that stood in a memory with all their values and were lost without a reason.

    A fact is unharmed if an active memory holds it with its values, if the memory that held it
    still has its values, or if a later statement of the dialogue supersedes it.
    """
    scenario = played.scenario
    superseded = scenario.superseded(scenario.facts)
    losses = []
    for name, memory_ids in stood(played, oracle).items():
        values = scenario.facts[name].text.values
        if name in superseded or any(holds(oracle, t, name, values) for t in played.texts):
            continue
        if not any(successor(m, memory_ids, values) for m in played.memories):
            losses.append(name)
    return losses


def stood(played: Played, oracle: Oracle) -> dict[str, set[str]]:
    """Facts that some memory held with all their values, with the ids of these memories."""
    facts: dict[str, set[str]] = {}
    for row in rows(played):
        if row["event"] not in ("ADD", "UPDATE"):
            continue
        for name in known(oracle, played.scenario, row["memory"]):
            if holds(oracle, row["memory"], name, played.scenario.facts[name].text.values):
                facts.setdefault(name, set()).add(row["id"])
    return facts


def rows(played: Played) -> Iterator[dict[str, Any]]:
    """The receipt lines of all events, in order."""
    for event in played.events:
        yield from event["results"]


def known(oracle: Oracle, scenario: Scenario, text: str) -> Iterable[str]:
    holder, names = oracle.texts.get(key(text), (None, frozenset()))
    return names if holder is scenario else ()


def holds(oracle: Oracle, text: str, name: str, values: Iterable[str]) -> bool:
    """True if this text holds the fact, with all its values."""
    _, names = oracle.texts.get(key(text), (None, frozenset[str]()))
    return name in names and all(value in text for value in values)


def successor(memory: dict[str, Any], ids: set[str], values: frozenset[str]) -> bool:
    """True if this memory has taken the place of one of `ids` and keeps the values."""
    return memory["id"] in ids and all(value in memory["memory"] for value in values)


def kept(played: Played) -> int:
    """Number of expected memories whose values stand together in one memory."""
    return sum(
        any(all(value in text for value in expected.values) for text in played.texts)
        for expected in played.scenario.expected
    )


def stale(played: Played) -> int:
    """Number of superseded facts whose own values, which no expected memory has, still stand."""
    scenario = played.scenario
    current = frozenset[str]().union(*(expected.values for expected in scenario.expected))
    outdated = [
        scenario.facts[name].text.values - current for name in scenario.superseded(scenario.facts)
    ]
    return sum(
        any(all(value in text for value in values) for text in played.texts)
        for values in outdated
        if values
    )
