"""A hosted-style provider on loopback: OpenAI's chat and embeddings API, with little CPU.

    python -m tests.support.hosted_model --latency-ms 500      prints {"base_url": …}

The latency is that of a chat answer; `--embedding-ms` that of a request for embeddings.

Embeddings have 1,536 dimensions, as base64 or floats on request. Chat answers follow rules:
each user message is one fact, every fact is added, and there are no relations. It serves mem0's
prompt as well, so that peers run against the same provider.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import zlib
from typing import Any

import numpy as np
import orjson
from aiohttp import web

from tests.support.llm_answers import kind_of

DIMENSIONS = 1536
_WORD = re.compile(r"\w+")
_TURN = re.compile(r'^(\d+) user(?: "[^"]*")?: (".*")$', re.MULTILINE)
_FACT = re.compile(r'^(\d+)(?: \(\S+\))?: (".*")$', re.MULTILINE)
_MEM0_TURN = re.compile(r"^user: (.+)$", re.MULTILINE)


def embedding(text: str) -> np.ndarray:
    """A hashed bag of words of length 1: texts that share words are near each other."""
    vector = np.zeros(DIMENSIONS, np.float32)
    for word in _WORD.findall(text.casefold()) or [""]:
        digest = zlib.crc32(word.encode())
        vector[digest % DIMENSIONS] += 1.0
        vector[(digest >> 12) % DIMENSIONS] += 0.5
    return vector / np.linalg.norm(vector)


def answer(prompt: str) -> Any:
    """A model's answer to one of Memlane's or mem0's prompts."""
    match kind_of(prompt):
        case "extract":
            section = prompt.rpartition("\n## Messages\n")[2]
            turns = _TURN.findall(section)
            return {
                "facts": [
                    {"messages": [int(number)], "text": json.loads(text), "categories": []}
                    for number, text in turns
                ]
            }
        case "decide":
            section = prompt.rpartition("\n## Facts\n")[2]
            return {
                "decisions": [
                    {
                        "fact": int(n),
                        "action": "ADD",
                        "target": None,
                        "text": None,
                        "reason": "New.",
                    }
                    for n, _ in _FACT.findall(section)
                ]
            }
        case "relate":
            return {"entities": [], "relations": [], "ended": []}
        case _:
            turns = _MEM0_TURN.findall(prompt)
            return {
                "memory": [{"id": "0", "text": turns[-1], "attributed_to": "user"}] if turns else []
            }


class Provider:
    def __init__(self, *, latency_ms: float, embedding_ms: float, floats: bool) -> None:
        self._latency_s, self._embedding_s = latency_ms / 1000, embedding_ms / 1000
        self._floats = floats
        self.calls = {"chat": 0, "embeddings": 0}

    def app(self) -> web.Application:
        app = web.Application(client_max_size=10**8)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_get("/calls", self._calls)
        return app

    async def _calls(self, _: web.Request) -> web.Response:
        return web.json_response(self.calls)

    async def _chat(self, request: web.Request) -> web.Response:
        self.calls["chat"] += 1
        body = orjson.loads(await request.read())
        prompt = "\n".join(str(message["content"]) for message in body["messages"])
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        message = {"role": "assistant", "content": orjson.dumps(answer(prompt)).decode()}
        return _json(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": _usage(prompt),
            }
        )

    async def _embed(self, request: web.Request) -> web.Response:
        self.calls["embeddings"] += 1
        body = orjson.loads(await request.read())
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if self._embedding_s:
            await asyncio.sleep(self._embedding_s)
        packed = body.get("encoding_format") == "base64" and not self._floats
        rows = [
            {"object": "embedding", "index": at, "embedding": _packed(embedding(text), packed)}
            for at, text in enumerate(texts)
        ]
        return _json(
            {"object": "list", "data": rows, "model": body["model"], "usage": _usage(*texts)}
        )


def _packed(vector: np.ndarray, packed: bool) -> Any:
    return base64.b64encode(vector.tobytes()).decode() if packed else vector


def _usage(*texts: str) -> dict[str, int]:
    tokens = sum(len(text) for text in texts) // 4 + 1
    return {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}


def _json(body: Any) -> web.Response:
    data = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
    return web.Response(body=data, content_type="application/json")


async def serve(provider: Provider) -> None:
    runner = web.AppRunner(provider.app(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [(_, port)] = runner.addresses
    print(json.dumps({"base_url": f"http://127.0.0.1:{port}/v1"}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--embedding-ms", type=float, default=0.0)
    parser.add_argument("--floats", action="store_true", help="ignore a request for base64")
    given = parser.parse_args()
    options = {"latency_ms": given.latency_ms, "embedding_ms": given.embedding_ms}
    asyncio.run(serve(Provider(**options, floats=given.floats)))  # noqa: TID251
