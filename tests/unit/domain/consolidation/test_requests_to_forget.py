"""A request to forget deletes the memory that its words name, and is no memory itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from pipeline.domain.conflicts import Statement, undecided
from pipeline.domain.consolidation.conservation import Replacement, objection
from pipeline.domain.consolidation.reconcile import apply_writes
from pipeline.domain.events import AddOptions, Event
from pipeline.domain.facts import Fact, Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.messages import Role, Source
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import as_vector
from pipeline.domain.writes import Change, ScopeMemories, Write
from tests.support.memories import active_memory

SCOPE = Scope(ProjectId(UUID(int=1)), user_id="maya")
EVENT = Event(UUID(int=2), seq=1, options=AddOptions(), messages=())
THEN, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
HIKING = "User asks to forget that they love hiking."
NAMED = [
    ("User loves hiking.", HIKING),
    ("User lives in Oslo.", "User wants the assistant to forget that they live in Oslo."),
    ("User's phone number is 555-0134.", "User asks to delete their phone number from memory."),
    ("User lived in Paris in 2010.", "User asks to forget that they lived in Paris."),
    ("Jonas wandert gern in den Alpen.", "Bitte vergiss, dass Jonas gern in den Alpen wandert."),
    ("A Lucía le gusta el senderismo.", "Lucía pide olvidar que le gusta el senderismo."),
    ("Léa habite à Lyon.", "Léa demande d'oublier qu'elle habite à Lyon."),
    ("用户喜欢徒步。", "用户要求忘记他喜欢徒步。"),
]
CARELESS = [
    ("User lives in Oslo.", HIKING),
    ("User is allergic to the rubber of hiking boots.", HIKING),
    ("User works at Bosch.", "User asks to forget that they worked at Siemens."),
    ("User's dog Rex is afraid of thunder.", "User asks to forget their dog's birthday."),
    ("Jonas wohnt in Bern.", "Bitte vergiss, dass Jonas gern wandert."),
    ("Tom lives in Oslo.", "Anna asks to forget that Anna lives in Bergen."),
    ("Lucía vive en Bilbao.", "Lucía pide olvidar que le gusta el senderismo."),
    ("用户住在上海。", "用户要求忘记他喜欢徒步。"),
    ("User works in Oslo.", "User asks to forget that they live in Oslo."),
    ("Tom lives in Oslo.", "User asks to forget that they live in Oslo."),
    ("User loves hiking in the Alps with Tom.", HIKING),
    ("User is allergic to peanuts, loves hiking.", HIKING),
    ("User does not like hiking.", HIKING),
    ("User hates hiking boots.", "User asks to forget that they love hiking boots."),
    ("User's phone number is 555-0134.", "User asks to delete their phone 555-0199 from memory."),
    ("Jonas arbeitet in Bern.", "Jonas bittet darum, zu vergessen, dass er in Bern wohnt."),
    ("Lucía trabaja en Bilbao.", "Lucía pide olvidar que vive en Bilbao."),
    ("Léa travaille à Lyon.", "Léa demande d'oublier qu'elle habite à Lyon."),
    ("用户在上海工作。", "用户要求忘记他住在上海。"),
]


@pytest.mark.parametrize(("old", "fact"), NAMED)
@pytest.mark.parametrize("attribute", [None, "request", "instruction"])
def test_a_request_deletes_the_memory_it_names(old: str, fact: str, attribute: str | None) -> None:
    slot = attribute and f"user · {attribute}"
    assert objection(Replacement(old, None, fact, old_slot="user · x", fact_slot=slot)) is None
    assert objection(Replacement(old, None, fact, fact_slot=slot)) is None


@pytest.mark.parametrize(("old", "fact"), CARELESS)
@pytest.mark.parametrize("attribute", [None, "request"])
def test_a_request_deletes_nothing_else(old: str, fact: str, attribute: str | None) -> None:
    slot = attribute and f"user · {attribute}"
    assert objection(Replacement(old, None, fact, old_slot="user · x", fact_slot=slot)) is not None


def test_a_request_names_a_value_by_its_slot() -> None:
    request = "User asks to forget where they live."
    slot = "user · residence"
    change = Replacement("User lives in Oslo.", None, request, old_slot=slot, fact_slot=slot)
    assert objection(change) is None
    with_more = replace(change, old="User lives in Oslo with two cats.")
    refused = objection(with_more)
    assert refused is not None
    assert refused.values == ("two cats",)


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("User is allergic to peanuts, loves hiking.", "User loves sailing.", HIKING),
        ("User loves hiking and the opera.", "User loves theatre.", HIKING),
        ("Jonas wandert und singt gern.", "Jonas malt gern.", "Vergiss, dass Jonas gern wandert."),
        ("A Lucía le gusta nadar y leer.", "A Lucía le gusta.", "Lucía pide olvidar que lee."),
    ],
)
def test_an_update_for_a_request_drops_only_what_it_names(old: str, new: str, fact: str) -> None:
    assert objection(Replacement(old, new, fact)) is not None


def applied(
    outcome: Outcome, *, text: str = HIKING, old: str = "User loves hiking.", infer: bool = True
) -> tuple[Change, Memory]:
    """The change by a decision on the request, and the stored memory after it."""
    stored = replace(active_memory(11, SCOPE, old, THEN), subject="user", attribute="likes")
    memories = ScopeMemories.of(SCOPE, [stored])
    fact = Fact(HIKING, Source(event=0, message=0), subject="user", attribute="request")
    write = Write(
        position=0,
        fact=fact,
        outcome=outcome,
        text=text,
        reason="Decided.",
        target=stored.id if outcome is not Outcome.ADD else None,
        new_id=UUID(int=12),
        vector=as_vector((1.0, 0.0)),
        fact_vector=as_vector((1.0, 0.0)),
        event=replace(EVENT, options=AddOptions(infer=infer)),
        said_at=NOW,
    )
    [change] = apply_writes([write], memories)
    assert infer is (UUID(int=12) not in memories.by_id)
    return change, memories.by_id[stored.id]


@pytest.mark.parametrize("outcome", [Outcome.DELETE, Outcome.UPDATE])
def test_a_request_is_carried_out(outcome: Outcome) -> None:
    change, memory = applied(outcome)
    assert (change.outcome, memory.state) == (Outcome.DELETE, "RETIRED")


def test_an_update_may_keep_the_rest() -> None:
    change, memory = applied(
        Outcome.UPDATE, text="User loves sailing.", old="User loves hiking and sailing."
    )
    assert (change.outcome, memory.text) == (Outcome.UPDATE, "User loves sailing.")


def test_a_request_that_names_no_memory_is_not_stored() -> None:
    change, memory = applied(Outcome.ADD)
    assert (change.outcome, change.memory_id, memory.state) == (Outcome.NOOP, None, "ACTIVE")
    assert "not stored" in change.reason


def test_a_withheld_request_is_suggested_and_not_stored() -> None:
    change, memory = applied(Outcome.DELETE, old="User lives in Oslo.")
    assert (change.outcome, memory.state) == (Outcome.NOOP, "ACTIVE")
    assert change.suggestion is not None
    assert "withheld" in change.reason


def test_a_request_is_stored_as_said_if_nothing_is_extracted() -> None:
    change, _ = applied(Outcome.ADD, infer=False)
    assert change.outcome is Outcome.ADD


TOGETHER = [
    ("User loves hiking.", HIKING),
    ("Maya lives in Oslo.", "Maya asks Memlane to forget that she lives in Oslo."),
    ("User's locker code is 4411.", "User asks to forget their locker code."),
    ("Jonas wandert gern.", "Bitte vergiss, dass Jonas gern wandert."),
    ("A Lucía le gusta el senderismo.", "Lucía pide olvidar que le gusta el senderismo."),
    ("Léa habite à Lyon.", "Léa demande d'oublier qu'elle habite à Lyon."),
    ("用户喜欢徒步。", "用户要求忘记他喜欢徒步。"),
]
APART = [
    ("User loves hiking with Tom.", HIKING),
    ("User lives in Bergen.", "User asks to forget that they live in Oslo."),
    ("Tom loves hiking.", HIKING),
    ("Jonas wandert gern mit Anna.", "Bitte vergiss, dass Jonas gern wandert."),
    ("Lucía vive en Bilbao.", "Lucía pide olvidar que le gusta el senderismo."),
    ("Léa habite à Lyon.", "Léa demande d'oublier qu'elle habite à Lille."),
    ("用户住在上海。", "用户要求忘记他喜欢徒步。"),
    ("User is allergic to peanuts.", "User wants their peanut allergy not to be forgotten."),
]


def in_one_batch(
    *texts: str, infer: bool = True, outcome: Outcome = Outcome.ADD
) -> tuple[list[Change], list[str]]:
    """The changes by facts that no model compared, and the texts that stand."""
    memories = ScopeMemories.of(SCOPE, [])
    writes = [
        Write(
            position=position,
            fact=Fact(text, Source(event=0, message=position)),
            outcome=outcome,
            text=text,
            reason="Nothing similar is stored.",
            target=None,
            new_id=UUID(int=20 + position),
            vector=as_vector((1.0, 0.0)),
            fact_vector=as_vector((1.0, 0.0)),
            event=replace(EVENT, options=AddOptions(infer=infer)),
            said_at=NOW,
        )
        for position, text in enumerate(texts)
    ]
    changes = apply_writes(writes, memories)
    standing = [memory.text for memory in memories.by_id.values() if memory.state == "ACTIVE"]
    return changes, standing


@pytest.mark.parametrize(("fact", "request_text"), TOGETHER)
def test_a_request_deletes_a_fact_of_its_own_batch(fact: str, request_text: str) -> None:
    changes, standing = in_one_batch(fact, request_text)
    assert standing == []
    assert [change.outcome for change in changes] == [Outcome.ADD, Outcome.DELETE]
    assert changes[0].memory_id == changes[1].memory_id
    assert "forget" in changes[1].reason


@pytest.mark.parametrize(("fact", "request_text"), APART)
def test_a_request_leaves_every_other_fact_of_its_batch(fact: str, request_text: str) -> None:
    changes, standing = in_one_batch(fact, request_text)
    assert fact in standing
    assert Outcome.DELETE not in [change.outcome for change in changes]


def test_a_request_does_not_reach_what_is_said_after_it() -> None:
    assert in_one_batch(HIKING, "User loves hiking.")[1] == ["User loves hiking."]
    said_again = in_one_batch("User loves hiking.", HIKING, "User loves hiking.")
    assert said_again[1] == ["User loves hiking."]


def test_a_request_that_names_two_facts_deletes_none() -> None:
    facts = ("User's address is Mill Lane 12.", "User's address is Station Road 4.")
    changes, standing = in_one_batch(*facts, "User asks to forget their address.")
    assert standing == list(facts)
    assert changes[-1].outcome is Outcome.NOOP


def test_a_request_contradicts_nothing() -> None:
    request = "User asks to forget that they live in Oslo."
    first, other = (
        Statement(text, "user · residence", None, Role.USER, NOW, None, UUID(int=event))
        for event, text in enumerate(("User lives in Oslo.", request))
    )
    assert not undecided(first, other)
    assert undecided(first, replace(other, text="User lives in Bern."))


def test_a_request_as_said_deletes_nothing() -> None:
    assert in_one_batch("User loves hiking.", HIKING, infer=False)[1] == [
        "User loves hiking.",
        HIKING,
    ]


def test_several_requests_of_a_batch_are_carried_out() -> None:
    hobbies = ("hiking", "sailing", "rowing", "chess", "judo")
    facts = [f"User loves {hobby}." for hobby in hobbies]
    requests = [f"User asks to forget that they love {hobby}." for hobby in hobbies]
    assert in_one_batch(*facts, *requests)[1] == []


@pytest.mark.parametrize(
    ("memory", "request_text"),
    [
        ("User lives in Oslo.", "User asks to forget that Anna lives in Oslo."),
        ("User loves hiking.", "User asks to forget that their sister loves hiking."),
        ("User loves hiking.", "User asks to forget that their dog loves hiking."),
        (
            "Nutzer ist gegen Nüsse allergisch.",
            "Nutzer bittet, zu vergessen, dass sein Kind gegen Nüsse allergisch ist.",
        ),
        ("Lucía juega al tenis.", "Lucía pide olvidar que su hijo juega al tenis."),
        ("Léa habite à Lyon.", "Léa demande d'oublier que sa sœur habite à Lyon."),
        ("User lives in Oslo.", "User asks to forget that they used to live in Oslo."),
    ],
)
def test_a_request_that_says_more_deletes_nothing(memory: str, request_text: str) -> None:
    delete = Replacement(old=memory, new=None, fact=request_text, similarity=0.7)
    assert objection(delete) is not None


def test_an_update_for_a_request_does_not_deny_the_rest() -> None:
    old, new = "User loves hiking and sailing.", "User does not love sailing."
    request_text = "User asks to forget that they love hiking."
    assert objection(Replacement(old=old, new=new, fact=request_text, similarity=0.7)) is not None
