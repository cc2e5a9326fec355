"""A good model: it answers prompts from the facts of the dialogues and the memories it is shown.

It knows each fact by its text, and each memory by the facts that its text holds. A decision comes
from the relations between the new fact and these facts, in any order of arrival.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, TypeVar

from tests.eval.scenarios.dialogues import Scenario, Stated
from tests.support.llm_answers import QUOTED

_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
_TURN = re.compile(rf"^(\d+) (?:user|assistant|system)(?: {QUOTED})?: ({QUOTED})$", re.MULTILINE)
_NUMBERED = re.compile(rf"^(\d+)(?: \([^)\n]*\))?: ({QUOTED})", re.MULTILINE)
# Least similarity of a memory to a known text, if the product has completed its dates.
ALIKE = 0.6
SUPERSEDED = "A later statement took its place."

Row = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Shown:
    """A memory of the prompt: its number and the facts it holds."""

    number: int
    text: str
    scenario: Scenario | None = None
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class NewFact:
    """A fact of the prompt; `stated` is None for a text of no dialogue."""

    number: int
    text: str
    scenario: Scenario | None = None
    stated: Stated | None = None


@dataclass
class Oracle:
    """Facts of messages, and the facts that each memory text holds."""

    scenarios: Sequence[Scenario]
    messages: dict[str, tuple[Scenario, tuple[Stated, ...]]] = field(default_factory=dict)
    facts: dict[str, tuple[Scenario, Stated]] = field(default_factory=dict)
    texts: dict[str, tuple[Scenario, frozenset[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for scenario in self.scenarios:
            for turn in scenario.turns:
                for number, message in enumerate(turn.messages):
                    facts = tuple(fact for fact in turn.facts if fact.message == number)
                    self.messages.setdefault(key(message["content"]), (scenario, facts))
            for fact in scenario.facts.values():
                self.facts.setdefault(key(fact.text.plain), (scenario, fact))
                self.hold(fact.text.plain, scenario, frozenset({fact.id}))

    def hold(self, text: str, scenario: Scenario, known: frozenset[str]) -> None:
        """Remember the facts that a memory of this text holds."""
        earlier = self.texts.get(key(text), (scenario, frozenset()))[1]
        self.texts[key(text)] = (scenario, earlier | known)

    # ── extract ──────────────────────────────────────────────────────────────────────────────────

    def extract(self, prompt: str) -> Row:
        turns = [
            (int(n), json.loads(text)) for n, text in _TURN.findall(section(prompt, "Messages"))
        ]
        rows = [fact_row(n, fact) for n, content in turns for fact in self.stated(content)]
        return {"facts": rows}

    def stated(self, content: str) -> tuple[Stated, ...]:
        """Facts of a message, or of the message that it is a part of."""
        if (exact := self.messages.get(key(content))) is not None:
            return exact[1]
        part = key(content)
        for whole, (_, facts) in self.messages.items():
            if len(part) > 8 and part in whole:
                return facts
        return ()

    # ── decide ───────────────────────────────────────────────────────────────────────────────────

    def decide(self, prompt: str) -> Row:
        facts, memories = self.read(prompt)
        rows: list[Row] = []
        current = {memory.number: memory for memory in memories}
        for fact in facts:
            rows += self.decided(fact, current)
        return {"decisions": merged(rows)}

    def read(self, prompt: str) -> tuple[list[NewFact], list[Shown]]:
        """The facts and memories of a prompt."""
        facts = [self.new_fact(n, text) for n, text in numbered(section(prompt, "Facts"))]
        memories = [self.shown(n, text, facts) for n, text in numbered(section(prompt, "Memories"))]
        return facts, memories

    def new_fact(self, number: int, text: str) -> NewFact:
        scenario, stated = self.facts.get(key(text)) or self.held(text) or (None, None)
        return NewFact(number, text, scenario, stated)

    def held(self, text: str) -> tuple[Scenario, Stated] | None:
        """The one fact that a text holds, in another wording."""
        if (entry := self.texts.get(key(text))) is not None and len(entry[1]) == 1:
            scenario, [name] = entry
            return scenario, scenario.facts[name]
        return alike(text, self.facts)

    def shown(self, number: int, text: str, facts: Iterable[NewFact]) -> Shown:
        names = {fact.scenario.name for fact in facts if fact.scenario}
        near = {k: v for k, v in self.texts.items() if v[0].name in names}
        scenario, known = near.get(key(text)) or alike(text, near) or (None, frozenset())
        return Shown(number, text, scenario, known)

    def decided(self, fact: NewFact, memories: dict[int, Shown]) -> list[Row]:
        """Rows of one fact. `memories` then shows what they make of them."""
        scenario, stated = fact.scenario, fact.stated
        if scenario is None or stated is None:
            return [decision(fact, "ADD", reason="Nothing is about this.")]
        related = [
            m for m in memories.values() if m.scenario is scenario and linked(scenario, stated, m)
        ]
        if not related:
            return [decision(fact, "ADD", reason="Nothing is about this.")]
        first = primary(scenario, stated, related)
        if is_repeat(scenario, stated, first):
            return [decision(fact, "NOOP", first, reason="A memory says this already.")]
        if stated.id in scenario.superseded(first.known):
            return [decision(fact, "NOOP", first, reason=SUPERSEDED)]
        rows = []
        known = frozenset({stated.id}).union(first.known)
        for memory in (first, *(m for m in related if m is not first)):
            after = scenario.memory(known) if memory is first else None
            if after is not None and memory is first:
                self.hold(after.plain, scenario, known)
                rows.append(decision(fact, "UPDATE", memory, after.plain, "It has changed."))
                memories[memory.number] = Shown(memory.number, after.plain, scenario, known)
            elif memory.known <= scenario.superseded({stated.id}):
                rows.append(decision(fact, "DELETE", memory, reason="It is no longer so."))
                del memories[memory.number]
        return rows


def linked(scenario: Scenario, fact: Stated, memory: Shown) -> bool:
    """True if the memory holds the fact, or one that it is related to."""
    ancestors = scenario.ancestors(fact.id)
    return any(
        name == fact.id or name in ancestors or fact.id in scenario.ancestors(name)
        for name in memory.known
    )


def primary(scenario: Scenario, fact: Stated, related: Sequence[Shown]) -> Shown:
    """The memory that an update changes: of the first fact that the new one names, if shown."""
    for name in (*fact.earlier, *scenario.ancestors(fact.id)):
        for memory in related:
            if name in memory.known:
                return memory
    return related[0]


def is_repeat(scenario: Scenario, fact: Stated, memory: Shown) -> bool:
    repeats = {other.repeats for other in map(scenario.facts.__getitem__, memory.known)}
    return fact.id in memory.known | repeats or fact.repeats in memory.known


def merged(rows: Sequence[Row]) -> list[Row]:
    """The rows; of several changes of one memory the last counts and the earlier are NOOP."""
    last = {row["target"]: row["fact"] for row in rows if row["action"] in ("UPDATE", "DELETE")}
    return [
        row | {"action": "NOOP", "text": None, "reason": "A later fact changes it."}
        if row["action"] in ("UPDATE", "DELETE") and last[row["target"]] != row["fact"]
        else row
        for row in rows
    ]


def decision(
    fact: NewFact,
    action: str,
    memory: Shown | None = None,
    text: str | None = None,
    reason: str = "",
) -> Row:
    target = memory.number if memory else None
    return {
        "fact": fact.number, "action": action, "target": target, "text": text, "reason": reason,
    }  # fmt: skip


def fact_row(number: int, fact: Stated) -> Row:
    return {
        "messages": [number],
        "text": fact.text.plain,
        "kind": fact.kind,
        "subject": fact.subject,
        "attribute": fact.attribute,
        "when": fact.when,
        "modality": fact.modality,
        "confidence": 0.9,
        "categories": [],
    }


def section(prompt: str, head: str) -> str:
    """The body of the last section with this heading."""
    bodies = [body for name, body in _SECTION.findall(prompt) if name == head]
    return bodies[-1] if bodies else ""


def numbered(lines: str) -> list[tuple[int, str]]:
    return [(int(number), json.loads(text)) for number, text in _NUMBERED.findall(lines)]


def alike(text: str, known: Mapping[str, T]) -> T | None:
    """The value of the most similar text, if it is similar enough."""
    matcher = SequenceMatcher(b=key(text))
    best, most = None, ALIKE
    for other, value in known.items():
        matcher.set_seq1(other)
        # The quick ratios are upper bounds.
        if matcher.real_quick_ratio() >= most and matcher.quick_ratio() >= most:
            best, most = (value, ratio) if (ratio := matcher.ratio()) >= most else (best, most)
    return best


def key(text: str) -> str:
    """A text without the differences that do not matter."""
    return " ".join(text.casefold().split()).rstrip(" .。!")
