"""Procedural memories: one summary for each add, apart from all other memories; recalled text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from pipeline.domain.events import AddOptions
from pipeline.domain.facts import MemoryType
from pipeline.domain.filters import parse
from pipeline.domain.memories import Memory
from pipeline.domain.messages import Message, Role
from pipeline.domain.usage import Usage
from pipeline.models.prompted import PromptedModel
from pipeline.ports import ChatTurn, Completion
from pipeline.text.recalled import fenced
from tests.support.engine import Engine

PROCEDURE = AddOptions(procedural=True)
WORK = [
    Message(Role.SYSTEM, "You are careful."),
    Message(Role.USER, "Find the price of ticket A-17."),
    Message(Role.ASSISTANT, "GET /tickets/A-17"),
    Message(Role.TOOL, '{"price": 41.50, "log": "' + "x" * 500 + '"}'),
]
SUMMARY = "1. Objective: find the price of ticket A-17.\n3.1 GET /tickets/A-17: 41.50"


@dataclass
class Scribe:
    """LLM that sums up a log, or states one fact. `prompts`: all but those of graphs."""

    name: str = "fake/scribe"
    prompts: list[str] = field(default_factory=list)

    async def complete(
        self, turns: Sequence[ChatTurn], *, schema_name: str, schema: Mapping[str, object]
    ) -> Completion:
        if schema_name == "relations":
            return Completion('{"relations": [], "ended": []}', Usage(self.name, 1, 10, 10))
        self.prompts.append("\n".join(turn.content for turn in turns))
        if "## Log" in turns[1].content:
            answer = json.dumps({"summary": SUMMARY + f" ({len(self.prompts)})"})
        else:
            answer = json.dumps({"facts": [{"messages": [1], "text": "User moved to Bern."}]})
        return Completion(answer, Usage(self.name, 1, 10, 10))

    async def close(self) -> None:
        """Nothing to release."""


async def add(engine: Engine, messages: list[Message], options: AddOptions) -> UUID:
    event_id = await engine.send(engine.scope(), messages, options)
    await engine.drain()
    assert (await engine.event(event_id)).status == "SUCCEEDED"
    return event_id


async def stored(engine: Engine) -> list[Memory]:
    tree = parse({"user_id": "maya"})
    rows, _ = await engine.ledger.memories.page(
        engine.project.id, tree, expired=True, limit=10, offset=0
    )
    return rows


async def test_an_agents_work_is_one_summary_with_exact_results(engine: Engine) -> None:
    scribe = Scribe()
    engine.with_model(PromptedModel(scribe))
    event_id = await add(engine, WORK, PROCEDURE)
    [memory] = await stored(engine)
    assert (memory.text, memory.memory_type) == (f"{SUMMARY} (1)", MemoryType.PROCEDURAL)
    [prompt] = scribe.prompts
    assert "x" * 500 in prompt
    assert "You are careful." not in prompt
    [line] = (await engine.event(event_id)).receipt
    assert line.outcome == "ADD"


async def test_summaries_of_a_batch_stay_apart(engine: Engine) -> None:
    scribe = Scribe()
    engine.with_model(PromptedModel(scribe))
    for text in ("Find A.", "Find B."):
        await engine.add(text, options=PROCEDURE)
    await engine.drain()
    assert len(scribe.prompts) == 2
    assert {memory.text for memory in await stored(engine)} == {f"{SUMMARY} (1)", f"{SUMMARY} (2)"}


async def test_a_summary_is_not_compared_with_facts(engine: Engine) -> None:
    scribe = Scribe()
    engine.with_model(PromptedModel(scribe))
    await add(engine, WORK, PROCEDURE)
    await add(engine, [Message(Role.USER, "I moved to Bern.")], AddOptions())
    assert not any("## Facts" in prompt for prompt in scribe.prompts)
    assert {memory.memory_type for memory in await stored(engine)} == {
        MemoryType.PROCEDURAL,
        MemoryType.SEMANTIC,
    }


async def test_rules_keep_the_log_itself(engine: Engine) -> None:
    await add(engine, WORK, PROCEDURE)
    [memory] = await stored(engine)
    assert memory.text.startswith("1. Objective: Find the price of ticket A-17.\n2. Actions:\n2.1")
    assert "41.50" in memory.text


async def test_recalled_memories_are_not_extracted_again(engine: Engine) -> None:
    scribe = Scribe()
    engine.with_model(PromptedModel(scribe))
    recalled = fenced("[1] 2024-05-07 Maya: I bought a tent.")
    only = [Message(Role.USER, recalled), Message(Role.USER, f"{recalled}\nI moved to Bern.")]
    event_id = await add(engine, only, AddOptions())
    [prompt] = scribe.prompts
    assert "tent" not in prompt
    assert '1 user: "I moved to Bern."' in prompt
    [line] = (await engine.event(event_id)).receipt
    assert line.message_ordinal == 1
