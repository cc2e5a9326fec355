"""A batch that changes one memory twice keeps the state in between."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.usage import Answer
from pipeline.ledger.tables import past_states
from tests.support.engine import Engine


class Rewording(RulesModel):
    """Model that adds each fact to the first memory that it is shown."""

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        texts = [neighbours[0].text]
        decisions = []
        for number, fact in enumerate(facts):
            texts.append(fact.text)
            decisions.append(
                Decision(number, Outcome.UPDATE, "More.", ". ".join(texts), neighbours[0].memory_id)
            )
        return Answer(tuple(decisions))


async def test_the_state_between_two_changes_of_a_batch_is_kept(engine: Engine) -> None:
    await engine.add("I like green tea.")
    await engine.drain()
    engine.with_model(Rewording())
    event_id = await engine.add("I like green tea with milk.", "I like green tea with lemon.")
    await engine.drain()
    event = await engine.ledger.events.get(engine.project.id, event_id)
    assert event.status == "SUCCEEDED", event.failure_detail
    async with engine.ledger.engine.connect() as connection:
        query = select(past_states).order_by(past_states.c.version)
        rows = (await connection.execute(query)).all()
    assert [(row.version, row.stored_at < row.replaced_at) for row in rows] == [
        (1, True),
        (2, False),
    ]
