"""The vector index on real processes: it stops, loses its data, and moves to another backend."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from deploy.stack.servers import Chroma
from pipeline.events.progress import FEW
from tests.support.stack import Client, Stack, wait_until

TURN = ("I live in Bergen.", "I own a boat.", "I like rye bread.", "I play the tuba.")
QUERY = "Which instrument does the user play?"
AT_ONCE = 100


async def fill(client: Client) -> None:
    """Add more memories than are compared from the ledger."""
    for start in range(0, FEW + 1, AT_ONCE):
        trips = [f"Trip {n} went to harbour {n}." for n in range(start, start + AT_ONCE)]
        messages = [{"role": "user", "content": trip} for trip in trips]
        body = {"messages": messages, "user_id": "maya", "infer": False}
        answer = await client.http.post("/v3/memories/add/", json=body)
        await client.ended(answer.json()["event_id"])


async def answers(client: Client) -> list[tuple[Any, Any]]:
    """The best hits of a search, once it is no longer degraded: those after them score alike."""

    async def whole() -> bool:
        return not (await client.search("maya", QUERY))["degraded"]

    await wait_until(whole, within_s=30, what="a search that is not degraded")
    hits = (await client.search("maya", QUERY, top_k=len(TURN)))["results"]
    return [(hit["id"], round(hit["score"], 3)) for hit in hits]


async def test_without_chroma_few_memories_are_searched_and_an_emptied_one_is_filled_again(
    tmp_path: Path,
) -> None:
    with Chroma(tmp_path / "vectors") as chroma:
        stack = Stack(tmp_path / "stack", {"MEMLANE_CHROMA_URL": chroma.url})
        with stack:
            async with stack.client() as client:
                await client.ended(await client.add("maya", *TURN))
                few = await answers(client)
                assert len(few) == len(TURN)
                chroma.kill()
                assert await answers(client) == few
                chroma.start()

                await fill(client)
                before = await answers(client)
                chroma.kill()
                answer = await client.search("maya", "tuba")
                assert answer["degraded"]
                assert "tuba" in answer["results"][0]["memory"]
                waiting = await client.add("jon", "I like tea.")

                chroma.start()
                assert (await client.ended(waiting))["status"] == "SUCCEEDED"
                assert await answers(client) == before

                chroma.stop()
                shutil.rmtree(tmp_path / "vectors" / "chroma")
                chroma.start()
                mended = stack.command("reindex")
                assert mended.returncode == 0, mended.stdout + mended.stderr
                assert await answers(client) == before


async def test_the_stack_moves_to_pgvector_and_finds_the_same(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "stack")
    moved = replace(stack, settings={"MEMLANE_VECTORS": "pgvector"})
    with stack:
        async with stack.client() as client:
            await client.ended(await client.add("maya", *TURN))
            await fill(client)
            before = await answers(client)
            done = moved.command("reindex")
            assert done.returncode == 0, done.stdout + done.stderr
            assert "The new index is complete." in done.stdout
            assert "chroma" not in stack.pids()
            assert await answers(client) == before
            await client.ended(await client.add("maya", "I moved to Oslo."))
            assert "Oslo" in str((await client.search("maya", "Where do I live?"))["results"][0])
    # A new shell has no setting: the saved one stands.
    with stack:
        assert "chroma" not in stack.pids()
        async with stack.client() as client:
            assert "Oslo" in str((await client.search("maya", "Where do I live?"))["results"][0])
