"""Corrections of tests/eval/corrections: updates take or are flagged, careless changes do not."""

from __future__ import annotations

import pytest

from tests.eval.corrections import FOREIGN, LONG, Case, Kind, Verdict, cases, without_slots

CASES = list(cases())
# Of 150 each, without slots and without the help of a near meaning.
LEAST_APPLIED, LEAST_REFUSED = 130, 150
# Long sentences: of 40 updates with slots, and without.
LONG_CASES, LEAST_LONG = list(cases(LONG)), {True: 37, False: 33}
# Of 100 updates in the manner of other systems' memories, with slots and without.
FOREIGN_CASES, LEAST_FOREIGN = list(cases(FOREIGN)), {True: 88, False: 66}


def test_there_are_as_many_cases_written_after_the_rule_as_before() -> None:
    numbers = {kind: sum(case.kind is kind for case in CASES) for kind in Kind}
    assert numbers == dict.fromkeys(Kind, 75)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.kind.is_update], ids=lambda case: case.fact
)
def test_an_update_is_applied_or_flagged(case: Case) -> None:
    assert case.verdict() in (Verdict.APPLIED, Verdict.FLAGGED)


def test_nearly_all_updates_are_applied() -> None:
    verdicts = [case.verdict() for case in CASES if case.kind.is_update]
    assert verdicts.count(Verdict.APPLIED) >= 145


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.kind.is_update], ids=lambda case: case.fact
)
def test_a_careless_change_is_flagged_and_not_applied(case: Case) -> None:
    assert case.verdict() is Verdict.FLAGGED


@pytest.mark.parametrize(
    "case", [without_slots(case) for case in CASES], ids=lambda case: case.fact
)
def test_without_slots_nothing_is_doubled_without_a_word(case: Case) -> None:
    assert case.verdict() in (Verdict.APPLIED, Verdict.FLAGGED)


def test_without_slots_most_updates_are_applied_and_all_careless_changes_refused() -> None:
    verdicts = {
        update: [without_slots(c).verdict() for c in CASES if c.kind.is_update is update]
        for update in (True, False)
    }
    assert verdicts[True].count(Verdict.APPLIED) >= LEAST_APPLIED
    assert verdicts[False].count(Verdict.FLAGGED) >= LEAST_REFUSED


@pytest.mark.parametrize("slots", [True, False])
def test_corrections_in_long_sentences_take(slots: bool) -> None:
    updates = [case for case in LONG_CASES if case.kind.is_update]
    verdicts = [(case if slots else without_slots(case)).verdict() for case in updates]
    assert verdicts.count(Verdict.APPLIED) >= LEAST_LONG[slots]
    assert Verdict.DOUBLED not in verdicts


@pytest.mark.parametrize(
    "case", [case for case in LONG_CASES if not case.kind.is_update], ids=lambda case: case.fact
)
def test_careless_changes_in_long_sentences_are_flagged(case: Case) -> None:
    assert case.verdict() is Verdict.FLAGGED
    assert without_slots(case).verdict() is Verdict.FLAGGED


@pytest.mark.parametrize("slots", [True, False])
def test_corrections_of_foreign_memories_take(slots: bool) -> None:
    updates = [case for case in FOREIGN_CASES if case.kind.is_update]
    verdicts = [(case if slots else without_slots(case)).verdict() for case in updates]
    assert verdicts.count(Verdict.APPLIED) >= LEAST_FOREIGN[slots]
    assert Verdict.DOUBLED not in verdicts


@pytest.mark.parametrize(
    "case", [case for case in FOREIGN_CASES if not case.kind.is_update], ids=lambda case: case.fact
)
def test_careless_changes_of_foreign_memories_are_not_applied(case: Case) -> None:
    assert case.verdict() is not Verdict.APPLIED
    assert without_slots(case).verdict() is not Verdict.APPLIED
