"""Each pair of decisions of people about one memory, made at the same time.

Both are answered by name, and the state is that of one order of the two.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import Table, select

from pipeline.domain.events import AddOptions
from pipeline.domain.suggestions import SuggestionKind
from pipeline.ledger.tables import conflicts, lanes
from tests.integration.memories.test_decisions_at_once import until_waiting
from tests.integration.suggestions.test_accepting import suggest
from tests.integration.suggestions.test_shown_states import contested
from tests.support.api_service import Service, error_of, serving
from tests.support.engine import Engine
from tests.support.shown_states import wrong_marks

GREEN, CIDER, BOTH = "Maya likes green tea", "Maya likes cider", "Maya likes tea and coffee"
USERS = count()


@pytest.fixture
async def service(engine: Engine) -> AsyncIterator[Service]:
    async with serving(engine.ledger) as service:
        yield service


@dataclass(frozen=True, slots=True)
class Scene:
    """A scope with a memory that was changed, another one, their conflict, and suggestions."""

    service: Service
    user_id: str
    memory: str
    other: str
    event: str
    conflict: str
    delete: str
    combine: str

    def send(self, method: str, path: str, body: object = None) -> Awaitable[httpx.Response]:
        return self.service.client.request(method, path, json=body)

    async def state(self) -> dict[str, Any]:
        """The scope as the API shows it, without ids."""
        listed = await self.service.listed(user_id=self.user_id)
        conflict = (await self.send("GET", f"/v1/conflicts/{self.conflict}/")).json()
        decided = [
            (await self.send("GET", f"/v1/suggestions/{suggestion}/")).json()["state"]
            for suggestion in (self.delete, self.combine)
        ]
        return {
            "memories": sorted((row["memory"], row["pinned"]) for row in listed),
            "conflict": (conflict["state"], conflict["resolution"]),
            "suggestions": decided,
        }


async def prepared(service: Service) -> Scene:
    user_id = f"user-{next(USERS)}"
    ids = []
    for drink in ("tea", "coffee"):
        options = AddOptions(infer=False)
        await service.engine.add(f"Maya likes {drink}", user_id=user_id, options=options)
        await service.engine.drain()
        ids += [r["id"] for r in await service.listed(user_id=user_id) if r["id"] not in ids]
    memory, other = ids
    change = await suggest(service, SuggestionKind.UPDATE, [memory], GREEN, user_id=user_id)
    accepted = (await service.client.post(f"/v1/suggestions/{change}/accept/")).json()
    conflict = await contested(service, user_id)
    delete = await suggest(service, SuggestionKind.DELETE, [memory], user_id=user_id)
    combine = await suggest(service, SuggestionKind.COMBINE, [memory, other], BOTH, user_id=user_id)
    event = accepted["decision_event_id"]
    return Scene(service, user_id, memory, other, event, str(conflict), delete, combine)


# A decision: the method, the path and the body of its request, with the ids of the scene.
DECISIONS: dict[str, tuple[str, str, Callable[[Scene], object]]] = {
    "edit": ("PUT", "/v1/memories/{memory}/", lambda _: {"text": CIDER}),
    "pin": ("PUT", "/v1/memories/{memory}/", lambda _: {"pinned": True}),
    "edit several": (
        "PUT",
        "/v1/batch/",
        lambda scene: {
            "memories": [
                {"memory_id": scene.other, "text": GREEN},
                {"memory_id": scene.memory, "text": "Maya likes coffee"},
            ]
        },
    ),
    "delete": ("DELETE", "/v1/memories/{memory}/", lambda _: None),
    "delete all": ("DELETE", "/v1/memories/?user_id={user_id}", lambda _: None),
    "restore": ("POST", "/v1/memories/{memory}/restore/", lambda _: {"version": 1}),
    "undo": ("POST", "/v1/event/{event}/undo/", lambda _: {"force": True}),
    "rate": (
        "POST",
        "/v1/feedback/",
        lambda scene: {"memory_id": scene.memory, "feedback": "POSITIVE"},
    ),
    "accept": ("POST", "/v1/suggestions/{delete}/accept/", lambda _: None),
    "reject": ("POST", "/v1/suggestions/{delete}/reject/", lambda _: None),
    "merge": ("POST", "/v1/suggestions/{combine}/accept/", lambda _: None),
    "keep": ("POST", "/v1/conflicts/{conflict}/resolve/", lambda scene: {"keep": scene.memory}),
    "keep other": (
        "POST",
        "/v1/conflicts/{conflict}/resolve/",
        lambda scene: {"keep": scene.other},
    ),
    "replace": ("POST", "/v1/conflicts/{conflict}/resolve/", lambda _: {"text": CIDER}),
}
NAMES = tuple(DECISIONS)


async def decide(scene: Scene, name: str) -> httpx.Response:
    method, path, body = DECISIONS[name]
    names = {key: getattr(scene, key) for key in scene.__slots__}
    return await scene.send(method, path.format(**names), body(scene))


def assert_named(answer: httpx.Response, names: tuple[str, ...]) -> None:
    """Check that an answer is a success, or a refusal with a sentence."""
    assert answer.status_code in {200, 404, 409, 412}, (names, answer.text)
    assert answer.status_code == 200 or error_of(answer).endswith((".", "!")), (names, answer.text)


async def in_turn(service: Service, *names: str) -> dict[str, Any]:
    """The state after these decisions, one after the other."""
    scene = await prepared(service)
    for name in names:
        assert_named(await decide(scene, name), names)
    return await scene.state()


async def at_once(service: Service, table: Table, *names: str) -> dict[str, Any]:
    """The state after decisions that wait for rows of the scope at the same time."""
    scene = await prepared(service)
    lane_id = service.engine.scope(scene.user_id).lane_id
    rows = select(table.c.id).where(table.c.id.in_([lane_id, UUID(scene.conflict)]))
    deciding: list[asyncio.Task[httpx.Response]] = []
    async with service.engine.ledger.engine.begin() as holding:
        await holding.execute(rows.with_for_update())
        for name in names:
            deciding.append(asyncio.create_task(decide(scene, name)))
            await until_waiting(service, lambda: sum(not task.done() for task in deciding))
    for answer in await asyncio.gather(*deciding):
        assert_named(answer, names)
    return await scene.state()


@pytest.mark.parametrize("second", NAMES)
async def test_the_state_after_two_decisions_at_once_is_that_of_one_order(
    service: Service, second: str
) -> None:
    for first in NAMES[: NAMES.index(second) + 1]:
        orders = [await in_turn(service, first, second), await in_turn(service, second, first)]
        assert await at_once(service, conflicts, first, second) in orders, (first, second)
        assert await at_once(service, lanes, second, first) in orders, (second, first)
    assert await wrong_marks(service.engine.ledger.engine) == []
