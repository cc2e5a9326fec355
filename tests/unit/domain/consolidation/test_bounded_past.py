"""A statement of the past replaces no current fact, also if a model decides so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from pipeline.adapters.model_rules.decide import decide_facts
from pipeline.domain.conflicts import Statement, undecided
from pipeline.domain.consolidation.conservation import Replacement, objection
from pipeline.domain.consolidation.objections import Loss
from pipeline.domain.consolidation.reconcile import apply_writes
from pipeline.domain.events import AddOptions, Event
from pipeline.domain.facts import Fact, Neighbour, Outcome
from pipeline.domain.messages import Role, Source
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import as_vector
from pipeline.domain.writes import ScopeMemories, Write
from tests.support.memories import active_memory

SCOPE = Scope(ProjectId(UUID(int=1)), user_id="user")
EVENT = Event(UUID(int=2), seq=1, options=AddOptions(), messages=())
THEN, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
# The current fact, a statement of the past, their attribute, and the careless text of an UPDATE.
CASES = [
    ("User lives in Oslo.", "User lived in Paris in 2010.", "residence", "User lives in Paris."),
    ("User lives in Oslo.", "User used to live in Paris.", "residence", "User lives in Paris."),
    (
        "User works at Siemens.",
        "User worked at Bosch from 2010 to 2014.",
        "employer",
        "User works at Bosch.",
    ),
    ("User is vegetarian.", "User was vegan until 2019.", "diet", "User is vegan."),
    (
        "Nutzer wohnt in Kassel.",
        "Nutzer wohnte früher in Bonn.",
        "residence",
        "Nutzer wohnt in Bonn.",
    ),
    (
        "Nutzer arbeitet bei Siemens.",
        "Nutzer arbeitete bis 2014 bei Bosch.",
        "employer",
        "Nutzer arbeitet bei Bosch.",
    ),
    (
        "La usuaria vive en Vigo.",
        "La usuaria solía vivir en Lugo.",
        "residence",
        "La usuaria vive en Lugo.",
    ),
    (
        "Camille habite à Nantes.",
        "Camille habitait à Lyon en 2010.",
        "residence",
        "Camille habite à Lyon.",
    ),
    ("用户住在上海。", "用户2010年住在北京。", "residence", "用户住在北京。"),
]


def fact_of(text: str, attribute: str | None) -> Fact:
    fact = Fact(text, Source(event=0, message=0))
    return replace(fact, subject="user", attribute=attribute) if attribute else fact


@pytest.mark.parametrize("with_slots", [True, False])
@pytest.mark.parametrize("outcome", [Outcome.UPDATE, Outcome.DELETE])
@pytest.mark.parametrize(("old", "past", "attribute", "careless"), CASES)
def test_a_model_that_errs_leaves_both_and_nothing_to_decide(
    old: str, past: str, attribute: str, careless: str, outcome: Outcome, *, with_slots: bool
) -> None:
    slot = attribute if with_slots else None
    stored = replace(active_memory(11, SCOPE, old, THEN), subject="user", attribute=slot)
    for text in (past, careless):
        memories = ScopeMemories.of(SCOPE, [stored])
        write = Write(
            position=0,
            fact=fact_of(past, slot),
            outcome=outcome,
            text=text,
            reason="",
            target=stored.id,
            new_id=UUID(int=12),
            vector=as_vector((1.0, 0.0)),
            fact_vector=as_vector((0.0, 1.0)),
            event=EVENT,
            said_at=NOW,
        )
        [change] = apply_writes([write], memories)
        assert memories.by_id[stored.id] == stored
        assert (change.outcome, change.text) == (Outcome.ADD, past)
        assert change.suggestion is None
        assert change.conflict is None


@pytest.mark.parametrize(("old", "past"), [case[:2] for case in CASES])
def test_the_rules_add_it(old: str, past: str) -> None:
    [decision] = decide_facts([fact_of(past, None)], [Neighbour(UUID(int=11), old, 0.9)])
    assert decision.outcome is Outcome.ADD


def test_an_end_of_the_current_fact_itself_is_a_change() -> None:
    for old, past in (
        ("User lives in Oslo.", "User lived in Oslo until 2014."),
        ("User lives in Oslo.", "User used to live in Oslo."),
        ("User is vegetarian.", "User used to be vegetarian."),
    ):
        assert objection(Replacement(old, past, fact=past)) is None


def test_a_current_fact_replaces_no_history() -> None:
    old, new = "User lived in Paris in 2010.", "User lives in Oslo."
    refused = objection(Replacement(old, new, fact=new))
    assert refused is not None
    assert refused.loss is Loss.OTHER_TIME
    both = f"{old} User lives in Oslo now."
    assert objection(Replacement(old, both, fact=new)) is None


def test_a_statement_of_the_past_is_in_no_conflict() -> None:
    statements = [
        Statement(text, fact_of(text, "residence").slot, speaker, Role.USER, NOW, None, UUID(int=n))
        for n, (text, speaker) in enumerate(
            [("User lives in Oslo.", "Ann"), ("User used to live in Paris.", "Ben")]
        )
    ]
    assert not undecided(*statements)
