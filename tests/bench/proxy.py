"""Time to first byte that the memory proxy adds, with `PYTHONPATH=clients/python`.

    python -m tests.bench.proxy --requests 500

Requests go to a stand-in provider directly and through the proxy, in turns on kept connections. The
proxy searches each time with another question, and adds each turn; the model and the embedder are
a hosted-style stand-in (`--local`: the local embedder; `--embedding-ms`: time of a request for
embeddings, without it none but its computing). `search` is the time of such a search over
HTTP, and `embedder` that of its request to the embedder. Prints milliseconds as JSON; `added` and
`beside the embedder` are over pairs of requests. `--busy`: the next request does not wait until the
turn before is stored, with its graph.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.bench.hosted import hosted, sentence
from tests.bench.hosted import provider as models
from tests.bench.outbox import percentiles
from tests.support.chat_provider import ChatProvider, chat_frames
from tests.support.proxy_process import memory_proxy
from tests.support.stack import Client, Stack, wait_until

CHAT = "/v1/chat/completions"
MEMORIES = 200
# First requests, which are not counted.
WARM_UP = 10


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


async def embedder_ms(http: httpx.AsyncClient, question: str) -> float:
    """Time of one request to the stand-in of the embedder."""
    body = {"input": question, "model": "stand-in-1536", "encoding_format": "base64"}
    began = time.perf_counter()
    answer = await http.post("/embeddings", json=body)
    assert answer.status_code == 200
    return 1000 * (time.perf_counter() - began)


async def measure(
    folder: Path, *, requests: int, models_url: str, local: bool, busy: bool
) -> dict[str, dict[str, float]]:
    """Percentiles of the direct requests, of those through the proxy, and of the differences."""
    provider = ChatProvider(chat_frames(20, identity="chatcmpl-bench"))
    direct: list[float] = []
    proxied: list[float] = []
    searched: list[float] = []
    embedded: list[float] = []
    settings = {} if local else hosted(models_url, MEMLANE_GRAPH="on")
    async with (
        Stack(folder / "data", settings) as stack,
        Client(stack) as client,
        httpx.AsyncClient(base_url=models_url) as embedder,
        provider.serve(),
    ):
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
            for number in range(requests + WARM_UP):
                question = f"What did I tell you about trip {number}?"
                pair = [await first_byte_ms(http, question) for http in (straight, through)]
                began = time.perf_counter()
                await client.search("bench", f"Where did I go on trip {number}?")
                search_ms = 1000 * (time.perf_counter() - began)
                embed_ms = await embedder_ms(embedder, question)
                if number >= WARM_UP:
                    direct.append(pair[0])
                    proxied.append(pair[1])
                    searched.append(search_ms)
                    embedded.append(embed_ms)
                if not busy:
                    await until_stored(client, local=local)
    added = [after - before for before, after in zip(direct, proxied, strict=True)]
    beside = [each - own for each, own in zip(added, embedded, strict=True)]
    return {
        "direct": percentiles(direct),
        "embedder": percentiles(embedded),
        "search": percentiles(searched),
        "proxy": percentiles(proxied),
        "added": percentiles(added) | {"mean": round(statistics.fmean(added), 3)},
        "beside the embedder": percentiles(beside),
    }


async def until_stored(client: Client, *, local: bool) -> None:
    """Wait until the newest turn is stored, and its graph unless the model is `local`.

    A chat model, and a person who reads its answer, take longer than that.
    """

    async def is_stored() -> bool:
        answer = await client.http.get("/v1/events/", params={"page_size": 1})
        rows = answer.json()["results"]
        return (
            bool(rows)
            and rows[0]["status"] == "SUCCEEDED"
            and (local or rows[0]["graph_status"] is not None)
        )

    await wait_until(is_stored, within_s=60, what="the turn is stored", every_s=0.05)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.proxy")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--embedding-ms", type=float, default=0.0)
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--busy", action="store_true")
    given = parser.parse_args()
    embedding_ms = given.embedding_ms
    with tempfile.TemporaryDirectory() as folder, models(embedding_ms=embedding_ms) as url:
        run = partial(measure, requests=given.requests, models_url=url)
        figures = asyncio.run(run(Path(folder), local=given.local, busy=given.busy))  # noqa: TID251
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
