"""Answers of the stand-in for a language model: it parses our prompts and asks a MemoryModel."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import EventType, Instructions, Question
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.graph.values import Relation, RelationRequest, StoredRelation
from pipeline.domain.messages import Message, Role, Source, SourcedMessage
from pipeline.models.categories import BUILT_IN
from pipeline.ports import ExtractionRequest, MemoryModel
from tests.support.embedder_hash import HashEmbedder

Kind = Literal["extract", "decide", "relate", "distil", "profile", "summary", "curate", "other"]
Sections = Mapping[str, Sequence[str]]

# Longest summary, within the limit of the question.
SUMMARY_CHARS = 2_000
QUOTED = r'"(?:[^"\\]|\\.)*"'
_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
_SAID = re.compile(r"said \w+ (\S+ \S+)")
_TURN = re.compile(rf"(?:(\d+) )?(user|assistant|system)(?: ({QUOTED}))?: ({QUOTED})")
_TEXT = re.compile(rf"(\d+)(?: \(\S+\))?: ({QUOTED})")
_EDGE = re.compile(rf"(\d+): ({QUOTED}) (\S+) ({QUOTED})")


class PromptAnswers:
    """Answers to each kind of our prompts, in the form that the prompt requires."""

    def __init__(self, memory: MemoryModel | None = None) -> None:
        self._memory = memory or RulesModel()
        self._embedder = HashEmbedder()

    async def __call__(self, kind: str, prompt: str) -> str:
        part = {head: body.split("\n") for head, body in _SECTION.findall(prompt)}
        answers: dict[str, Callable[[Sections], Any]] = {
            "extract": self._facts,
            "decide": self._decisions,
            "relate": self._relations,
            "distil": self._object,
            "profile": self._fields_of,
            "summary": self._summary,
            "curate": self._proposals,
        }
        return json.dumps(await answers[kind](part), ensure_ascii=False) if part else "{}"

    async def _facts(self, part: Sections) -> dict[str, Any]:
        context = [_message(match) for match in _matches(_TURN, part["Earlier turns"])]
        messages = list(_transcript(part["Messages"]))
        wishes = replace(
            _wishes(part["Owner's wishes"]), categories=_categories(part["Categories"])
        )
        answer = await self._memory.extract(ExtractionRequest(messages, context, wishes))
        stated: dict[str, dict[str, Any]] = {}
        for fact in answer.value:
            row = {"messages": [], "text": fact.text, "categories": fact.categories}
            stated.setdefault(fact.text, row)["messages"].append(fact.source.message)
        return {"facts": list(stated.values())}

    async def _decisions(self, part: Sections) -> dict[str, Any]:
        facts = [Fact(text, Source(0, n)) for n, text in enumerate(_texts(part["Facts"]))]
        neighbours = await self._neighbours(facts, _texts(part["Memories"]))
        wishes = _wishes(part["Owner's wishes"])
        decided = await self._memory.decide(facts, neighbours, wishes)
        return {"decisions": [_decision_row(decision) for decision in decided.value]}

    async def _neighbours(self, facts: Sequence[Fact], memories: Sequence[str]) -> list[Neighbour]:
        new = await self._embedder.embed([fact.text for fact in facts])
        old = await self._embedder.embed(memories)
        nearest = [max(float(vector @ fact) for fact in new) for vector in old]
        pairs = enumerate(zip(memories, nearest, strict=True), start=1)
        return [Neighbour(UUID(int=n), text, near) for n, (text, near) in pairs]

    async def _relations(self, part: Sections) -> dict[str, Any]:
        current = [
            StoredRelation(UUID(int=int(m[1])), json.loads(m[2]), m[3], json.loads(m[4]))
            for m in _matches(_EDGE, part["Current relations"])
        ]
        facts = [Fact(text, Source(0, n)) for n, text in enumerate(_texts(part["Facts"]))]
        changes = (await self._memory.relate(RelationRequest(facts, current))).value
        ends = (end for row in changes.relations for end in (row.source, row.destination))
        return {
            "entities": [{"name": end.name, "type": end.kind} for end in dict.fromkeys(ends)],
            "relations": [_relation_row(relation) for relation in changes.relations],
            "ended": [{"relation": e.relation_id.int, "fact": e.fact + 1} for e in changes.endings],
        }

    async def _object(self, part: Sections) -> Any:
        shape = json.loads(part["Form"][0])
        question = Question(EventType.EXPORT, {}, shape)
        return (await self._memory.distil(question, _texts(part["Memories"]))).value

    async def _fields_of(self, part: Sections) -> Any:
        """The fields of a profile; the form wraps each property in its value and memories."""
        form = json.loads(part["Profile"][0])
        values = {name: row["properties"]["value"] for name, row in form["properties"].items()}
        question = Question(EventType.PROFILE, {}, form | {"properties": values})
        return (await self._memory.distil(question, _texts(part["Memories"]))).value

    async def _proposals(self, part: Sections) -> dict[str, Any]:
        """The first two memories of the first group say the same, in the words of both."""
        numbers = [int(n) for n in re.findall(r"\d+", next(iter(part["Groups"]), ""))[:2]]
        texts = _texts(part["Memories"])
        if len(numbers) < 2 or max(numbers) > len(texts):
            return {"proposals": []}
        text = ". ".join(texts[number - 1] for number in numbers)
        row = {"kind": "COMBINE", "memories": numbers, "text": text, "reason": "One matter."}
        return {"proposals": [row]}

    async def _summary(self, part: Sections) -> dict[str, Any]:
        """The summary so far and the messages, without their oldest words if it gets long."""
        spoken = [message.message.content for message in _transcript(part["New messages"])]
        before = [json.loads(line) for line in part["Summary so far"] if line.startswith('"')]
        return {"summary": " ".join([*before, *spoken])[-SUMMARY_CHARS:]}


def kind_of(prompt: str) -> Kind:
    """Kind of a prompt, recognized by a section that only this kind has."""
    sections: dict[str, Kind] = {
        "Messages": "extract",
        "New messages": "summary",
        "Form": "distil",
        "Profile": "profile",
        "Groups": "curate",
        "Memories": "decide",
    }
    for section, kind in sections.items():
        if f"\n## {section}\n" in prompt:
            return kind
    return "relate" if "## Current relations\n" in prompt else "other"


def _transcript(lines: Sequence[str]) -> Iterator[SourcedMessage]:
    said_at = datetime.fromtimestamp(0, UTC)
    for line in lines:
        if time := _SAID.fullmatch(line):
            said_at = datetime.strptime(time[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        elif turn := _TURN.fullmatch(line):
            yield SourcedMessage(Source(int(turn[1]), int(turn[1])), _message(turn), said_at)


def _message(turn: re.Match[str]) -> Message:
    return Message(Role(turn[2]), json.loads(turn[4]), json.loads(turn[3]) if turn[3] else None)


def _wishes(lines: Sequence[str]) -> Instructions:
    given = {
        label: json.loads(text)
        for label, _, text in (line.partition(": ") for line in lines)
        if label in ("Keep", "Leave out")
    }
    return Instructions(includes=given.get("Keep"), excludes=given.get("Leave out"))


def _categories(lines: Sequence[str]) -> Mapping[str, str] | None:
    """Categories of a prompt; None for the built-in ones, which are listed without descriptions."""
    listed = [line for line in lines if line]
    if listed == [", ".join(BUILT_IN)]:
        return None
    pairs = (re.findall(r'"(?:[^"\\]|\\.)*"', line) for line in listed)
    return {json.loads(name): json.loads(about[0]) if about else "" for name, *about in pairs}


def _texts(lines: Sequence[str]) -> list[str]:
    return [json.loads(match[2]) for match in _matches(_TEXT, lines)]


def _matches(pattern: re.Pattern[str], lines: Sequence[str]) -> list[re.Match[str]]:
    return [match for line in lines if (match := pattern.fullmatch(line))]


def _decision_row(decision: Decision) -> dict[str, Any]:
    return {
        "fact": decision.fact + 1,
        "action": decision.outcome,
        "target": decision.memory_id.int if decision.memory_id else None,
        "text": decision.text if decision.outcome is Outcome.UPDATE else None,
        "reason": decision.reason,
    }


def _relation_row(relation: Relation) -> dict[str, Any]:
    return {
        "fact": relation.fact + 1,
        "source": relation.source.name,
        "relation": relation.relation,
        "target": relation.destination.name,
    }
