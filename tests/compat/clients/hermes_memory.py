"""The Mem0 backend of hermes-agent with its host set: the open-source server's dialect."""

from __future__ import annotations

import os

import httpx
from plugins.memory.mem0._backend import (  # type: ignore[import-not-found,unused-ignore]
    SelfHostedBackend,
)
from report import SERVER, USER, report  # type: ignore[import-not-found,unused-ignore]

backend = SelfHostedBackend(os.environ["MEM0_API_KEY"], os.environ["MEMLANE_URL"])
IDS = {"user_id": USER, "agent_id": "hermes"}


def spoken(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def found(question: str) -> list[str]:
    hits = backend.search(question, filters={"user_id": USER}, top_k=5)
    return [hit["memory"] for hit in hits]


def memory_id() -> str:
    [hit] = backend.search("Where do I live?", filters={"user_id": USER}, top_k=1)
    return str(hit["id"])


def add() -> None:
    answer = backend.add(spoken("I live in Porto."), infer=True, metadata={"channel": "cli"}, **IDS)
    assert [line["event"] for line in answer["results"]] == ["ADD"], answer


def add_verbatim() -> None:
    answer = backend.add(spoken("The gate code is 4711."), infer=False, **IDS)
    assert [line["event"] for line in answer["results"]] == ["ADD"], answer


def search() -> None:
    assert any("Porto" in text for text in found("Where do I live?"))


def update() -> None:
    changed = memory_id()
    backend.update(changed, "The user lives in Braga.")
    history = SERVER.get(f"/memories/{changed}/history").json()
    assert [state["event"] for state in history] == ["ADD", "UPDATE"], history
    assert any("Braga" in text for text in found("Where do I live?"))


def delete() -> None:
    gone = memory_id()
    backend.delete(gone)
    assert SERVER.get(f"/memories/{gone}").json() is None
    try:
        backend.delete(gone)
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == 404  # noqa: PT017  the driver has no pytest
    else:
        raise AssertionError("a second delete was not refused")


report(
    {
        "add": add,
        "add (infer=False)": add_verbatim,
        "search": search,
        "update": update,
        "delete": delete,
    }
)
