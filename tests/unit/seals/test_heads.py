"""Roots over the heads of lanes, and the numbers that an entry covers."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.errors import InvalidInput
from pipeline.domain.tenants import ProjectId
from pipeline.seals.chain import Covered, LaneHead, is_signed, ranges, sign_head
from pipeline.seals.heads import Bucket, changed, fits, member
from pipeline.seals.keys import SealKeys, message

PROJECT = ProjectId(UUID(int=1))
KEYS = SealKeys([b"one key"])


def lane_head(
    lane_id: UUID, number: int = 1, signature: bytes = b"", key_id: str = KEYS.current
) -> LaneHead:
    return LaneHead(lane_id, number, b"link", signature, key_id)


def bucket_with(keys: SealKeys, heads: list[LaneHead]) -> Bucket:
    bucket = Bucket(0)
    for head in heads:
        part = member(keys, PROJECT, head)
        bucket = changed(keys, PROJECT, bucket, parts=[part], more=1)
    return bucket


@given(st.sets(st.integers(1, 500)))
def test_ranges_cover_their_numbers_and_no_other(numbers: set[int]) -> None:
    covered = Covered.of(ranges(numbers))
    assert {number for number in range(502) if number in covered} == numbers


@given(st.permutations([lane_head(UUID(int=n)) for n in range(6)]))
def test_a_root_does_not_depend_on_the_order_of_the_lanes(heads: list[LaneHead]) -> None:
    assert fits(KEYS, PROJECT, bucket_with(KEYS, heads), reversed(heads))


@pytest.mark.parametrize(
    "forged",
    [
        lambda heads: heads[1:],
        lambda heads: [*heads, lane_head(UUID(int=9))],
        lambda heads: [replace(heads[0], number=2), *heads[1:]],
        lambda heads: [replace(heads[0], link=b"x"), *heads[1:]],
        lambda heads: [replace(heads[0], key_id=""), *heads[1:]],
        lambda heads: [replace(heads[0], key_id="unknown"), *heads[1:]],
        lambda heads: [heads[0], heads[0], *heads[2:]],
    ],
)
def test_other_heads_do_not_fit(forged: object) -> None:
    heads = [lane_head(UUID(int=n)) for n in range(4)]
    bucket = bucket_with(KEYS, heads)
    assert fits(KEYS, PROJECT, bucket, heads)
    assert callable(forged)
    assert not fits(KEYS, PROJECT, bucket, forged(heads))
    assert not fits(KEYS, PROJECT, replace(bucket, counter=bucket.counter + 1), heads)


def test_a_root_shows_no_part_of_a_single_lane() -> None:
    """Two batches that change a lane back and forth leave another root each time."""
    head = lane_head(UUID(int=3))
    part = member(KEYS, PROJECT, head)
    first = changed(KEYS, PROJECT, Bucket(0), parts=[part], more=1)
    second = changed(KEYS, PROJECT, first, parts=[], more=0)
    assert first.root != second.root
    assert part not in (first.root, second.root)


def test_a_former_key_verifies_and_the_present_one_signs() -> None:
    both = SealKeys([b"another key", b"one key"])
    assert both.current != KEYS.current
    heads = [lane_head(UUID(int=n)) for n in range(3)]
    assert fits(both, PROJECT, bucket_with(KEYS, heads), heads)


def test_a_signature_is_that_of_one_lane_of_one_project() -> None:
    lane_id = UUID(int=3)
    signed = lane_head(lane_id, 1, sign_head(KEYS, PROJECT, lane_id, 1, b"link"))
    assert is_signed(KEYS, PROJECT, signed)
    assert not is_signed(KEYS, ProjectId(UUID(int=2)), signed)
    assert not is_signed(KEYS, PROJECT, replace(signed, lane_id=UUID(int=4)))
    assert not is_signed(KEYS, PROJECT, replace(signed, signature=signed.signature[1:]))
    assert not is_signed(SealKeys([b"another key"]), PROJECT, signed)


def test_a_message_is_unambiguous() -> None:
    assert message("a", "bc") != message("ab", "c")
    assert message("1") != message(1)


def test_without_a_key_nothing_is_signed() -> None:
    with pytest.raises(InvalidInput, match="MEMLANE_SEAL_KEY"):
        SealKeys().sign("x")
