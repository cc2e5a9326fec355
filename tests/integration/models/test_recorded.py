"""A replay of a scope with its recorded answers gives the same store, byte for byte."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import null, select, update

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import Conflict, MalformedAnswer
from pipeline.domain.events import AddOptions, Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.graph.values import EdgeEnding, Entity, GraphChanges, Relation, RelationRequest
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from pipeline.domain.usage import Answer
from pipeline.ledger.tables import events, receipts, stage_runs
from pipeline.ports import ExtractionRequest
from pipeline.replays.service import begin
from pipeline.replays.store import ReplayOptions
from tests.support.engine import LIMITS, Engine, build_ledger
from tests.support.scope_dump import changed_lines, dump

DRINKS = ("tea", "rum", "gin", "cola", "water", "milk", "wine", "juice", "mead", "cider")
SIZES = (1, 3, 8, 2, 5, 1, 4, 8, 6)  # 38 events


@dataclass
class Whim(RulesModel):
    """Model that never gives the same answer twice.

    `tea > rum` updates, `no tea` deletes, `= tea` is already known, any other text is added; each
    text but a take-back carries the number of its answer.
    """

    takes: int = 0

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        self.takes += 1
        if any("poison" in sourced.message.content for sourced in request.messages):
            raise MalformedAnswer("no JSON")
        facts = [
            Fact(f"{part} after dinner outside{self._number(part)}", sourced.source)
            for sourced in request.messages
            for part in sourced.message.content.split("; ")
        ]
        return Answer(tuple(facts))

    def _number(self, part: str) -> str:
        """The number of the answer; a take-back names nothing that its memory does not have."""
        return "" if part.startswith("no ") else f" #{self.takes}"

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        self.takes += 1
        return Answer(tuple(self._decision(n, f.text, neighbours) for n, f in enumerate(facts)))

    def _decision(self, place: int, text: str, neighbours: Sequence[Neighbour]) -> Decision:
        sign, _, rest = text.partition(" ")
        drink = rest.split(" ")[0] if sign in ("no", "=") else sign
        matching = sorted(
            neighbour.memory_id for neighbour in neighbours if neighbour.text.startswith(drink)
        )
        target = matching[self.takes % len(matching)] if matching else None
        reason = f"Whim {self.takes}."
        if target is None:
            return Decision(place, Outcome.ADD, reason, text=text)
        if sign == "no":
            return Decision(place, Outcome.DELETE, reason, memory_id=target)
        if " > " in text:
            new = text.partition(" > ")[2]
            return Decision(place, Outcome.UPDATE, reason, text=new, memory_id=target)
        return Decision(place, Outcome.NOOP, reason, memory_id=target)

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        self.takes += 1
        if self.takes % 7 == 0:
            raise MalformedAnswer(f"Whim {self.takes}.")
        user, verb = Entity("User", "person"), f"drinks_{self.takes % 4}"
        drinks = [next(word for word in DRINKS if word in text) for text in request.texts]
        new = [Relation(user, verb, Entity(drink, "drink"), n) for n, drink in enumerate(drinks)]
        ended = tuple(
            EdgeEnding(edge.relation_id, drinks.index(edge.destination))
            for edge in request.current
            if edge.destination in drinks
        )
        return Answer(GraphChanges(tuple(new), endings=ended))


class Mute(RulesModel):
    """Model that must not be called."""

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        raise AssertionError("asked to extract")

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        raise AssertionError("asked to decide")

    async def relate(self, request: RelationRequest) -> Answer[GraphChanges]:
        raise AssertionError("asked to relate")


def sayings() -> Iterator[str]:
    """Random additions, changes, deletions and repeats, from a fixed seed."""
    chance = random.Random(11)
    while True:
        drink, other = chance.sample(DRINKS, 2)
        change = f"{drink} > {other}"
        yield chance.choice(
            (drink, f"{drink}; {other}", change, change, f"no {drink}", f"no {drink}", f"= {drink}")
        )


@pytest.fixture
async def lived(engine: Engine) -> Engine:
    """A scope with a history of 38 events in batches of many sizes."""
    engine.services = replace(engine.services, neighbours=50)
    engine.with_model(Whim())
    texts = sayings()
    for turn, size in enumerate(SIZES):
        for _ in range(size):
            await engine.add(next(texts), options=AddOptions(metadata={"turn": turn}))
        await engine.drain()
    engine.with_model(Mute())
    return engine


async def replayed(engine: Engine, *, recorded: bool = True) -> Scope:
    shadow = await begin(
        engine.scope(),
        ReplayOptions(recorded=recorded),
        LIMITS,
        shadows=engine.ledger.shadows,
        dispatcher=engine.hints,
    )
    await engine.drain()
    shadow = await engine.ledger.shadows.get(engine.project.id, shadow.id)
    assert shadow.done
    return shadow.apart


async def test_the_life_of_the_test_holds_all_that_can_happen(lived: Engine) -> None:
    async with lived.ledger.engine.connect() as connection:
        log = (await connection.execute(select(events))).all()
        outcomes = Counter((await connection.scalars(select(receipts.c.outcome))).all())
    sizes = Counter(Counter(event.batch_id for event in log).values())
    assert len(log) >= 30
    assert len(sizes) >= 4
    assert all(outcomes[outcome] >= 2 for outcome in Outcome), outcomes
    assert {event.graph_status for event in log} >= {"SUCCEEDED", "FAILED"}
    text = (await dump(lived.ledger, lived.scope())).decode()
    assert "drinks_" in text
    assert '"true"' in text  # a relation that ended


async def test_a_replay_with_recorded_answers_gives_the_same_store_to_the_byte(
    lived: Engine,
) -> None:
    before = await dump(lived.ledger, lived.scope())
    there = await replayed(lived)
    after = await dump(lived.ledger, there)
    assert before == after, changed_lines(before, after)
    assert await dump(lived.ledger, lived.scope()) == before


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "fresh"])
async def test_a_batch_that_was_said_in_another_order_is_replayed_the_same(
    engine: Engine, recorded: bool
) -> None:
    porto, bern = "I moved to Porto.", "I moved to Bern."
    for text, day in ((porto, 9), (bern, 2), ("I like tea.", 5), (porto, 1)):
        said_at = datetime(2026, 3, day, tzinfo=UTC)
        await engine.send(engine.scope(), [Message(Role.USER, text)], said_at=said_at)
    await engine.drain()
    assert await engine.texts() == ["User likes tea", "User lives in Porto"]
    before = await dump(engine.ledger, engine.scope())
    after = await dump(engine.ledger, await replayed(engine, recorded=recorded))
    assert before == after, changed_lines(before, after)


async def test_batches_are_frozen_as_they_were_whatever_the_setting_is_by_now(
    lived: Engine, database_url: str
) -> None:
    before = await dump(lived.ledger, lived.scope())
    narrow = build_ledger(database_url, batch_events=2)
    lived.services = replace(lived.services, ledger=narrow)
    try:
        there = await replayed(lived)
        assert await dump(lived.ledger, there) == before
    finally:
        await narrow.close()


def _other_fact(output: dict[str, Any]) -> None:
    output["facts"][0]["attributed_to"] = "assistant"


def _other_reason(output: dict[str, Any]) -> None:
    output["decisions"][0]["reason"] += "!"


def _other_end(output: dict[str, Any]) -> None:
    output["changes"]["relations"][0]["destination"]["name"] += "!"


ALTERED: dict[str, Callable[[dict[str, Any]], None]] = {
    "extract": _other_fact,
    "consolidate": _other_reason,
    "relate": _other_end,
}


@pytest.mark.parametrize("stage", ALTERED)
async def test_one_answer_recorded_otherwise_shows(lived: Engine, stage: str) -> None:
    before = await dump(lived.ledger, lived.scope())
    runs = stage_runs.c
    async with lived.ledger.engine.begin() as connection:
        query = select(stage_runs).where(runs.stage == stage).order_by(runs.finished_at)
        first = (await connection.execute(query)).first()
        assert first is not None
        ALTERED[stage](output := dict(first.output))
        await connection.execute(
            update(stage_runs)
            .where(runs.stage == stage, runs.batch_id == first.batch_id)
            .values(output=output)
        )
    assert await dump(lived.ledger, await replayed(lived)) != before


async def test_an_event_that_failed_without_an_answer_fails_again(engine: Engine) -> None:
    engine.with_model(Whim())
    for text in ("tea", "poison", "rum"):
        await engine.add(text)
        await engine.drain()
    engine.with_model(Mute())
    there = await replayed(engine)
    shadow = await engine.ledger.shadows.get(engine.project.id, there.project_id)
    assert shadow.failures == {"LLM_BAD_OUTPUT": 1}
    assert (await engine.ledger.balance.totals(there.project_id)).balanced


async def test_answers_that_an_undo_has_torn_apart_are_refused(engine: Engine) -> None:
    engine.with_model(Whim())
    ids: list[UUID] = [await engine.add(text) for text in ("tea", "rum")]
    await engine.drain()
    await engine.undo(ids[0])
    with pytest.raises(Conflict, match="fresh"):
        await replayed(engine)


async def test_answers_that_were_let_go_of_are_missed_by_name(engine: Engine) -> None:
    engine.with_model(Whim())
    await engine.add("tea")
    await engine.drain()
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(update(stage_runs).values(output=null()))
    engine.with_model(Mute())
    there = await replayed(engine)
    shadow = await engine.ledger.shadows.get(engine.project.id, there.project_id)
    assert shadow.failures == {"LLM_BAD_OUTPUT": 1}
