"""Dialogues of the scenarios, and the store that must stand after any part of one.

A file has one language and its scenarios:

    language: en
    scenarios:
      moves-once:
        tags: [move]
        turns:
          - at: 2026-03-02 10:00
            user: I'm Maya, I live in Bern.
            facts:
              - {id: bern, says: "[Maya] lives in [Bern].", slot: Maya residence}
          - at: 2026-11-22 18:30
            user: We moved to Porto.
            facts:
              - {id: porto, says: "[Maya] lives in [Porto].", slot: Maya residence, replaces: bern}
        final: [porto]

A turn has `user` and `assistant`, or `messages` with names; a fact comes from the first message, or
from message `of` (counted from 1). Marks around a name, a number or a date say that this value must
survive. Relations to earlier facts:

    replaces: [a, b]       the fact takes the place of these; the first keeps its id, others go
    extends: a             `becomes` is the memory of both
    takes_back: a          it is no longer so, and nothing takes its place
    repeats: a             it is stored already
    modality: sarcastic    it is no fact, although a model may list it

`final` names the facts whose memories stand at the end. The texts of messages and facts are unique
over all files, because a model is shown nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.eval.paths.worlds import Edge, edges

FOLDER = Path(__file__).parent
ASSERTED = ("stated", "planned")
_MARK = re.compile(r"\[([^\]]+)\]")


@dataclass(frozen=True)
class Text:
    """A text and the values in it that must survive."""

    plain: str
    values: frozenset[str] = frozenset()

    @classmethod
    def of(cls, marked: str) -> Text:
        return cls(_MARK.sub(r"\1", marked), frozenset(_MARK.findall(marked)))


@dataclass(frozen=True)
class Stated:
    """A fact of a dialogue. `message`: 0-based, in its turn.

    `states` and `ends`: relations that begin and end, as a model writes them.
    """

    id: str
    text: Text
    turn: int
    message: int = 0
    kind: str = "other"
    subject: str | None = None
    attribute: str | None = None
    when: str | None = None
    modality: str = "stated"
    replaces: tuple[str, ...] = ()
    takes_back: tuple[str, ...] = ()
    extends: str | None = None
    becomes: Text | None = None
    repeats: str | None = None
    states: tuple[Edge, ...] = ()
    ends: tuple[Edge, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def asserted(self) -> bool:
        return self.modality in ASSERTED

    @property
    def supersedes(self) -> tuple[str, ...]:
        return self.replaces + self.takes_back

    @property
    def earlier(self) -> tuple[str, ...]:
        """Facts that this one is directly related to."""
        related = (*self.supersedes, self.extends, self.repeats)
        return tuple(name for name in related if name)


@dataclass(frozen=True)
class Turn:
    at: datetime
    messages: Sequence[Mapping[str, str]]
    facts: tuple[Stated, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ExpectedGraph:
    """The graph at the end of a dialogue: types of nodes by label, current and ended relations.

    A label is a name, or a name with the role that tells it from a namesake: Sam (brother).
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    now: tuple[Edge, ...] = ()
    ended: tuple[Edge, ...] = ()


@dataclass(frozen=True)
class Scenario:
    name: str
    language: str
    tags: tuple[str, ...]
    turns: tuple[Turn, ...]
    final: tuple[str, ...]
    graph: ExpectedGraph = field(default_factory=ExpectedGraph)

    @cached_property
    def facts(self) -> Mapping[str, Stated]:
        """All facts by id, in the order they were said."""
        return {fact.id: fact for turn in self.turns for fact in turn.facts}

    def ancestors(self, name: str) -> set[str]:
        """Facts that a fact is related to, directly or through others."""
        near = self.facts[name].earlier
        return set(near).union(*map(self.ancestors, near))

    def superseded(self, known: Iterable[str]) -> set[str]:
        """Facts that are no longer true once the known ones are said."""
        gone: set[str] = set()
        for name in known:
            for target in self.facts[name].supersedes:
                gone |= {target} | self.ancestors(target)
        return gone

    def memory(self, known: frozenset[str]) -> Text | None:
        """The memory that holds these related facts; None if they are taken back."""
        gone = self.superseded(known)
        alive = [fact for name, fact in self.facts.items() if name in known - gone]
        alive = [fact for fact in alive if fact.repeats not in known and not _done(fact, known)]
        merged = [
            fact for fact in alive if fact.becomes and self.ancestors(fact.id) <= known | gone
        ]
        if merged:
            last = merged[-1]
            assert last.becomes is not None
            alive = [fact for fact in alive if fact.id not in self.ancestors(last.id) | {last.id}]
            texts = [last.becomes, *(fact.text for fact in alive)]
        else:
            texts = [fact.text for fact in alive]
        if not texts:
            return None
        return Text(
            " ".join(text.plain for text in texts),
            frozenset().union(*(text.values for text in texts)),
        )

    @cached_property
    def expected(self) -> tuple[Text, ...]:
        """The memories that stand after the dialogue."""
        facts = [self.facts[name] for name in self.final]
        return tuple(fact.becomes or fact.text for fact in facts)

    def wordings(self, name: str) -> set[str]:
        """Texts that may stand for a fact of `final`: its own, or that of a repeat."""
        fact = self.facts[name]
        repeats = {other.text.plain for other in self.facts.values() if other.repeats == name}
        return repeats | {(fact.becomes or fact.text).plain}

    @cached_property
    def may_stand(self) -> frozenset[str]:
        """Texts that stand if a take-back arrives before the statement that it takes back."""
        return frozenset(fact.text.plain for fact in self.facts.values() if fact.takes_back)

    @property
    def has_many_targets(self) -> bool:
        return any(len(fact.supersedes) > 1 for fact in self.facts.values())


def _done(fact: Stated, known: frozenset[str]) -> bool:
    """A take-back that has taken back its statement leaves nothing."""
    return bool(fact.takes_back) and not known.isdisjoint(fact.takes_back) and not fact.replaces


def load(folder: Path = FOLDER) -> list[Scenario]:
    """All scenarios, in the order of the files."""
    return [
        _scenario(name, content["language"], raw)
        for path in sorted(folder.glob("*.yaml"))
        for content in [yaml.safe_load(path.read_text("utf-8"))]
        for name, raw in content["scenarios"].items()
    ]


def _scenario(name: str, language: str, raw: Mapping[str, Any]) -> Scenario:
    turns = tuple(_turn(number, turn) for number, turn in enumerate(raw["turns"]))
    nodes = {label: kind for kind, labels in raw.get("nodes", {}).items() for label in labels}
    graph = ExpectedGraph(nodes, edges(raw.get("now", ())), edges(raw.get("ended", ())))
    final = tuple(raw.get("final", ()))
    return Scenario(name, language, tuple(raw["tags"]), turns, final, graph)


def _turn(number: int, raw: Mapping[str, Any]) -> Turn:
    messages = raw.get("messages") or [
        {"role": role, "content": raw[role]} for role in ("user", "assistant") if role in raw
    ]
    facts = tuple(_fact(number, fact) for fact in raw.get("facts", ()))
    at = raw["at"]
    said_at = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
    return Turn(said_at.replace(tzinfo=UTC), messages, facts, raw.get("options", {}))


def _fact(turn: int, raw: Mapping[str, Any]) -> Stated:
    subject, _, attribute = (raw.get("slot") or "").rpartition(" ")
    return Stated(
        id=raw.get("id", raw["says"]),
        text=Text.of(raw["says"]),
        turn=turn,
        message=raw.get("of", 1) - 1,
        kind=raw.get("kind", "other"),
        subject=subject or None,
        attribute=attribute or None,
        when=raw.get("when"),
        modality=raw.get("modality", "stated"),
        replaces=_names(raw.get("replaces")),
        takes_back=_names(raw.get("takes_back")),
        extends=raw.get("extends"),
        becomes=Text.of(raw["becomes"]) if "becomes" in raw else None,
        repeats=raw.get("repeats"),
        states=edges(raw.get("states", ())),
        ends=edges(raw.get("ends", ())),
        types=raw.get("types", {}),
    )


def _names(raw: str | list[str] | None) -> tuple[str, ...]:
    return (raw,) if isinstance(raw, str) else tuple(raw or ())
