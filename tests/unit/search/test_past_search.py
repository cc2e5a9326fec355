"""A search reads past states only if it asks for a time."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from pipeline.domain.filters import parse
from pipeline.domain.tenants import ProjectId
from pipeline.domain.versions import CURRENT, Snapshot
from pipeline.ledger.statements import DIALECT
from pipeline.search import store
from pipeline.search.where import Where

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
BUILDERS = (store._by_words, store._vectors, store._matching, store._candidates)


def statements(snapshot: Snapshot) -> list[str]:
    tree = parse({"user_id": "maya"})
    where = Where.of(
        ProjectId(uuid4()), tree, facts=True, turns=True, expired=False, snapshot=snapshot
    )
    return [str(build(where.shape).compile(dialect=DIALECT)) for build in BUILDERS]


def test_a_search_of_the_present_reads_no_past_state() -> None:
    assert not any("past_states" in text for text in statements(CURRENT))


@pytest.mark.parametrize(
    "snapshot", [Snapshot(as_of=MARCH), Snapshot(valid_at=MARCH), Snapshot(superseded=True)]
)
def test_a_search_of_a_time_reads_them_within_the_owner(snapshot: Snapshot) -> None:
    for text in statements(snapshot):
        assert "past_states" in text
        assert "past_states.user_id = $" in text
