"""The memory store of mem0-haystack and its filters.

The server answers the pairs of a field and an operator in UNDERSTOOD, and refuses all others that
the package can send; none is ignored.
"""

from __future__ import annotations

from uuid import uuid4

from haystack.dataclasses import ChatMessage  # type: ignore[import-not-found,unused-ignore]
from haystack_integrations.memory_stores.mem0 import (  # type: ignore[import-not-found,unused-ignore]
    Mem0MemoryStore,
)
from haystack_integrations.memory_stores.mem0.errors import (  # type: ignore[import-not-found,unused-ignore]
    Mem0MemoryStoreError,
)
from report import USER, report, wait_for_events  # type: ignore[import-not-found,unused-ignore]

OPERATORS = ("==", "!=", ">", ">=", "<", "<=", "in", "not in", "contains", "icontains")
ID, TIME = ("==", "!=", "in"), ("==", "!=", ">", ">=", "<", "<=", "in")
UNDERSTOOD = {
    **dict.fromkeys(("user_id", "agent_id", "app_id", "run_id"), ID),
    **dict.fromkeys(("created_at", "updated_at", "timestamp"), TIME),
    "categories": ("==", "!=", "in", "contains"),
    "keywords": ("==", "contains", "icontains"),
    "memory_ids": ("==", "in"),
    "feedback": (),
    "feedback_reason": (),
}
DAY = "2020-01-01T00:00:00Z"
VALUES = dict.fromkeys(("created_at", "updated_at", "timestamp"), DAY)
store = Mem0MemoryStore()


def texts(field: str, operator: str, value: object) -> list[str]:
    condition = {"field": field, "operator": operator, "value": value}
    return [row.text for row in store.search_memories(filters=condition, user_id=USER)]


def is_answered(field: str, operator: str) -> bool:
    value: object = VALUES.get(field, "x")
    if field == "memory_ids" or operator in ("in", "not in"):
        value = [str(uuid4()) if field == "memory_ids" else value]
    try:
        texts(field, operator, value)
    except Mem0MemoryStoreError:
        return False
    return True


def add_memories() -> None:
    store.add_memories(messages=[ChatMessage.from_user("I live in Porto.")], user_id=USER)
    assert [line["event"] for line in wait_for_events()] == ["ADD"]
    [stored] = store.add_memories(
        messages=[ChatMessage.from_user("Tea.")], user_id=USER, infer=False, metadata={"trip": "x"}
    )
    assert stored["memory"] == "Tea."


def search_memories() -> None:
    [hit, *_] = store.search_memories(query="Where do I live?", user_id=USER)
    assert hit.text == "User lives in Porto"


def filters() -> None:
    both = {"Tea.", "User lives in Porto"}
    assert texts("trip", "==", "x") == texts("trip", "contains", "x") == ["Tea."]
    assert texts("trip", "!=", "x") == ["User lives in Porto"]
    assert set(texts("created_at", ">", DAY)) == both
    assert texts("created_at", "<", DAY) == []
    assert set(texts("user_id", "in", [USER])) == both


def table_of_filters() -> None:
    answered = {
        field: tuple(operator for operator in OPERATORS if is_answered(field, operator))
        for field in UNDERSTOOD
    }
    assert answered == UNDERSTOOD


CHECKS = (add_memories, search_memories, filters, table_of_filters)
report({check.__name__: check for check in CHECKS})
