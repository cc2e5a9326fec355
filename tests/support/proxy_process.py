"""The memory proxy as a process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from deploy.stack import ports
from tests.support.stack import ROOT, Stack, wait_until


@asynccontextmanager
async def memory_proxy(
    stack: Stack, provider_url: str, outbox: Path, *options: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of `memlane proxy`, which uses this stack and this provider."""
    listen = f"127.0.0.1:{ports.choose()}"
    command = ["-m", "deploy.cli", "proxy", "--listen", listen, "--outbox", str(outbox)]
    providers = ["--openai", provider_url, "--anthropic", provider_url, "--search-timeout", "30"]
    process = subprocess.Popen(  # noqa: ASYNC220  it only starts
        [sys.executable, *command, *providers, *options],
        cwd=ROOT,
        env=stack.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = await asyncio.to_thread(process.stdout.readline)
        assert first == f"Proxy of {stack.url}: http://{listen}\n"
        async with httpx.AsyncClient(base_url=f"http://{listen}", timeout=60) as client:

            async def is_up() -> bool:
                try:
                    return (await client.get("/healthz")).is_success
                except httpx.TransportError:
                    return False

            await wait_until(is_up, within_s=60, what="the proxy", every_s=0.1)
            yield client
    finally:
        process.terminate()
        assert await asyncio.to_thread(process.wait, 60) in (0, -15)
        if process.stdout is not None:
            process.stdout.close()
