"""What a worker reads from the broker: messages of its own release, of others, and of nobody."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from pipeline.domain import StageName, Wake
from workers.tasks import read_hint

LANE = "0d865521-65c9-4481-9813-7ad1362689c8"


def test_a_hint_says_a_lane_and_a_fence() -> None:
    hint = read_hint(StageName.APPLY, LANE, 7)
    assert hint == Wake(UUID(LANE), 7, StageName.APPLY)


@pytest.mark.parametrize(
    "said", [(), (LANE,), (7, LANE), ("maya", 7), (LANE, "7"), (LANE, 7, "more"), (LANE, None)]
)
def test_what_says_anything_else_is_no_hint(said: tuple[Any, ...]) -> None:
    assert read_hint(StageName.APPLY, *said) is None


def test_a_hint_with_names_of_a_later_release_is_no_hint() -> None:
    assert read_hint(StageName.APPLY, LANE, 7, tier="light") is None
