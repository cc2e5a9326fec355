"""Reconciliation: every rule of pipeline/domain/consolidation/reconcile.py, and its invariants."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.consolidation.reconcile import apply_writes
from pipeline.domain.consolidation.retire_limit import RetireLimit
from pipeline.domain.events import AddOptions, Event
from pipeline.domain.facts import Fact, Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.messages import Source
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.domain.vectors import as_vector
from pipeline.domain.writes import ScopeMemories, Write
from pipeline.text.equality import text_hash
from tests.support.memories import active_memory

SCOPE = Scope(ProjectId(UUID(int=1)), user_id="maya")
EVENT = Event(UUID(int=2), seq=1, options=AddOptions(), messages=())
THEN, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
OLD, OTHER = UUID(int=11), UUID(int=12)
GONE = "Maya no longer lives in Bern."


def memory(text: str = "Maya lives in Bern.", number: int = 11, **values: object) -> Memory:
    stored = active_memory(number, SCOPE, text, THEN)
    return replace(stored, **values)  # type: ignore[arg-type]


def write(
    outcome: Outcome,
    text: str = "Maya lives in Porto.",
    target: UUID | None = None,
    number: int = 0,
    fact_text: str | None = None,
    **values: object,
) -> Write:
    planned = Write(
        position=number,
        fact=Fact(fact_text or text, Source(event=0, message=3)),
        outcome=outcome,
        text=text,
        reason="She said so.",
        target=target,
        new_id=UUID(int=100 + number),
        vector=as_vector((1.0, 0.0)),
        fact_vector=as_vector((0.0, 1.0)),
        event=EVENT,
        said_at=NOW,
    )
    return replace(planned, **values)  # type: ignore[arg-type]


def with_options(**values: object) -> Event:
    return replace(EVENT, options=AddOptions(**values))  # type: ignore[arg-type]


def scope_memories(*stored: Memory) -> ScopeMemories:
    return ScopeMemories.of(SCOPE, stored)


# ── each outcome without a conflict ──────────────────────────────────────────────────────────────


def test_add_creates_version_1_with_the_options_of_the_event() -> None:
    event = with_options(
        metadata={"trip": "lisbon"}, immutable=True, expiration_date=date(2027, 1, 1)
    )
    [change] = apply_writes([write(Outcome.ADD, event=event)], scope_memories())
    after = change.after
    assert after is not None
    assert (change.outcome, change.before, change.memory_id) == (Outcome.ADD, None, UUID(int=100))
    assert (after.id, after.version, after.state) == (UUID(int=100), 1, "ACTIVE")
    assert (after.lane_id, after.scope) == (SCOPE.lane_id, SCOPE)
    assert after.metadata == {"trip": "lisbon"}
    assert after.immutable
    assert after.expiration_date == date(2027, 1, 1)
    assert (after.event_id, after.message_ordinal, after.valid_from) == (EVENT.id, 3, NOW)


def test_two_memories_of_one_event_do_not_share_their_metadata() -> None:
    event = with_options(metadata={"trip": "lisbon"})
    writes = [
        write(Outcome.ADD, "a", number=0, event=event),
        write(Outcome.ADD, "b", number=1, event=event),
    ]
    first, second = apply_writes(writes, scope_memories())
    assert first.after is not None
    assert second.after is not None
    assert first.after.metadata is not second.after.metadata


def test_update_keeps_the_id_and_increments_the_version() -> None:
    [change] = apply_writes([write(Outcome.UPDATE, target=OLD)], scope_memories(memory(version=4)))
    assert change.before is not None
    assert change.after is not None
    assert (change.outcome, change.memory_id) == (Outcome.UPDATE, OLD)
    assert (change.before.text, change.before.version) == ("Maya lives in Bern.", 4)
    assert (change.after.text, change.after.version) == ("Maya lives in Porto.", 5)
    assert (change.after.event_id, change.after.valid_from) == (EVENT.id, NOW)


def test_update_merges_metadata_and_keeps_an_expiration_that_the_event_does_not_set() -> None:
    stored = memory(metadata={"a": 1, "b": 1}, expiration_date=date(2027, 1, 1))
    event = with_options(metadata={"b": 2})
    [change] = apply_writes(
        [write(Outcome.UPDATE, target=OLD, event=event)], scope_memories(stored)
    )
    assert change.after is not None
    assert change.after.metadata == {"a": 1, "b": 2}
    assert change.after.expiration_date == date(2027, 1, 1)


def test_update_sets_a_new_expiration() -> None:
    event = with_options(expiration_date=date(2028, 1, 1))
    [change] = apply_writes(
        [write(Outcome.UPDATE, target=OLD, event=event)], scope_memories(memory())
    )
    assert change.after is not None
    assert change.after.expiration_date == date(2028, 1, 1)


def test_delete_retires_the_memory_and_keeps_its_text_for_the_history() -> None:
    memories = scope_memories(memory())
    [change] = apply_writes([write(Outcome.DELETE, GONE, target=OLD)], memories)
    assert change.after is not None
    assert (change.outcome, change.memory_id) == (Outcome.DELETE, OLD)
    assert (change.after.state, change.after.version) == ("RETIRED", 2)
    assert change.after.text == "Maya lives in Bern."
    assert memories.active(OLD) is None
    assert memories.by_text == {}


def test_noop_changes_nothing_and_names_its_memory() -> None:
    memories = scope_memories(memory())
    noop = write(Outcome.NOOP, "She is in Bern.", target=OLD, said_at=THEN)
    [change] = apply_writes([noop], memories)
    assert (change.outcome, change.memory_id) == (Outcome.NOOP, OLD)
    assert (change.before, change.after) == (memory(), None)
    assert (change.text, change.reason) == ("She is in Bern.", "She said so.")
    assert memories.by_id == {OLD: memory()}


def test_a_noop_of_a_memory_that_the_batch_reworded_adds_its_fact() -> None:
    stored = scope_memories(memory("Maya drinks tea."))
    changes = apply_writes(
        [
            write(Outcome.UPDATE, "Maya drinks rum.", OLD, number=0),
            write(Outcome.NOOP, "Maya drinks tea.", OLD, number=1),
            write(Outcome.NOOP, "Maya drinks rum.", OLD, number=2),
        ],
        stored,
    )
    assert [change.outcome for change in changes] == [Outcome.UPDATE, Outcome.ADD, Outcome.NOOP]
    assert changes[1].text == "Maya drinks tea."


def test_noop_without_a_memory_stays_a_noop() -> None:
    [change] = apply_writes([write(Outcome.NOOP, target=None)], scope_memories(memory()))
    assert (change.outcome, change.memory_id, change.after) == (Outcome.NOOP, None, None)


# ── the ledger has changed since the model read it ───────────────────────────────────────────────


@pytest.mark.parametrize("outcome", [Outcome.UPDATE, Outcome.DELETE, Outcome.NOOP])
@pytest.mark.parametrize("stored", [(), (memory(state="RETIRED"),)], ids=["unknown", "retired"])
def test_a_fact_whose_memory_is_deleted_is_added(
    outcome: Outcome, stored: tuple[Memory, ...]
) -> None:
    planned = write(outcome, "Reworded.", target=OLD, fact_text="As it was said.")
    [change] = apply_writes([planned], scope_memories(*stored))
    assert change.outcome is Outcome.ADD
    assert change.memory_id == planned.new_id
    assert change.text == "As it was said."
    assert change.reason == "She said so. (Its memory is gone.)"


@pytest.mark.parametrize("outcome", [Outcome.UPDATE, Outcome.DELETE])
def test_a_change_of_an_immutable_memory_is_added_as_a_memory(outcome: Outcome) -> None:
    memories = scope_memories(memory(immutable=True))
    planned = write(outcome, "Reworded.", target=OLD, fact_text="As it was said.")
    [change] = apply_writes([planned], memories)
    assert (change.outcome, change.text) == (Outcome.ADD, "As it was said.")
    assert change.reason == "She said so. (Its memory is immutable.)"
    assert memories.active(OLD) == memory(immutable=True)
    assert memories.active(planned.new_id) is not None


def test_a_noop_of_an_immutable_memory_is_a_noop() -> None:
    [change] = apply_writes(
        [write(Outcome.NOOP, target=OLD)], scope_memories(memory(immutable=True))
    )
    assert (change.outcome, change.memory_id) == (Outcome.NOOP, OLD)


@pytest.mark.parametrize(
    "text", ["Maya lives in Bern.", "maya  LIVES in bern", " Maya lives in Bern"]
)
def test_adding_a_stored_text_is_a_noop_that_names_its_memory(text: str) -> None:
    [change] = apply_writes([write(Outcome.ADD, text)], scope_memories(memory()))
    assert (change.outcome, change.memory_id, change.after) == (Outcome.NOOP, OLD, None)
    assert change.reason == "She said so. (This text is already stored.)"


def test_an_update_to_the_text_of_another_memory_merges_the_memory_into_it() -> None:
    memories = scope_memories(memory(), memory("Maya lives in Porto.", 12))
    [change] = apply_writes([write(Outcome.UPDATE, target=OLD)], memories)
    assert change.after is not None
    assert (change.outcome, change.memory_id) == (Outcome.DELETE, OLD)
    assert change.reason == f"She said so. (Memory {OTHER} has this text.)"
    assert (change.after.text, change.after.superseded_by) == ("Maya lives in Bern.", OTHER)
    assert memories.active(OLD) is None


def test_two_memories_that_a_fact_gives_one_text_become_one() -> None:
    memories = scope_memories(memory(), memory("Maya lives in Bern now.", 12))
    changes = apply_writes(
        [write(Outcome.UPDATE, target=OLD), write(Outcome.UPDATE, target=OTHER)], memories
    )
    assert [change.outcome for change in changes] == [Outcome.UPDATE, Outcome.DELETE]
    assert [m.text for m in memories.by_id.values() if m.state == "ACTIVE"] == [
        "Maya lives in Porto."
    ]


def test_a_pinned_memory_is_merged_into_none() -> None:
    memories = scope_memories(memory(pinned=True), memory("Maya lives in Porto.", 12))
    [change] = apply_writes([write(Outcome.UPDATE, target=OLD)], memories)
    assert (change.outcome, change.memory_id, change.after) == (Outcome.NOOP, OTHER, None)


def test_a_pinned_memory_stays_if_an_earlier_decision_rewords_the_memory_with_its_new_text() -> (
    None
):
    pinned, holder = memory(pinned=True), memory("Maya lives in Porto.", 12)
    memories = scope_memories(pinned, holder)
    reworded = write(Outcome.UPDATE, "Maya lives in Porto with Jon.", target=OTHER)
    changes = apply_writes([reworded, write(Outcome.UPDATE, target=OLD)], memories)
    assert [change.outcome for change in changes] == [Outcome.UPDATE, Outcome.NOOP]
    assert memories.by_id[OLD] == pinned
    assert changes[1].suggestion is not None
    assert changes[1].suggestion.targets == ((OLD, pinned.version),)


def test_an_update_to_the_same_text_is_a_noop() -> None:
    planned = write(Outcome.UPDATE, "Maya lives in Bern.", target=OLD)
    [change] = apply_writes([planned], scope_memories(memory()))
    assert (change.outcome, change.memory_id) == (Outcome.NOOP, OLD)


@pytest.mark.parametrize("outcome", [Outcome.UPDATE, Outcome.DELETE, Outcome.NOOP])
def test_a_fact_of_a_deleted_memory_is_a_noop_if_its_text_is_stored(outcome: Outcome) -> None:
    planned = write(outcome, target=OLD)
    [change] = apply_writes([planned], scope_memories(memory("Maya lives in Porto.", 12)))
    assert (change.outcome, change.memory_id) == (Outcome.NOOP, OTHER)


def test_the_text_of_a_retired_memory_can_be_added_again() -> None:
    memories = scope_memories(memory(state="RETIRED"))
    [change] = apply_writes([write(Outcome.ADD, "Maya lives in Bern.")], memories)
    assert change.outcome is Outcome.ADD


# ── several writes in order ──────────────────────────────────────────────────────────────────────


def test_two_updates_of_one_memory_apply_in_order() -> None:
    memories = scope_memories(memory())
    writes = [
        write(Outcome.UPDATE, "Maya lives in Porto.", target=OLD, number=0),
        write(Outcome.UPDATE, "Maya lives in Oslo.", target=OLD, number=1),
    ]
    first, second = apply_writes(writes, memories)
    assert first.after is not None
    assert second.after is not None
    assert second.before == first.after
    assert (first.after.version, second.after.version) == (2, 3)
    assert memories.by_id[OLD].text == "Maya lives in Oslo."
    assert list(memories.by_text) == [text_hash("Maya lives in Oslo.")]


def test_an_update_after_a_delete_is_an_add() -> None:
    writes = [
        write(Outcome.DELETE, GONE, target=OLD, number=0),
        write(Outcome.UPDATE, target=OLD, number=1),
    ]
    changes = apply_writes(writes, scope_memories(memory()))
    assert [change.outcome for change in changes] == [Outcome.DELETE, Outcome.ADD]


def test_a_text_replaced_by_an_update_can_be_added_again() -> None:
    writes = [
        write(Outcome.UPDATE, "Maya lives in Porto.", target=OLD, number=0),
        write(Outcome.ADD, "Maya lives in Bern.", number=1),
    ]
    changes = apply_writes(writes, scope_memories(memory()))
    assert [change.outcome for change in changes] == [Outcome.UPDATE, Outcome.ADD]


def test_a_text_added_twice_is_stored_once() -> None:
    writes = [write(Outcome.ADD, number=0), write(Outcome.ADD, number=1)]
    changes = apply_writes(writes, scope_memories())
    assert [change.outcome for change in changes] == [Outcome.ADD, Outcome.NOOP]
    assert {change.memory_id for change in changes} == {UUID(int=100)}


def test_text_equality_ignores_case_white_space_and_the_final_full_stop() -> None:
    assert text_hash("Maya likes Jazz.") == text_hash("  maya likes\n jazz . ")
    assert text_hash("Maya likes jazz.") != text_hash("Maya likes jazz!")
    assert text_hash("STRASSE") == text_hash("straße")


# ── properties of any sequence ───────────────────────────────────────────────────────────────────

TEXTS = st.sampled_from(["a", "A.", "b", "c", "d"])


@st.composite
def _stored(draw: st.DrawFn) -> list[Memory]:
    texts = draw(st.lists(TEXTS, max_size=4, unique_by=text_hash))
    return [
        memory(
            text,
            number,
            immutable=draw(st.booleans()),
            state=draw(st.sampled_from(["ACTIVE", "ACTIVE", "RETIRED"])),
            version=draw(st.integers(1, 5)),
        )
        for number, text in enumerate(texts, start=11)
    ]


@st.composite
def _writes(draw: st.DrawFn) -> list[Write]:
    targets = st.none() | st.integers(10, 15).map(_uuid)
    return [
        write(
            draw(st.sampled_from(Outcome)),
            draw(TEXTS),
            draw(targets | st.integers(100, 103).map(_uuid)),
            number,
            fact_text=draw(TEXTS),
        )
        for number in range(draw(st.integers(0, 8)))
    ]


def _uuid(number: int) -> UUID:
    return UUID(int=number)


@given(_stored(), _writes())
def test_each_text_has_at_most_one_active_memory(stored: list[Memory], writes: list[Write]) -> None:
    memories = scope_memories(*stored)
    apply_writes(writes, memories)
    active = [m for m in memories.by_id.values() if m.state == "ACTIVE"]
    texts = Counter(text_hash(m.text) for m in active)
    assert all(count == 1 for count in texts.values())
    assert memories.by_text == {text_hash(m.text): m.id for m in active}


@given(_stored(), _writes())
def test_each_write_gives_one_change_in_order(stored: list[Memory], writes: list[Write]) -> None:
    changes = apply_writes(writes, scope_memories(*stored))
    assert [change.write for change in changes] == writes
    assert all(change.text and change.reason for change in changes)


@given(_stored(), _writes())
def test_the_changes_alone_reproduce_the_final_states(
    stored: list[Memory], writes: list[Write]
) -> None:
    memories = scope_memories(*stored)
    states = {m.id: m for m in stored}
    for change in apply_writes(writes, memories):
        if change.after is None:
            assert change.outcome is Outcome.NOOP
            if change.restated is not None:
                assert change.restated.version == states[change.restated.id].version
                states[change.restated.id] = change.restated
            continue
        assert change.before == states.get(change.after.id)
        assert change.after.version == (change.before.version if change.before else 0) + 1
        states[change.after.id] = change.after
    assert memories.by_id == states


# ── time: newer is what was said later ───────────────────────────────────────────────────────────

LATER = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [(Outcome.UPDATE, "Maya lives in Porto."), (Outcome.DELETE, "Maya does not live in Bern.")],
)
def test_an_older_statement_becomes_history_of_the_memory(outcome: Outcome, text: str) -> None:
    memories = scope_memories(memory(said_at=LATER))
    planned = write(outcome, text, target=OLD)
    [change] = apply_writes([planned], memories)
    assert (change.outcome, change.memory_id) == (Outcome.NOOP, OLD)
    assert change.reason == "She said so. (The memory was said later.)"
    assert memories.active(OLD) == memory(said_at=LATER)
    assert change.after is not None
    assert (change.after.state, change.after.superseded_by) == ("RETIRED", OLD)
    assert (change.after.text, change.after.said_at) == (text, NOW)


def test_an_older_statement_of_several_memories_is_stored_once() -> None:
    stored = (memory(said_at=LATER), memory("Maya has a home in Bern.", 12, said_at=LATER))
    memories = scope_memories(*stored)
    changes = apply_writes(
        [
            write(Outcome.UPDATE, target=OLD),
            write(Outcome.DELETE, "Maya does not live in Bern.", target=OTHER),
        ],
        memories,
    )
    assert [(change.outcome, change.memory_id) for change in changes] == [
        (Outcome.NOOP, OLD),
        (Outcome.NOOP, OTHER),
    ]
    assert [change.after.id for change in changes if change.after] == [UUID(int=100)]


@pytest.mark.parametrize("first", [Outcome.UPDATE, Outcome.ADD])
def test_an_older_statement_that_is_added_too_is_stored_once(first: Outcome) -> None:
    memories = scope_memories(memory(said_at=LATER))
    both = [write(Outcome.UPDATE, target=OLD), write(Outcome.ADD)]
    if first is Outcome.ADD:
        both.reverse()
    changes = apply_writes(both, memories)
    [stored] = [change.after for change in changes if change.after]
    assert (stored.state, stored.version, stored.superseded_by) == ("ACTIVE", 1, None)
    assert {change.outcome for change in changes} == {Outcome.ADD, Outcome.NOOP}


def test_an_older_statement_may_complete_a_memory_and_leaves_its_time() -> None:
    memories = scope_memories(memory(said_at=LATER, valid_from=LATER))
    text = "Maya lives in Bern with Tom."
    [change] = apply_writes([write(Outcome.UPDATE, text, target=OLD)], memories)
    assert change.after is not None
    assert (change.after.text, change.after.said_at, change.after.valid_from) == (
        text,
        LATER,
        LATER,
    )


def test_an_older_statement_of_another_matter_is_added() -> None:
    memories = scope_memories(memory(said_at=LATER))
    chess = write(Outcome.UPDATE, "Maya plays chess.", target=OLD)
    [change] = apply_writes([chess], memories)
    assert (change.outcome, change.text) == (Outcome.ADD, "Maya plays chess.")
    assert memories.active(OLD) == memory(said_at=LATER)


def test_a_repeat_moves_the_time_of_its_memory_so_that_older_statements_yield() -> None:
    memories = scope_memories(memory())
    repeat = write(Outcome.NOOP, "She is in Bern.", target=OLD, said_at=LATER)
    older = write(Outcome.UPDATE, "Maya lives in Porto.", target=OLD, number=1)
    first, second = apply_writes([repeat, older], memories)
    assert first.restated == memory(said_at=LATER)
    assert (second.outcome, second.memory_id) == (Outcome.NOOP, OLD)
    assert memories.by_id[OLD].text == "Maya lives in Bern."


# ── conservation: what would lose something is withheld ──────────────────────────────────────────


def test_an_update_that_drops_a_value_is_withheld_and_its_fact_added() -> None:
    stored = memory("Maya lives in Bern with Tom.", version=4)
    memories = scope_memories(stored)
    [change] = apply_writes([write(Outcome.UPDATE, target=OLD)], memories)
    assert (change.outcome, change.text) == (Outcome.ADD, "Maya lives in Porto.")
    assert change.reason == "She said so. (UPDATE withheld: It would lose Tom.)"
    assert memories.active(OLD) == stored
    assert change.suggestion is not None
    assert (change.suggestion.kind, change.suggestion.targets) == ("UPDATE", ((OLD, 4),))
    assert change.suggestion.proposed_text == "Maya lives in Porto."


def test_the_same_withheld_change_is_one_suggestion() -> None:
    stored = memory("Maya lives in Bern with Tom.")
    first, again = (
        apply_writes([write(Outcome.UPDATE, target=OLD, event=event)], scope_memories(stored))[0]
        for event in (EVENT, replace(EVENT, id=UUID(int=3)))
    )
    other = apply_writes(
        [write(Outcome.UPDATE, target=OLD)], scope_memories(replace(stored, version=2))
    )[0]
    assert first.suggestion is not None
    assert again.suggestion is not None
    assert other.suggestion is not None
    assert first.suggestion.id == again.suggestion.id != other.suggestion.id


def test_several_targets_of_one_fact_have_a_line_each() -> None:
    stored = [memory(), memory("Maya's flat in Bern is cheap.", 12)]
    memories = scope_memories(*stored)
    fact = "Maya moved out of Bern and lives in Porto."
    writes = [
        write(Outcome.UPDATE, "Maya lives in Porto.", target=OLD, fact_text=fact),
        write(Outcome.DELETE, target=OTHER, fact_text=f"{fact} She gave up the flat."),
    ]
    update, delete = apply_writes(writes, memories)
    assert (update.outcome, delete.outcome) == (Outcome.UPDATE, Outcome.DELETE)


def test_a_fact_that_another_decision_stores_is_not_added_beside() -> None:
    stored = [memory("Maya met Kim in Bern.", 12), memory()]
    memories = scope_memories(*stored)
    writes = [
        write(Outcome.DELETE, "Maya lives in Porto.", target=OTHER),
        write(Outcome.UPDATE, "Maya lives in Porto.", target=OLD),
    ]
    update, withheld = apply_writes(writes, memories)
    assert (update.outcome, update.memory_id) == (Outcome.UPDATE, OLD)
    assert (withheld.outcome, withheld.memory_id) == (Outcome.NOOP, OTHER)
    assert withheld.suggestion is not None
    assert memories.active(OTHER) == stored[0]


@pytest.mark.parametrize("facts", [6, 1], ids=["one fact each", "all by one fact"])
def test_one_event_retires_no_more_than_its_share(facts: int) -> None:
    stored = [memory(f"Maya owns boat {n}.", 11 + n) for n in range(6)]
    memories = scope_memories(*stored)
    writes = [
        write(Outcome.DELETE, "Maya sold all boats.", target=m.id, number=n % facts)
        for n, m in enumerate(stored)
    ]
    changes = apply_writes(writes, memories, RetireLimit(share=0.2, size=20))
    assert [c.outcome for c in changes].count(Outcome.DELETE) == 4
    assert changes[4].suggestion is not None
    assert "at most 4" in changes[4].suggestion.reason


@given(_stored(), _writes())
def test_immutable_memories_never_change(stored: list[Memory], writes: list[Write]) -> None:
    memories = scope_memories(*stored)
    apply_writes(writes, memories)
    assert all(memories.by_id[m.id] == m for m in stored if m.immutable)


@given(_stored(), _writes())
def test_no_fact_is_lost(stored: list[Memory], writes: list[Write]) -> None:
    """Each fact's text is stored, or its receipt names a memory."""
    memories = scope_memories(*stored)
    for planned in writes:
        [change] = apply_writes([planned], memories)
        if change.outcome in (Outcome.ADD, Outcome.UPDATE):
            assert memories.by_text[text_hash(change.text)] == change.memory_id
        elif change.outcome is Outcome.NOOP and change.memory_id is not None:
            known = memories.active(change.memory_id) is not None
            earlier = memories.by_fact.get(text_hash(planned.fact.text))
            assert known or (earlier and earlier.outcome is Outcome.DELETE)
