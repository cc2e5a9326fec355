"""Shapes of filters of events: statements that are compiled once for all filters alike."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipeline.domain.events import FailureCode
from pipeline.domain.filters import EventFilter
from pipeline.ledger.filter_conditions import event_shape, one_of
from pipeline.ledger.tables import events

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def test_filters_with_other_values_have_one_shape() -> None:
    maya = EventFilter({"user_id": "maya"}, created={"gte": NOON}, code=FailureCode.DEADLINE)
    jon = EventFilter({"user_id": "jon"}, created={"gte": NOON}, code=FailureCode.POISON_CRASH)
    (shape, values), (other, _) = event_shape(maya), event_shape(jon)
    assert shape == other
    assert values == {"asked_user_id": "maya", "asked_gte": NOON, "asked_code": "DEADLINE"}


def test_repeated_and_reordered_words_make_no_other_shape() -> None:
    plain, _ = event_shape(EventFilter(kinds=["ADD", "EXPORT"], statuses=["FAILED"]))
    again, _ = event_shape(EventFilter(kinds=["EXPORT", "ADD", "ADD"], statuses=["FAILED"] * 50))
    assert again == plain


@pytest.mark.parametrize("word", ["it's", "a b", "a;b", "a\nb"])
def test_a_constant_of_a_statement_is_a_word(word: str) -> None:
    with pytest.raises(ValueError, match="No constants of a statement"):
        one_of(events.c.status, ["FAILED", word])
