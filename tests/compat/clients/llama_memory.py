"""The memory of llama-index-memory-mem0. Its reset() sends no request."""

from __future__ import annotations

import os

from llama_index.core.llms import ChatMessage  # type: ignore[import-not-found,unused-ignore]
from llama_index.core.memory import Memory  # type: ignore[import-not-found,unused-ignore]
from llama_index.memory.mem0 import Mem0Memory  # type: ignore[import-not-found,unused-ignore]
from mem0 import MemoryClient  # type: ignore[import-not-found,unused-ignore]
from report import USER, report, wait_for_events  # type: ignore[import-not-found,unused-ignore]

# Mem0Memory.from_client passes two arguments that a client of version 2 does not accept.
memory = Mem0Memory(
    primary_memory=Memory.from_defaults(),
    client=MemoryClient(api_key=os.environ["MEM0_API_KEY"], host=os.environ["MEMLANE_URL"]),
    context={"user_id": USER},
)


def remembered() -> str:
    return str(memory.get(input="Where do I live? What do I drink?")[0].content)


def put() -> None:
    memory.put(ChatMessage(role="user", content="I live in Porto."))
    assert [line["event"] for line in wait_for_events()] == ["ADD"]


def get() -> None:
    assert "User lives in Porto" in remembered()


def set_messages() -> None:
    memory.set([*memory.get_all(), ChatMessage(role="user", content="I like tea.")])
    wait_for_events()
    assert "tea" in remembered()


report({"put": put, "get": get, "set": set_messages})
