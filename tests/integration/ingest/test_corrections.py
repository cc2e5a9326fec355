"""A correction over HTTP is applied, or both statements are flagged in list, search and receipt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import pytest

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest
from pipeline.text.statements.slots import SEPARATOR
from tests.eval.corrections import Case, Verdict, cases, without_slots
from tests.support.api_service import Service, serving
from tests.support.engine import Engine

UPDATES = [case for case in cases() if case.kind.is_update]
# All updates that conservation withholds, with and without slots, and as many that it applies.
WITHHELD = [
    case
    for given in UPDATES
    for case in (given, without_slots(given))
    if case.verdict() is Verdict.FLAGGED
]
APPLIED = [case for case in UPDATES if case.verdict() is Verdict.APPLIED][:: len(UPDATES) // 8]


@dataclass
class Deciding(RulesModel):
    """Model that states the texts of a case with their slots, and decides as the case says."""

    case: Case | None = None

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        assert self.case is not None
        slots = {self.case.memory: self.case.slot, self.case.fact: self.case.fact_slot}
        facts = []
        for message in request.messages:
            text = message.message.content
            subject, _, attribute = (slots[text] or "").partition(SEPARATOR)
            fact = Fact(text, message.source)
            facts.append(replace(fact, subject=subject or None, attribute=attribute or None))
        return Answer(tuple(facts))

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        assert self.case is not None
        target = next((n.memory_id for n in neighbours if n.text == self.case.memory), None)
        if facts[0].text != self.case.fact or target is None:
            return Answer((Decision(0, Outcome.ADD, "New.", facts[0].text),))
        outcome = Outcome.UPDATE if self.case.new else Outcome.DELETE
        return Answer((Decision(0, outcome, "It changed.", self.case.new, target),))


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


def test_there_are_withheld_and_applied_cases() -> None:
    assert len(WITHHELD) >= 10
    assert len(APPLIED) >= 5


async def test_an_applied_correction_leaves_one_statement(service: Service) -> None:
    for case in APPLIED:
        texts, _ = await played(service, case)
        assert case.memory not in texts, case.fact


async def test_a_withheld_correction_flags_both_statements(service: Service) -> None:
    for case in WITHHELD:
        texts, flagged = await played(service, case)
        assert case.memory in texts, case.fact
        assert flagged, case.fact


async def played(service: Service, case: Case) -> tuple[set[str], bool]:
    """The texts that stand after a case, and True if each answer names the open suggestion."""
    user = {"user_id": f"{case.language}: {case.fact} {case.slot}"}
    service.engine.with_model(Deciding(case=case))
    await service.add(case.memory, **user)
    event_id = await service.add(case.fact, **user)
    receipt = (await service.event(event_id))["results"]
    listed = await service.listed(**user)
    hits = await service.search(case.fact, filters=user, top_k=20)
    flags = {row["memory"]: row.get("suggestion_id") for row in listed}
    named = {line.get("suggestion_id") for line in receipt} - {None}
    shown = {*flags.values(), *(row.get("suggestion_id") for row in hits)}
    return set(flags), bool(named) and bool(hits) and shown <= named
