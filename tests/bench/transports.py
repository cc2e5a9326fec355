"""`python -m tests.bench.transports NAME BASE_URL`: CPU of a completion through LiteLLM, in ms.

One process for each transport, because LiteLLM caches its clients.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

CALLS, WARM, AT_ONCE = 400, 40, 20
PROMPT = [{"role": "user", "content": "word " * 400}]


def request(base_url: str) -> dict[str, Any]:
    return {
        "model": "openai/stand-in",
        "messages": PROMPT,
        "api_base": base_url,
        "api_key": "none",
        "max_retries": 0,
    }


async def many(call: Callable[[], Awaitable[object]], count: int) -> None:
    free = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with free:
            await call()

    await asyncio.gather(*(one() for _ in range(count)))


async def measure(call: Callable[[], Awaitable[object]]) -> float:
    await many(call, WARM)
    began = time.process_time()
    await many(call, CALLS)
    return 1000 * (time.process_time() - began) / CALLS


async def main(name: str, base_url: str) -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # noqa: TID251  LiteLLM's own
    import litellm

    litellm.disable_aiohttp_transport = name == "httpx"
    options = request(base_url)
    if name == "sync_in_threads":
        pool = ThreadPoolExecutor(AT_ONCE)
        loop = asyncio.get_running_loop()
        cost = await measure(
            lambda: loop.run_in_executor(pool, lambda: litellm.completion(**options))
        )
    else:
        cost = await measure(lambda: litellm.acompletion(**options))
    print(round(cost, 2))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))  # noqa: TID251  an entry of its own
