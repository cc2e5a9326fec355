"""Names of collections: those of one scope, and whose vectors they can have."""

from __future__ import annotations

from uuid import UUID

from pipeline.vector_index.buckets import collection_name, is_own, may_hold, own_name, owner_hash

PROJECT = UUID(int=1)


def name(**pins: str) -> str:
    return own_name("memories", "fake/hash", 4, project_id=PROJECT, pins=pins)


def test_no_two_scopes_share_a_name() -> None:
    scopes: list[dict[str, str]] = [
        {"user_id": "a"},
        {"agent_id": "a"},
        {"user_id": "a", "agent_id": "b"},
        {"user_id": "b", "agent_id": "a"},
        {"user_id": "a/agent_id:1:b"},
        {"agent_id": "1:b/user_id:1:a"},
    ]
    assert len({name(**pins) for pins in scopes}) == len(scopes)
    assert name(user_id="a", run_id="b") == name(run_id="b", user_id="a")


def test_a_name_has_no_id() -> None:
    assert "maya" not in name(user_id="maya")


def test_a_collection_of_a_user_has_no_vectors_of_others() -> None:
    mine, other = owner_hash(PROJECT, "maya"), owner_hash(PROJECT, "jon")
    assert may_hold(name(user_id="maya", run_id="r"), [mine])
    assert not may_hold(name(user_id="maya"), [other])
    assert may_hold(name(agent_id="bot"), [other])  # an agent has memories of any user


def test_a_bucket_is_not_the_collection_of_a_scope() -> None:
    bucket = collection_name("memories", "fake/hash", 4, project_id=PROJECT, owner="maya")
    assert not is_own(bucket)
    assert is_own(name(user_id="maya"))
    assert is_own(name(agent_id="bot"))
