"""CrewAI's external memory, which stores its texts with Mem0."""

from __future__ import annotations

from crewai.memory.external.external_memory import (  # type: ignore[import-not-found,unused-ignore]
    ExternalMemory,
)
from report import USER, report, wait_for_events  # type: ignore[import-not-found,unused-ignore]

config = {"user_id": USER, "agent_id": f"{USER}-agent"}
memory = ExternalMemory(
    storage=ExternalMemory.create_storage(None, {"provider": "mem0", "config": config})
)


def save() -> None:
    messages = [{"role": "user", "content": "I live in Porto."}]
    memory.save("Noted.", {"messages": messages})
    assert [line["event"] for line in wait_for_events()] == ["ADD"]


def search() -> None:
    hits = memory.search("Where do I live?", score_threshold=0.35)
    assert [hit["content"] for hit in hits] == ["User lives in Porto"]


report({"save": save, "search": search})
