"""The page Users: users, agents, apps and runs, and a search by a part of their id or name."""

from __future__ import annotations

import re

import pytest

from api.console.pages import users
from pipeline.tenants import owners
from tests.support.api_service import Service
from tests.support.console_client import Browser


async def listed(browser: Browser, query: str = "") -> list[tuple[str, str]]:
    """Kind and id of each row of the page, which links to the memories of the owner."""
    page = await browser.get(f"/console/users{query}")
    links = re.findall(r'class="row" href="[^"]*/memories\?(\w+)_id=([^"]*)"', page.text)
    return [(kind, name) for kind, name in links]


async def test_owners_are_listed_newest_first_and_by_kind(
    service: Service, browser: Browser
) -> None:
    await service.add("I like tea. I live in Bern.", user_id="maya", agent_id="bot")
    await service.add("I like rum.", user_id="jon", run_id="r1")
    everyone = await listed(browser)
    assert set(everyone) == {("user", "maya"), ("agent", "bot"), ("user", "jon"), ("run", "r1")}
    assert await listed(browser, "?kind=user") == [("user", "jon"), ("user", "maya")]
    page = await browser.get("/console/users?kind=agent")
    assert re.findall(r'<td class="num">(\d+)</td>', page.text) == ["2"]
    assert (await browser.get("/console/users?kind=lane")).status_code == 400


async def test_an_owner_is_listed_by_a_part_of_the_id_or_name(
    service: Service, browser: Browser
) -> None:
    await service.add("I like tea.", user_id="crm:Maya-4711")
    await service.add("I like rum.", user_id="100%_jon")
    answer = await service.client.post("/v1/users/", json={"user_id": "u-9", "name": "Ada Mayer"})
    assert answer.status_code == 201
    assert {name for _, name in await listed(browser, "?part=MAY")} == {"crm%3AMaya-4711", "u-9"}
    assert await listed(browser, "?part=%25_") == [("user", "100%25_jon")]  # no pattern
    assert await listed(browser, "?part=MAY&kind=agent") == []
    assert await listed(browser, "?part=unknown") == []
    assert (await browser.get(f"/console/users?part={'x' * 300}")).status_code == 400


async def test_a_whole_id_matches_also_beyond_the_owners_that_are_looked_through(
    service: Service, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "older", "new"):
        await service.add("I like tea.", user_id=name)
    await service.engine.ledger.balance.fold()
    monkeypatch.setattr(owners, "LOOKED_THROUGH", 1)
    assert await listed(browser, "?part=ol") == []
    assert await listed(browser, "?part=old") == [("user", "old")]


async def test_pages_of_owners_follow_each_other(
    service: Service, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users, "SHOWN", 2)
    for name in ("u1", "u2", "u3"):
        await service.add("I like tea.", user_id=name)
    first = await listed(browser)
    assert [*first, *await listed(browser, "?page=2")] == [("user", f"u{n}") for n in (3, 2, 1)]
    assert "Give more" in (await browser.get("/console/users?part=u")).text
    assert "Give more" not in (await browser.get("/console/users?part=u1")).text
