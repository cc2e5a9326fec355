"""Decisions of `local/rules`: the outcome of each fact, given the stored memories."""

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.adapters.model_rules import RulesModel
from pipeline.adapters.model_rules.statements import Slot, slots_of
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.messages import Source

ADD, UPDATE, DELETE, NOOP = Outcome.ADD, Outcome.UPDATE, Outcome.DELETE, Outcome.NOOP


def stored(*texts: str) -> list[Neighbour]:
    # MiniLM gives "likes X" and "dislikes X" about this similarity, so it must not decide alone.
    return [Neighbour(UUID(int=at + 1), text, 0.84) for at, text in enumerate(texts)]


async def decide(facts: list[str], memories: list[Neighbour]) -> tuple[Decision, ...]:
    new = [Fact(text, Source(0, 0)) for text in facts]
    return (await RulesModel().decide(new, memories, Instructions())).value


def applied(decisions: tuple[Decision, ...], memories: list[Neighbour]) -> list[str]:
    """Texts of the store after the decisions are applied in order, as the apply stage does."""
    store: dict[UUID, str] = {n.memory_id: n.text for n in memories}
    for decision in decisions:
        if decision.outcome is ADD:
            store[UUID(int=1000 + decision.fact)] = decision.text or ""
        elif decision.outcome is UPDATE and decision.memory_id:
            store[decision.memory_id] = decision.text or ""
        elif decision.outcome is DELETE and decision.memory_id:
            del store[decision.memory_id]
    return list(store.values())


# Words that stand where a place, employer, origin or address would, but are none: they replace no
# memory.
NOT_OF_KIND = [
    ("User lives in Berlin", "User lives in a small flat with two cats"),
    ("User lives in Berlin", "User moved to a bigger flat in the week of 2026-03-02"),
    ("User lives in Berlin", "User lives in constant fear of their boss"),
    ("User lives in Berlin", "User lives in peace"),
    ("User lives in Berlin", "User lives in the couch"),
    ("User works as a nurse at Apple", "User works at home on 2026-11-22"),
    ("User works as a nurse at Apple", "User works at night mostly"),
    ("User works at Apple", "User works at weekends"),
    ("User works in finance", "User works in silence"),
    ("User is from Ghana", "User is from a small village"),
    ("User's email is eva@example.org", "User's email is on the form"),
]


@pytest.mark.parametrize(("memory", "fact"), NOT_OF_KIND)
async def test_a_value_of_another_kind_replaces_nothing(memory: str, fact: str) -> None:
    (decision,) = await decide([fact], stored(memory))
    assert (decision.outcome, decision.text) == (ADD, fact)
    assert "nothing stored yet" not in decision.reason


@pytest.mark.parametrize(
    "place", ["Munich", "the Netherlands", "downtown Leeds", "\u0141\u00f3d\u017a"]
)
async def test_a_place_replaces_a_place(place: str) -> None:
    (decision,) = await decide([f"User lives in {place}"], stored("User lives in Berlin"))
    assert decision.outcome is UPDATE


ONE_TO_ONE = [
    # stored memory, fact, outcome, words of the reason
    ("User lives in Berlin", "User lives in Munich", UPDATE,
     "residence changed from Berlin to Munich"),
    ("The user resides in Berlin.", "User lives in Berlin", NOOP, "already known"),
    ("Lives in Berlin", "User lives in Munich (moved from Berlin on 2026-03-02)", UPDATE,
     "residence"),
    ("User lives in Berlin, Germany", "User lives in Berlin", NOOP, "already known"),
    ("User's name is Nadia", "User's name is Nadja", UPDATE, "name changed from Nadia to Nadja"),
    ("Name is Nadia", "User's name is Nadia", NOOP, "already known"),
    ("User works as a nurse at Charité", "User works as a teacher at Greenwood", UPDATE,
     "job changed from nurse to teacher"),
    ("User works as a nurse at Charité", "User works at Charité", NOOP, "already known"),
    ("User works at Siemens", "User no longer works at Siemens", UPDATE, "no longer true"),
    ("User works at Charité", "User is a nurse", ADD, "nothing stored yet about the job"),
    ("User works as a nurse at Charité", "User is retired", UPDATE, "no longer true"),
    ("User's favorite color is green", "User's favourite colour is blue", UPDATE,
     "favourite colour changed from green to blue"),
    ("User's favourite colour is green", "User's favourite food is ramen", ADD,
     "nothing stored yet"),
    ("User is vegetarian", "User is vegan", UPDATE, "diet changed from vegetarian to vegan"),
    ("User is vegetarian", "User is no longer vegetarian", UPDATE, "no longer true"),
    ("User is vegetarian", "User eats meat again", UPDATE, "diet changed"),
    ("User does not eat meat", "User eats meat again", UPDATE, "true again"),
    ("User is single", "User is married to Karl", UPDATE, "relationship status changed"),
    ("User is 34 years old", "User is 35 years old", UPDATE, "age changed"),
    ("User drives a Fiat", "User drives a Volvo", UPDATE, "car changed from Fiat to Volvo"),
    ("User likes jazz", "User likes jazz", NOOP, "already known"),
    ("User likes jazz", "User loves jazz", NOOP, "already known"),
    ("User likes jazz", "User likes opera", ADD, "not known yet"),
    ("User likes jazz", "User dislikes jazz", UPDATE, "no longer true"),
    ("User likes jazz", "User no longer likes jazz", UPDATE, "no longer true"),
    ("User hates jazz", "User likes jazz", UPDATE, "true again"),
    ("User likes pizza", "User does not like pizza with pineapple", ADD, "not known yet"),
    ("User likes cricket", "User likes playing cricket with friends", UPDATE, "adds detail"),
    ("User likes playing cricket with friends", "User likes cricket", NOOP, "already known"),
    ("User speaks German", "User speaks French", ADD, "not known yet"),
    ("User owns a red Tesla", "User sold the Tesla", UPDATE, "no longer true"),
    ("User drives a Tesla", "User sold their Tesla in 2026-02", UPDATE, "no longer true"),
    ("User has a dog", "User has a dog named Rollo", UPDATE, "adds detail"),
    ("User has a dog named Rollo", "User has a dog named Pip", ADD, "not known yet"),
    ("User has a dog named Rollo", "Rollo died on 2026-03-08", UPDATE, "no longer true"),
    ("User has a sister", "User's sister is Ines", UPDATE, "adds detail"),
    ("User's husband is Karl", "User's husband is Emil", UPDATE, "husband changed"),
    ("User's doctor is Dr Hale", "User's doctor is Dr Hall", UPDATE, "doctor changed"),
    ("User's friend is Karl", "User's friend is Emil", ADD, "not known yet"),
    ("User plans to fly to Oslo on 2026-03-13", "User plans to travel to Oslo on 2026-03-20",
     UPDATE,
     "date of the plan changed from 2026-03-13 to 2026-03-20"),
    ("User plans to fly to Oslo on 2026-03-13", "User cancelled their trip to Oslo", UPDATE, ""),
    ("Ines lives in Porto", "User lives in Turin", ADD, "residence"),
    ("User likes jazz", "User asks to forget: likes jazz", DELETE, "asked to forget"),
    ("User loves live jazz", "User asks to forget: jazz", DELETE, "asked to forget"),
    ("Nadia loves jazz", "Nadia asks to forget: likes jazz", DELETE, "asked to forget"),
    ("User dislikes jazz", "User asks to forget: likes jazz", NOOP, "nothing stored matches"),
    ("User likes opera", "User asks to forget: likes jazz", NOOP, "nothing stored matches"),
    ("User's locker code is 4411", "The sky was odd", ADD, "not known yet"),
]  # fmt: skip


@pytest.mark.parametrize(("memory", "fact", "outcome", "reason"), ONE_TO_ONE)
async def test_a_fact_meets_one_memory(
    memory: str, fact: str, outcome: Outcome, reason: str
) -> None:
    memories = stored(memory)
    (decision,) = await decide([fact], memories)
    assert decision.outcome is outcome, decision.reason
    assert reason in decision.reason
    assert decision.memory_id == (None if outcome is ADD or "nothing" in reason else UUID(int=1))
    assert decision.text == (fact if outcome in (ADD, UPDATE) else None)


async def test_the_halves_of_a_job_are_joined() -> None:
    memories = stored("User works as a nurse")
    decisions = await decide(["User works at Charité"], memories)
    assert applied(decisions, memories) == ["User works as a nurse at Charité"]


async def test_a_promotion_keeps_the_employer() -> None:
    memories = stored("User works as a nurse at Charité")
    decisions = await decide(["User works as team lead (promoted)"], memories)
    assert applied(decisions, memories) == ["User works as team lead at Charité (promoted)"]


async def test_quitting_a_job_says_which_one_it_was() -> None:
    memories = stored("User works as a nurse at Charité")
    decisions = await decide(["User quit their job"], memories)
    assert applied(decisions, memories) == ["User no longer works as a nurse at Charité"]


async def test_a_relative_is_the_same_person_by_name() -> None:
    memories = stored("User's sister is Ines", "Ines lives in Porto")
    decisions = await decide(["User's sister lives in Braga"], memories)
    assert decisions[0].memory_id == UUID(int=2)
    two_sisters = [*memories, *stored("x", "y", "User's sister is Eva")[2:]]
    assert (await decide(["User's sister lives in Braga"], two_sisters))[0].outcome is ADD


BATCHES = [
    # stored memories, facts in the order of the conversation, outcomes, the store afterwards
    ([], ["User lives in Ghent", "User lives in Turin"], [NOOP, ADD], ["User lives in Turin"]),
    (["User lives in Oslo"], ["User lives in Ghent", "User lives in Turin"], [NOOP, UPDATE],
     ["User lives in Turin"]),
    (["User lives in Oslo"], ["User lives in Ghent", "User lives in Oslo"], [NOOP, NOOP],
     ["User lives in Oslo"]),
    (["User lives in Oslo"], ["User no longer lives in Oslo", "User lives in Turin"], [NOOP,
     UPDATE],
     ["User lives in Turin"]),
    ([], ["User likes tea", "User likes tea"], [ADD, NOOP], ["User likes tea"]),
    ([], ["User likes tea", "User hates tea"], [NOOP, ADD], ["User hates tea"]),
    ([], ["User has a cat", "User has a cat named Miso"], [NOOP, ADD],
     ["User has a cat named Miso"]),
    ([], ["User works as a nurse", "User works at Charité"], [NOOP, ADD],
     ["User works as a nurse at Charité"]),
    (["User likes tea"], ["User hates tea", "User asks to forget: likes tea"], [UPDATE, NOOP],
     ["User hates tea"]),
    (["User likes tea"], ["User asks to forget: likes tea", "User likes tea"], [DELETE, ADD],
     ["User likes tea"]),
    ([], ["User likes tea", "User asks to forget: likes tea"], [NOOP, NOOP], []),
    (["User drives a Fiat"], ["User sold their Fiat", "User drives a Volvo"], [NOOP, UPDATE],
     ["User drives a Volvo"]),
    (["User lives in Oslo", "User likes tea"], ["User lives in Ghent", "User likes jazz"],
     [UPDATE, ADD], ["User lives in Ghent", "User likes tea", "User likes jazz"]),
]  # fmt: skip


@pytest.mark.parametrize(("memories", "facts", "outcomes", "after"), BATCHES)
async def test_of_two_facts_in_one_slot_the_later_holds(
    memories: list[str], facts: list[str], outcomes: list[Outcome], after: list[str]
) -> None:
    neighbours = stored(*memories)
    decisions = await decide(facts, neighbours)
    assert [decision.outcome for decision in decisions] == outcomes
    assert applied(decisions, neighbours) == after


async def test_a_superseded_fact_says_by_what_and_a_repeat_says_of_which() -> None:
    first, second, third = await decide(
        ["User lives in Ghent", "User lives in Turin", "User lives in Turin"], []
    )
    assert first.reason == "superseded later in the same batch: User lives in Turin"
    assert (second.outcome, third.reason) == (ADD, "same as fact 1 of this batch")
    assert (first.memory_id, third.memory_id) == (None, None)


async def test_similarity_only_breaks_ties() -> None:
    near, far = UUID(int=7), UUID(int=8)
    memories = [Neighbour(far, "User likes jazz", 0.2), Neighbour(near, "User loves jazz", 0.9)]
    assert (await decide(["User hates jazz"], memories))[0].memory_id == near
    unlike = [Neighbour(near, "User likes tea", 0.99)]
    assert (await decide(["User likes opera"], unlike))[0].outcome is ADD


SLOTS = [
    ("The user is living in Berlin with a cat.", Slot("user", "lives_in", "Berlin")),
    ("User cannot stand coriander", Slot("user", "likes", "coriander", positive=False)),
    ("User can no longer stand techno", Slot("user", "likes", "techno", positive=False)),
    ("Ines is married to Karl", Slot("ines", "relationship_status", "married to Karl")),
    ("User's favorite color is teal", Slot("user", "favourite_colour", "teal")),
    ("User is not vegan any more", Slot("user", "follows_diet", "vegan", positive=False)),
    ("User plans to visit Rome in 2026-06", Slot("user", "plans", "travel to Rome",
     when="in 2026-06")),
    ("Quite a day", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "slot"), SLOTS)
def test_a_sentence_is_read_as_its_slot(text: str, slot: Slot | None) -> None:
    assert next(iter(slots_of(text)), None) == slot


def test_a_job_has_two_slots() -> None:
    assert [(s.relation, s.value) for s in slots_of("User works as a nurse at Charité")] == [
        ("works_as", "a nurse"),
        ("works_at", "Charité"),
    ]


SENTENCES = st.one_of(
    st.sampled_from([
        "User lives in Berlin", "User lives in Munich", "User no longer lives in Berlin",
        "User likes tea", "User hates tea", "User no longer likes tea", "User likes green tea",
        "User asks to forget: likes tea", "User asks to forget: tea", "User works as a nurse",
        "User works at Siemens", "User quit their job", "User is retired", "User drives a Tesla",
        "User sold their Tesla", "User has a dog", "User has a dog named Rollo", "Rollo died",
        "User is vegan", "User eats meat again", "User works as a chef at Siemens (promoted)",
        "User plans to fly to Oslo on 2026-03-13", "User plans to fly to Oslo on 2026-03-14",
        "User's sister is Ines", "Ines lives in Porto", "User's sister lives in Oslo",
    ]),
    st.text(max_size=60),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(SENTENCES, max_size=6), st.lists(SENTENCES, max_size=6, unique=True))
async def test_every_batch_gets_one_decision_a_fact_and_changes_a_memory_at_most_once(
    facts: list[str], memories: list[str]
) -> None:
    neighbours = stored(*memories)
    decisions = await decide(facts, neighbours)
    assert [decision.fact for decision in decisions] == list(range(len(facts)))
    targets = [d.memory_id for d in decisions if d.memory_id]
    assert set(targets) <= {n.memory_id for n in neighbours}
    changed = Counter(d.memory_id for d in decisions if d.outcome in (UPDATE, DELETE))
    assert all(target is not None and count == 1 for target, count in changed.items())
    assert all((d.text is not None) == (d.outcome in (ADD, UPDATE)) for d in decisions)
    assert all(decision.reason for decision in decisions)
    assert decisions == await decide(facts, neighbours)


async def test_numbers_that_differ_in_a_repeated_digit_are_different() -> None:
    fact = Fact("User owns a boat called Nr 1000", Source(0, 0))
    known = [Neighbour(UUID(int=1), "User owns a boat called Nr 100", 0.99)]
    decided = await RulesModel().decide([fact], known, Instructions())
    assert decided.value[0].outcome is not Outcome.NOOP
