"""Corrections of tests/eval/corrections: updates take or are flagged, careless changes do not."""

from __future__ import annotations

import pytest

from tests.eval.corrections import Case, Kind, Verdict, cases

CASES = list(cases())


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
