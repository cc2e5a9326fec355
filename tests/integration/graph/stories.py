"""Stories of dated statements, added in any order, and what holds at each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.graph.values import EdgeEnding, Entity, GraphChanges, Relation, RelationRequest
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest
from tests.support.api_service import Service

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
KINDS = {"lives_in": "place", "works_at": "organization"}
# Relations of which a person has several destinations at a time.
SEVERAL = frozenset({"likes", "speaks", "owns", "plays"})
Edge = tuple[str, str, str]


@dataclass(frozen=True)
class Stated:
    """A statement of one relation. `day`: days after START at which it is said.

    `over`: it says that the relation is over.
    """

    text: str
    edge: Edge
    day: int
    attribute: str
    speaker: str | None = None
    over: bool = False

    @property
    def said_at(self) -> datetime:
        return START + timedelta(days=self.day)

    @property
    def is_single(self) -> bool:
        return self.edge[1] not in SEVERAL


def lives(name: str, place: str, day: int, speaker: str | None = None) -> Stated:
    return Stated(f"{name} lives in {place}.", (name, "lives_in", place), day, "residence", speaker)


def works(name: str, firm: str, day: int, speaker: str | None = None) -> Stated:
    return Stated(f"{name} works at {firm}.", (name, "works_at", firm), day, "employer", speaker)


def likes(name: str, thing: str, day: int) -> Stated:
    return Stated(f"{name} likes {thing}.", (name, "likes", thing), day, "likes")


def plays(name: str, game: str, day: int, words: str = "plays") -> Stated:
    return Stated(f"{name} {words} {game}.", (name, "plays", game), day, "hobbies")


def stops(name: str, game: str, day: int, words: str = "no longer plays") -> Stated:
    return replace(plays(name, game, day, words), over=True)


def holding(story: Sequence[Stated], day: float) -> set[Edge]:
    """The relations that hold on a day: of a single-valued one the last that was said by then."""
    last: dict[tuple[str, ...], Edge | None] = {}
    for statement in sorted(story, key=lambda statement: statement.day):
        if statement.day <= day:
            key = statement.edge[:2] if statement.is_single else statement.edge
            last[key] = None if statement.over else statement.edge
    return {edge for edge in last.values() if edge is not None}


class Attentive(RulesModel):
    """Model that knows each statement's fact and relation, and decides by the slot.

    `silent`: texts that state no relation. `linked`: it changes the memory of a relation that is
    over, or holds again; else each such statement is a memory of its own.
    """

    def __init__(
        self, story: Sequence[Stated], silent: Sequence[str] = (), *, linked: bool = False
    ) -> None:
        super().__init__()
        self._linked = linked
        self._by_text = {statement.text: statement for statement in story}
        self._silent = frozenset(silent)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        facts = []
        for sourced in request.messages:
            statement = self._by_text[sourced.message.content]
            facts.append(
                Fact(
                    statement.text,
                    sourced.source,
                    speaker=sourced.message.name,
                    subject=statement.edge[0],
                    attribute=statement.attribute,
                )
            )
        return Answer(tuple(facts))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        return Answer(tuple(self._decision(*pair, neighbours) for pair in enumerate(facts)))

    def _decision(self, number: int, fact: Fact, neighbours: Sequence[Neighbour]) -> Decision:
        own = self._by_text[fact.text]
        same = sorted((n for n in neighbours if n.slot == fact.slot), key=lambda n: n.text)
        if self._linked and not own.is_single:
            same = [n for n in neighbours if self._by_text[n.text].edge == own.edge]
        if not (same and (own.is_single or self._linked)):
            return Decision(number, Outcome.ADD, "It is new.", fact.text)
        return Decision(number, Outcome.UPDATE, "It changed.", fact.text, same[0].memory_id)

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        stated = [(number, self._by_text[text]) for number, text in enumerate(request.texts)]
        return Answer(
            GraphChanges(
                tuple(
                    _relation(number, own.edge)
                    for number, own in stated
                    if not own.over and own.text not in self._silent
                ),
                endings=tuple(
                    EdgeEnding(shown.relation_id, number)
                    for number, own in stated
                    for shown in request.current
                    if own.over and (shown.source, shown.relation, shown.destination) == own.edge
                ),
            )
        )


def _relation(number: int, edge: Edge) -> Relation:
    source, name, destination = edge
    return Relation(
        Entity(source, "person"), name, Entity(destination, KINDS.get(name, "thing")), number
    )


async def tell(service: Service, statement: Stated, *, user_id: str) -> str:
    """Add one statement at its time. Returns the id of its event."""
    turn = {"role": "user", "content": statement.text}
    if statement.speaker:
        turn["name"] = statement.speaker
    body = {"messages": [turn], "user_id": user_id, "timestamp": statement.said_at.isoformat()}
    answer = await service.client.post("/v3/memories/add/", json=body)
    assert answer.status_code == 200, answer.text
    await service.engine.drain()
    return str(answer.json()["event_id"])


async def relations(service: Service, user_id: str, **params: object) -> list[Mapping[str, Any]]:
    """The relations of a user, as the API returns them."""
    query: dict[str, Any] = {"user_id": user_id, "page_size": 100} | params
    answer = await service.client.get("/v1/graph/", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def drawn(service: Service, user_id: str, **params: object) -> list[Edge]:
    """The relations of a user, as edges."""
    rows = await relations(service, user_id, **params)
    return [(row["source"], row["relationship"], row["target"]) for row in rows]


def noon(day: float) -> str:
    """A day of the story as the API reads it."""
    return (START + timedelta(days=day)).isoformat()
