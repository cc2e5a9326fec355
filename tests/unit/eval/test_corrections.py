"""Corrections of tests/eval/corrections: updates take or are flagged, careless changes do not."""

from __future__ import annotations

import pytest

from tests.eval.corrections import Case, Kind, Verdict, cases, without_slots

CASES = list(cases())
# Of 150 each, without slots and without the help of a near meaning.
LEAST_APPLIED, LEAST_REFUSED = 130, 150


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
