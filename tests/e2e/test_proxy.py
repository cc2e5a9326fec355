"""`memlane proxy` and `memlane hook` against a real stack and a stand-in provider."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from tests.support.chat_provider import ChatProvider, chat_frames
from tests.support.outbox_run import accepted_turns
from tests.support.proxy_process import memory_proxy
from tests.support.stack import ROOT, Client, Stack, wait_until

CHAT = "/v1/chat/completions"


def asks(text: str, user_id: str) -> dict[str, object]:
    return {"user": user_id, "stream": True, "messages": [{"role": "user", "content": text}]}


async def test_a_stream_of_10_000_chunks_is_unchanged_and_the_turn_is_remembered(
    stack: Stack, client: Client, tmp_path: Path
) -> None:
    await client.ended(await client.add("proxied", "I live in Turku."))
    provider = ChatProvider(chat_frames(10_000, identity="chatcmpl-1"))
    async with provider.serve(), memory_proxy(stack, provider.url, tmp_path) as http:
        answer = await http.post(CHAT, json=asks("Where do I live? I keep bees.", "proxied"))
        receipt = await http.get(answer.headers["X-Memlane-Event"])
    assert answer.content == provider.content
    assert answer.headers["X-Memlane-Search"].startswith("ok; results=")
    assert "Turku" in provider.bodies[0]["messages"][0]["content"]
    assert receipt.json()["status"] == "SUCCEEDED"
    assert any("bees" in row["memory"] for row in await client.memories("proxied"))


async def test_the_stream_goes_on_without_the_api_and_the_add_arrives_once(tmp_path: Path) -> None:
    provider = ChatProvider(chat_frames(100, identity="chatcmpl-2"), pause_after=50)
    async with Stack(tmp_path / "data") as stack, provider.serve():
        async with memory_proxy(stack, provider.url, tmp_path / "outbox") as http:
            answering = asyncio.create_task(http.post(CHAT, json=asks("I keep bees.", "killed")))
            async with asyncio.timeout(60):
                await provider.paused.wait()
            stack.kill("api")
            provider.go_on.set()
            answer = await answering
            assert answer.content == provider.content
            url = answer.headers["X-Memlane-Event"]

            async def is_remembered() -> bool:
                receipt = (await http.get(url)).json()
                return bool(receipt.get("status") == "SUCCEEDED")

            await wait_until(is_remembered, within_s=90, what="the receipt", every_s=0.2)
        assert await accepted_turns(stack, "killed") == ["I keep bees."]


async def test_a_hook_stores_a_prompt_and_the_next_one_gets_it(
    stack: Stack, client: Client, tmp_path: Path
) -> None:
    options = ("--user", "coder", "--outbox", str(tmp_path), "--search-timeout", "30")

    def hook(prompt: str) -> str:
        payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}
        done = subprocess.run(
            [sys.executable, "-m", "deploy.cli", "hook", *options],
            cwd=ROOT,
            env=stack.environment,
            input=json.dumps(payload),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    await asyncio.to_thread(hook, "I prefer tabs to spaces.")

    async def is_stored() -> bool:
        return any("tabs" in row["memory"] for row in await client.memories("coder"))

    await wait_until(is_stored, within_s=60, what="the memory", every_s=0.1)
    output = json.loads(await asyncio.to_thread(hook, "Do I prefer tabs or spaces?"))
    assert "tabs" in output["hookSpecificOutput"]["additionalContext"]
