"""Model answers of any kind change no memory that a person has pinned or edited.

pytest tests/unit/models/test_protected_answers.py --answers 10000      the full number
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.domain.consolidation.reconcile import apply_writes
from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.facts import Outcome
from pipeline.domain.memories import Memory
from pipeline.domain.suggestions import SuggestionKind
from pipeline.domain.writes import ScopeMemories
from tests.unit.models import test_lossy_answers as lossy


def protected(chance: random.Random, memory: Memory) -> Memory:
    """The memory, mostly pinned or edited by a person."""
    edited_at = memory.said_at + timedelta(days=1) if chance.random() < 0.5 else None
    return replace(memory, pinned=chance.random() < 0.5, edited_at=edited_at)


def check(seed: int, *, hostile: bool) -> None:
    chance = random.Random(seed)
    old = [lossy.statement(chance) for _ in range(chance.randint(1, 8))]
    facts = lossy.new_facts(chance, old)
    text = (lossy.adversarial if hostile else lossy.answer)(chance, facts, old)
    stored = [
        protected(chance, lossy.memory(number, statement.text, lossy.START))
        for number, statement in enumerate(old)
    ]
    try:
        writes = lossy.writes_of(chance, text, facts, stored)
    except MalformedAnswer:
        return  # the event fails by name, and changes nothing
    memories = ScopeMemories.of(lossy.SCOPE, stored)
    changes = apply_writes(writes, memories)
    guarded = {memory.id: memory for memory in stored if memory.protection}
    assert {key: memories.by_id[key] for key in guarded} == guarded
    for change in changes:
        touched = [m.id for m in (change.after, change.restated) if m is not None]
        assert not guarded.keys() & set(touched)
        if change.suggestion is None or change.write.target not in guarded:
            continue
        assert change.suggestion.kind in (SuggestionKind.UPDATE, SuggestionKind.DELETE)
        assert change.suggestion.reason == guarded[change.write.target].protection
        assert change.outcome in (Outcome.ADD, Outcome.NOOP)


@pytest.mark.parametrize("hostile", [False, True])
def test_no_answer_changes_a_memory_that_a_person_has_pinned_or_edited(
    request: pytest.FixtureRequest, hostile: bool
) -> None:
    examples = request.config.getoption("--answers")

    @settings(max_examples=examples, deadline=None)
    @given(st.integers(min_value=0))
    def any_answer(seed: int) -> None:
        check(seed, hostile=hostile)

    any_answer()


@pytest.mark.parametrize("seed", [4_224, 44_080])
def test_several_decisions_on_one_fact_change_no_protected_memory(seed: int) -> None:
    """An earlier decision rewords the memory that has the text of a later one."""
    check(seed, hostile=True)


def test_the_same_answers_do_change_memories_without_protection() -> None:
    """The check above can fail: random answers do change memories that are not protected."""
    assert sum(changes_of(seed) for seed in range(200)) > 0


def changes_of(seed: int) -> int:
    """Number of unprotected memories that a random answer changes."""
    chance = random.Random(seed)
    old = [lossy.statement(chance) for _ in range(4)]
    facts = lossy.new_facts(chance, old)
    stored = [lossy.memory(number, s.text, lossy.START) for number, s in enumerate(old)]
    try:
        writes = lossy.writes_of(chance, lossy.answer(chance, facts, old), facts, stored)
    except MalformedAnswer:
        return 0
    changes = apply_writes(writes, ScopeMemories.of(lossy.SCOPE, stored))
    return sum(c.outcome in (Outcome.UPDATE, Outcome.DELETE) for c in changes)
