"""Replays of a scope, as a client of the API starts and reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import MalformedAnswer
from pipeline.domain.events import Instructions
from pipeline.domain.facts import Decision, Fact, Neighbour, Outcome
from pipeline.domain.usage import Answer
from pipeline.ports import ExtractionRequest
from tests.support.api_service import MAYA, Service

REPLAYS = "/v1/replays/"


@dataclass
class Tagged(RulesModel):
    """Model that keeps each message whole, after its tag or the custom instructions."""

    tag: str = ""
    seen: list[str | None] = field(default_factory=list)

    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        if any("poison" in sourced.message.content for sourced in request.messages) and self.tag:
            raise MalformedAnswer("no JSON")
        self.seen.append(request.instructions.custom)
        tag = self.tag or request.instructions.custom or ""
        return Answer(
            tuple(
                Fact(f"{tag} {sourced.message.content}".strip(), sourced.source)
                for sourced in request.messages
            )
        )

    async def decide(
        self, facts: Sequence[Fact], neighbours: Sequence[Neighbour], instructions: Instructions
    ) -> Answer[tuple[Decision, ...]]:
        return Answer(tuple(Decision(n, Outcome.ADD, "New.", f.text) for n, f in enumerate(facts)))


async def begun(service: Service, **body: object) -> dict[str, Any]:
    answer = await service.client.post(REPLAYS, json=MAYA | body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def replayed(service: Service, **body: object) -> dict[str, Any]:
    """A replay that has ended."""
    replay = await begun(service, **body)
    await service.engine.drain()
    await service.engine.services.index.catch_up()
    return await look(service, replay["id"])


async def look(service: Service, replay_id: str, part: str = "") -> dict[str, Any]:
    answer = await service.client.get(f"{REPLAYS}{replay_id}/{part}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def switch(service: Service, replay_id: str, **body: object) -> httpx.Response:
    return await service.client.post(f"{REPLAYS}{replay_id}/switch/", json=body)


async def texts(service: Service) -> list[str]:
    return sorted(row["memory"] for row in await service.listed(**MAYA))
