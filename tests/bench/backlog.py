"""Fifty queued turns of one scope: the number of model calls, and the receipt of each turn."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.chaos_ledger import LedgerWindow, database_url
from tests.support.llm_server import LLMServer
from tests.support.stack import Client, Stack

TURNS = 50
POISONED = 20
COUNTED = ("calls", "prompt_tokens", "completion_tokens")
STORED = """
    SELECT m.id, m.event_id, m.message_ordinal, m.text
    FROM memories m WHERE m.user_id = $1 AND m.state = 'ACTIVE'
"""


async def backlog(data_dir: Path) -> dict[str, Any]:
    async with LLMServer() as model:
        settings = {
            "MEMLANE_LLM__MODEL": "openai/stand-in",
            "MEMLANE_LLM__API_BASE": model.base_url,
            "MEMLANE_LLM__API_KEY": "sk-bench",
        }
        stack = Stack(data_dir, settings)
        await asyncio.to_thread(stack.up)
        try:
            async with stack.client() as client:
                return {
                    "fifty_turns": await queued(stack, client, model, "fifty"),
                    "one_of_them_poison": await queued(stack, client, model, "poison", POISONED),
                }
        finally:
            await asyncio.to_thread(stack.down)


async def queued(
    stack: Stack, client: Client, model: LLMServer, user: str, poisoned: int | None = None
) -> dict[str, Any]:
    """Queue the turns while the worker is stopped, then resume it."""
    texts = [f"I like tea number {n}." for n in range(TURNS)]
    if poisoned is not None:
        texts[poisoned] = "I like poison."
        model.on("any", "malformed", containing="poison")
    model.calls.clear()
    model.billed.clear()
    stack.kill("worker-1", signal.SIGSTOP)
    ids = [await client.add(user, text) for text in texts]
    stack.kill("worker-1", signal.SIGCONT)
    events = await client.all_ended(ids, within_s=120)
    kinds = Counter(call.kind for call in model.calls)
    return {
        "events": Counter(event["code"] or event["status"] for event in events),
        "calls": dict(kinds),
        "batches": len({event["stages"][0]["finished_at"] for event in events}),
        "receipts_equal_the_bill": total(events)
        == {"calls": len(model.calls), **{name: model.billed[name] for name in COUNTED[1:]}},
        "memories_from_their_own_message": await at_home(stack, user, events, texts),
    }


def total(events: list[dict[str, Any]]) -> dict[str, int]:
    """Sum of the usage in the receipts."""
    return {name: sum(event["usage"][name] for event in events) for name in COUNTED}


async def at_home(stack: Stack, user: str, events: list[dict[str, Any]], texts: list[str]) -> int:
    """Number of receipts with exactly one memory, which has the event's text and id."""
    window = LedgerWindow(database_url(stack))
    stored = {str(row["id"]): row for row in await window.rows(STORED, user)}
    await window.close()
    return sum(
        len(event["results"]) == 1
        and str(stored[event["results"][0]["id"]]["event_id"]) == event["id"]
        and stored[event["results"][0]["id"]]["message_ordinal"] == 0
        and stored[event["results"][0]["id"]]["text"].endswith(text.removeprefix("I like")[:-1])
        for event, text in zip(events, texts, strict=True)
    )
