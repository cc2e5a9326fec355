"""A broker that dies while every stage of a worker is busy, so that its consumer is paused."""

from __future__ import annotations

from pathlib import Path

from deploy.stack.servers import Redis
from tests.support.chaos_ledger import holds
from tests.support.llm_server import LLMServer
from tests.support.stack import Stack

STAGES = 2


async def test_a_worker_goes_on_after_the_broker_died_under_all_of_its_stages(
    tmp_path: Path,
) -> None:
    """The new broker has none of the old hints; the worker must have free slots all the same."""
    with Redis(tmp_path / "broker") as broker:
        async with LLMServer() as model:
            settings = {
                "MEMLANE_BROKER_URL": broker.url,
                "MEMLANE_WORKER_CONCURRENCY": str(STAGES),
                "MEMLANE_LLM__MODEL": "openai/stand-in",
                "MEMLANE_LLM__API_BASE": model.base_url,
                "MEMLANE_LLM__API_KEY": "sk-test",
            }
            with Stack(tmp_path / "stack", settings) as stack:
                await _die_under_all_stages(stack, broker, model)


async def _die_under_all_stages(stack: Stack, broker: Redis, model: LLMServer) -> None:
    async with stack.client() as client:
        await client.ended(await client.add("before", "I like tea."))
        model.on("extract", "hold")
        calls = model.count("extract")
        ids = [await client.add(f"busy-{n}", "I like tea.") for n in range(STAGES)]

        async def all_busy() -> bool:
            return model.count("extract") == calls + STAGES

        assert await holds(all_busy, within_s=60)
        broker.kill()
        model.release()
        log = stack.data_dir / "logs" / "worker-1.log"

        async def hints_of_all_stages_failed() -> bool:
            return log.read_text().count("kick_failed") >= STAGES

        assert await holds(hints_of_all_stages_failed, within_s=60)
        broker.start()
        events = await client.all_ended(ids, within_s=120)
        assert {event["status"] for event in events} == {"SUCCEEDED"}
