"""Decay: the factor of age and accesses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.decay import FULL_USE, LEAST, MOST, NEW, Accesses, Decay

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAYS = st.floats(-10, 100_000).map(lambda days: NOW - timedelta(days=days))
ACCESSES = st.none() | st.builds(Accesses, st.integers(1, 10**9), DAYS)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


@pytest.mark.parametrize(
    ("stated", "accesses", "factor"),
    [
        (ago(0), None, NEW),
        (ago(30), None, 0.65),
        (ago(60), None, 0.475),
        (ago(100_000), None, LEAST),
        (ago(300), Accesses(FULL_USE, NOW), MOST),
        (ago(300), Accesses(10**6, NOW), MOST),
        (ago(300), Accesses(1, NOW), 1.1),
        (ago(300), Accesses(FULL_USE, ago(30)), 0.9),
    ],
)
def test_age_lowers_the_factor_and_accesses_raise_it(
    stated: datetime, accesses: Accesses | None, factor: float
) -> None:
    assert Decay().factor(stated, accesses, NOW) == pytest.approx(factor, abs=1e-3)


def test_the_half_life_is_a_setting() -> None:
    assert Decay(60).factor(ago(60), None, NOW) == Decay(30).factor(ago(30), None, NOW)


@pytest.mark.parametrize(
    ("setting", "decay"),
    [
        (None, None),
        (False, None),
        (True, Decay(30)),
        ({"half_life_days": 7}, Decay(7)),
        ("yes", None),
    ],
)
def test_a_setting_is_a_boolean_or_has_a_half_life(setting: object, decay: Decay | None) -> None:
    assert Decay.of(setting) == decay


@given(st.floats(0.1, 36_500), DAYS, ACCESSES, ACCESSES)
def test_the_factor_is_bounded_and_an_access_never_lowers_it(
    half_life: float, stated: datetime, first: Accesses | None, second: Accesses | None
) -> None:
    decay = Decay(half_life)
    factor = decay.factor(stated, first, NOW)
    assert LEAST <= factor <= MOST
    assert decay.factor(stated, None, NOW) <= factor
    if first and second:
        both = Accesses(first.count + second.count, max(first.last_at, second.last_at))
        assert factor <= decay.factor(stated, both, NOW)
