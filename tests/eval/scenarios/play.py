"""A scenario as a user of a real stack: each turn is one add over HTTP, awaited to its end."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.eval.scenarios.dialogues import Scenario, Turn
from tests.support.stack import Client, wait_until

WITHIN_S = 300
LONGEST_POLL_S = 60
# Messages without a fact, as long as those of a real conversation.
SMALL_TALK = [
    "The train was late once more, and the coffee at the station tasted of paper.",
    "That sounds like a slow start; did the rest of the day make up for it at least a little?",
    "Somewhat, the meeting went well and nobody asked about the numbers on the third page.",
    "Good to hear, a short meeting is the best kind, and the numbers can wait until they matter.",
    "It rained the whole way home, so the umbrella by the door did nothing for anyone.",
    "An umbrella by the door keeps only the door dry; perhaps a second one in the bag helps.",
    "Maybe, though the bag is heavy enough with the laptop and all of those papers in it.",
    "Papers weigh more than they look; some of them could be thrown away without any harm.",
    "True, half of them are printed mails that were already out of date when they were printed.",
    "Then the printer deserves a rest, and the bag will thank everyone for the lighter load.",
]
UPDATES = Path(__file__).parents[1] / "updates"


@dataclass(frozen=True)
class Played:
    """A played scenario: its events in the order of arrival, and the memories at the end.

    `lost`: memories that stood before the first turn, and no longer stand.
    """

    scenario: Scenario
    user: str
    events: Sequence[dict[str, Any]]
    memories: Sequence[dict[str, Any]]
    lost: frozenset[str] = frozenset()

    @property
    def texts(self) -> list[str]:
        return [memory["memory"] for memory in self.memories]

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["status"] != "SUCCEEDED"]


async def play(client: Client, scenario: Scenario, user: str, turns: Sequence[Turn]) -> Played:
    """Post the turns in this order, each after the end of the one before it.

    Memories that the user has already are no part of the result.
    """
    earlier = {memory["memory"] for memory in await client.memories(user)}
    events = []
    for turn in turns:
        body = {
            "messages": list(turn.messages),
            "user_id": user,
            "timestamp": int(turn.at.timestamp()),
            **turn.options,
        }
        answer = await client.http.post("/v3/memories/add/", json=body)
        assert answer.status_code == 200, answer.text
        events.append(await ended(client, answer.json()["event_id"]))
    memories = await client.memories(user)
    own = [memory for memory in memories if memory["memory"] not in earlier]
    lost = earlier - {memory["memory"] for memory in memories}
    return Played(scenario, user, events, own, frozenset(lost))


async def fill(client: Client, user: str, texts: Sequence[str]) -> None:
    """Store texts for a user without a model."""
    body = {"messages": "-", "deduced_memories": texts, "infer": False, "user_id": user}
    answer = await client.http.post("/v3/memories/add/", json=body)
    assert answer.status_code == 200, answer.text
    event = await ended(client, answer.json()["event_id"])
    assert len(event["results"]) == len(texts), event


async def converse(client: Client, user: str) -> None:
    """Post a conversation that no memory comes from, and wait for its summary."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(SMALL_TALK * 2)]
    body = {"messages": messages, "user_id": user}
    answer = await client.http.post("/v3/memories/add/", json=body)
    assert answer.status_code == 200, answer.text
    await ended(client, answer.json()["event_id"])

    async def summarized() -> bool:
        answer = await client.http.get("/v1/summaries/", params={"user_id": user})
        assert answer.status_code == 200, answer.text
        return bool(answer.json()["results"])

    await wait_until(summarized, within_s=WITHIN_S, what="a summary", every_s=0.2)


def other_memories(language: str, count: int) -> list[str]:
    """Memories of other people in this language, from the stores of the candidates."""
    people = json.loads((UPDATES / f"{language}.json").read_text("utf-8"))["memories"]
    texts = [t for attributes in people.values() for each in attributes.values() for t in each]
    return [f"{text} ({n})" for n, text in enumerate(texts * count)][:count]


async def ended(client: Client, event_id: str) -> dict[str, Any]:
    """The event at its end. Fails after WITHIN_S."""
    for _ in range(WITHIN_S // LONGEST_POLL_S):
        event = await client.event(event_id, wait=LONGEST_POLL_S)
        if event["status"] in ("SUCCEEDED", "FAILED"):
            return event
    raise AssertionError(f"not ended after {WITHIN_S} s: {event}")


def shuffled(scenario: Scenario) -> list[Turn]:
    """The turns in another order, which is always the same for a scenario."""
    turns = list(scenario.turns)
    order = random.Random(scenario.name)
    while len(turns) > 1 and turns == list(scenario.turns):
        order.shuffle(turns)
    return turns
