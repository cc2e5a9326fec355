"""Stand-in for a language model in another process, so that its CPU is not counted."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class BenchModel:
    base_url: str
    http: httpx.AsyncClient

    @property
    def settings(self) -> dict[str, str]:
        """Settings that make a stack use this model."""
        return {
            "MEMLANE_LLM__MODEL": "openai/stand-in",
            "MEMLANE_LLM__API_BASE": self.base_url,
            "MEMLANE_LLM__API_KEY": "sk-bench",
        }

    async def misbehave(self, **rule: Any) -> None:
        await self.http.post("/admin/rules", json={"rules": [rule]})

    async def behave(self) -> None:
        await self.http.delete("/admin/rules")

    async def take_calls(self) -> list[dict[str, Any]]:
        """Return the requests since the previous call."""
        calls = (await self.http.get("/admin/calls")).json()["calls"]
        await self.http.delete("/admin/calls")
        return list(calls)


@asynccontextmanager
async def remote_model(*, latency_ms: float = 0.0) -> AsyncIterator[BenchModel]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.llm_server", "--latency-ms", str(latency_ms)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        base_url = json.loads(await process.stdout.readline())["base_url"]
        async with httpx.AsyncClient(base_url=base_url.removesuffix("/v1")) as http:
            yield BenchModel(base_url, http)
    finally:
        process.terminate()
        await process.wait()
