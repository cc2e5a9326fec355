"""A reranker over HTTP on real processes: no search waits for one that is down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.llm_server import LLMServer
from tests.support.stack import Stack, wait_until

TURN = ("I live in Bergen.", "I own a boat.", "I play the tuba.")
QUERY = "Which instrument does the user play?"
TIMEOUT_S = 2.0


class LongestFirst:
    """Reranker that prefers long texts, unlike the fusion."""

    name = "fake/longest"

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        return [1 - 1 / (1 + len(text)) for text in texts]


async def test_a_reranker_orders_what_a_search_finds_and_may_go_away(tmp_path: Path) -> None:
    async with LLMServer(reranker=LongestFirst()) as server:
        settings = {
            "MEMLANE_RERANKER__MODEL": "infinity/stand-in",
            "MEMLANE_RERANKER__API_BASE": server.base_url,
            "MEMLANE_RERANKER__API_KEY": "sk-rerank",
            "MEMLANE_RERANKER__TIMEOUT_S": str(TIMEOUT_S),
        }
        with Stack(tmp_path / "stack", settings) as stack:
            async with stack.client() as client:
                await client.ended(await client.add("maya", *TURN))
                answer = await client.search("maya", QUERY, top_k=10)
                fused = [hit["memory"] for hit in answer["results"]]
                assert "tuba" in fused[0]

                answer = await client.search("maya", QUERY, rerank=True, threshold=0)
                assert answer["reranked"] is True
                memories = [hit["memory"] for hit in answer["results"]]
                assert memories == sorted(memories, key=len, reverse=True)
                assert server.calls[-1].headers["authorization"] == "Bearer sk-rerank"

                server.on("rerank", "hang")
                # Without the limit, the search would wait until its client gives up, and fail.
                answer = await client.search("maya", QUERY, rerank=True)
                assert (answer["reranked"], answer["not_reranked"]) == (False, "LLM_UNAVAILABLE")
                assert (answer["degraded"], answer["degraded_parts"]) == (True, ["rerank"])
                assert [hit["memory"] for hit in answer["results"]] == fused

                await server.stop()
                for _ in range(3):
                    answer = await client.search("maya", QUERY, rerank=True)
                    assert answer["not_reranked"] == "LLM_UNAVAILABLE"
                    assert answer["degraded_parts"] == ["rerank"]

                # The circuit is open: one search probes every two seconds.
                server.rules.clear()
                await server.start(server.port)

                async def reranked() -> bool:
                    return bool((await client.search("maya", QUERY, rerank=True))["reranked"])

                await wait_until(reranked, within_s=30, what="a reranked answer", every_s=0.2)
                assert (await client.search("maya", QUERY))["degraded_parts"] == []
