"""Time to first byte that the memory proxy adds, with `PYTHONPATH=clients/python`.

    python -m tests.bench.proxy --requests 500

Requests go to a stand-in provider directly and through the proxy, in turns on kept connections. The
proxy searches each time with another question; `search` is the time of such a search over HTTP,
with that of the embedder. Prints milliseconds as JSON; `added` is over pairs of requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from tests.bench.hosted import sentence
from tests.bench.outbox import percentiles
from tests.support.chat_provider import ChatProvider, chat_frames
from tests.support.proxy_process import memory_proxy
from tests.support.stack import Client, Stack

CHAT = "/v1/chat/completions"
MEMORIES = 200


async def first_byte_ms(http: httpx.AsyncClient, question: str) -> float:
    body: dict[str, Any] = {
        "user": "bench",
        "stream": True,
        "messages": [{"role": "user", "content": question}],
    }
    began = time.perf_counter()
    async with http.stream("POST", CHAT, json=body) as answer:
        times = [time.perf_counter() async for _ in answer.aiter_raw()]
    assert answer.status_code == 200
    return 1000 * (times[0] - began)


async def measure(folder: Path, *, requests: int) -> dict[str, dict[str, float]]:
    """Percentiles of the direct requests, of those through the proxy, and of the differences."""
    provider = ChatProvider(chat_frames(20, identity="chatcmpl-bench"))
    direct: list[float] = []
    proxied: list[float] = []
    searched: list[float] = []
    async with Stack(folder / "data") as stack, Client(stack) as client, provider.serve():
        texts = [sentence(number) for number in range(MEMORIES)]
        await client.http.post(
            "/v3/memories/add/",
            json={
                "messages": [{"role": "user", "content": text} for text in texts],
                "user_id": "bench",
                "infer": False,
            },
        )
        async with (
            memory_proxy(stack, provider.url, folder / "outbox") as through,
            httpx.AsyncClient(base_url=provider.url) as straight,
        ):
            for number in range(-10, requests):
                question = f"What did I tell you about trip {number}?"
                pair = [await first_byte_ms(http, question) for http in (straight, through)]
                began = time.perf_counter()
                await client.search("bench", f"Where did I go on trip {number}?")
                if number >= 0:
                    direct.append(pair[0])
                    proxied.append(pair[1])
                    searched.append(1000 * (time.perf_counter() - began))
    added = [after - before for before, after in zip(direct, proxied, strict=True)]
    return {
        "direct": percentiles(direct),
        "search": percentiles(searched),
        "proxy": percentiles(proxied),
        "added": percentiles(added) | {"mean": round(statistics.fmean(added), 3)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.proxy")
    parser.add_argument("--requests", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(Path(folder), requests=given.requests))  # noqa: TID251
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
