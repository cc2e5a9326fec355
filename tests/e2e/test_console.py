"""The console of a real stack in a real browser: every button is pressed, and a worker dies."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from playwright.async_api import Browser as Chromium
from sqlalchemy import insert, text

from api.app import create_app
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.ledger.tables import conflict_members, conflicts, suggestions
from pipeline.settings import Settings
from pipeline.stores import Ledger
from pipeline.text.equality import text_hash
from tests.support.chaos_ledger import database_url
from tests.support.chromium import Tab, chromium, tab
from tests.support.engine import build_ledger
from tests.support.stack import Stack, wait_until

ALL_DEAD = """
UPDATE webhook_deliveries SET state = 'DEAD', ended_at = now(), due_at = NULL
WHERE webhook_id IN (SELECT id FROM webhooks WHERE name = 'door')
"""
SITE = "https://chat.example.org"


def forms() -> set[str]:
    """The routes of all forms."""
    return {
        context.path.removesuffix("/") if context.path != "/user/" else "/user"
        for context in iter_route_contexts(create_app(Settings()).routes)
        if context.path
        and context.path.startswith(("/console", "/user"))
        and "POST" in (context.methods or ())
    }


@dataclass
class Person:
    """A person at a browser. `pressed`: the forms that were sent, as routes."""

    tab: Tab
    stack: Stack
    client: httpx.AsyncClient
    ledger: Ledger
    project_id: ProjectId
    pressed: set[str] = field(default_factory=set)

    @classmethod
    async def at(
        cls, opened: Tab, stack: Stack, client: httpx.AsyncClient, ledger: Ledger
    ) -> Person:
        ping = (await client.get("/v1/ping/")).json()
        person = cls(opened, stack, client, ledger, ProjectId(UUID(ping["project_id"])))
        routes = sorted(forms(), key=lambda route: (route.count("{"), route))
        patterns = {route: re.compile(re.sub(r"{\w+}", "[^/]+", route)) for route in routes}

        def note(sent: Any) -> None:
            if sent.method == "POST":
                path = urlsplit(sent.url).path.removesuffix("/")
                person.pressed |= set(
                    [route for route in routes if patterns[route].fullmatch(path)][:1]
                )

        opened.page.on("request", note)
        opened.page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
        return person

    async def goes(self, path: str) -> None:
        await self.tab.open(f"/console{path}")

    async def fills(self, **values: str) -> None:
        for name, value in values.items():
            await self.tab.page.locator(f"main [name={name}]").first.fill(value)

    async def presses(self, button: str, then: str, *, within: str = "main") -> None:
        """Press the first button with this label, and wait for a text of the page that follows."""
        buttons = self.tab.page.locator(f"{within} button")
        pressed = buttons.filter(has_text=re.compile(f"^{button}")).first
        await self.tab.follow(pressed, f"main:has-text('{then}')")

    async def sees(self, words: str) -> None:
        await self.tab.page.locator("main").filter(has_text=words).wait_for()

    async def adds(self, user_id: str, *texts: str, **options: Any) -> str:
        turns = [{"role": "user", "content": words} for words in texts]
        body = {"messages": turns, "user_id": user_id} | options
        return str((await self.client.post("/v3/memories/add/", json=body)).json()["event_id"])

    async def remembers(self, user_id: str, *texts: str, **options: Any) -> str:
        event_id = await self.adds(user_id, *texts, **options)
        ended = await self.client.get(f"/v1/event/{event_id}/", params={"wait": 60})
        assert ended.json()["status"] == "SUCCEEDED", ended.text
        return event_id

    async def memories(self, user_id: str) -> list[dict[str, Any]]:
        body = {"filters": {"user_id": user_id}}
        return list((await self.client.post("/v3/memories/", json=body)).json()["results"])


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Chromium]:
    async with chromium() as started:
        yield started


async def test_every_button_works(stack: Stack, browser: Chromium) -> None:
    async with (
        AsyncExitStack() as closing,
        stack.client() as client,
        tab(browser, stack.url) as opened,
    ):
        ledger = build_ledger(database_url(stack))
        closing.push_async_callback(ledger.close)
        person = await Person.at(opened, stack, client.http, ledger)
        for part in (
            *(sign_in, playground, events, memory, inbox, conflict, curator, graph, failures),
            *(webhooks, costs, replays, tokens, user_page, views, erasures, admin, sign_out),
        ):
            await part(person)
        assert forms() - person.pressed == set()
        assert opened.faults == []


async def sign_in(person: Person) -> None:
    link = (await person.client.post("/v1/console/links/")).json()["url"]
    await person.tab.open(urlsplit(link).path)
    await person.presses("Open the console", "Newest events")
    await person.tab.page.context.clear_cookies()
    await person.goes("/live")
    await person.fills(key=person.stack.key)
    await person.presses("Sign in", "Newest events")


async def playground(person: Person) -> None:
    await person.goes("/playground")
    await person.fills(user_id="pia", conversation="I live in Berlin.\nassistant: Noted!")
    await person.presses("Remember", "User lives in Berlin")
    await person.tab.click("a:has-text('Undo …')", "main:has-text('Nothing has changed yet')")
    await person.presses("Undo", "The changes of the event are undone.")


async def events(person: Person) -> None:
    """Cancel events that no worker takes, and retry them."""
    person.stack.kill("worker-1", signal.SIGSTOP)
    cancelled = [await person.adds(f"idle-{n}", f"I own {n + 2} boats.") for n in range(3)]
    for event_id in cancelled:
        await person.goes(f"/events/{event_id}")
        await person.presses("Cancel", "no further model call")
    person.stack.kill("worker-1", signal.SIGCONT)
    await person.presses("Retry", "queued again")
    await person.goes(f"/events/{cancelled[1]}")
    await person.tab.page.click("summary:has-text('Retry with changes')")
    await person.presses("Dry run", "This is a dry run")


async def memory(person: Person) -> None:
    await person.remembers("mo", "I own a red bike.")
    await person.goes("/memories?user_id=mo")
    await person.tab.click("a.row", "text=Correct it")
    await person.fills(text="User owns a blue bike")
    await person.presses("Save", "The text is changed")
    await person.presses("Pin", "No model changes this memory now")
    await person.presses("Unpin", "Models may change this memory again")
    await person.tab.page.select_option("[name=feedback]", "POSITIVE")
    await person.presses("Rate", "The rating is stored")
    await person.presses("Delete", "The memory is deleted")
    await person.presses("Restore version 1", "The version is restored")


async def suggest(person: Person, user_id: str, number: int) -> None:
    [row, *_] = await person.memories(user_id)
    scope = Scope(person.project_id, user_id=user_id)
    target = {"memory_id": row["id"], "version": row["version"]}
    values = {"kind": "UPDATE", "origin": "event", "targets": [target]}
    words = {"proposed_text": f"User has {number} cats", "reason": "Two people say so."}
    owner = {"project_id": person.project_id, "lane_id": scope.lane_id}
    async with person.ledger.engine.begin() as connection:
        await connection.execute(
            insert(suggestions).values(
                id=uuid4(), content_hash=bytes([number]), **values, **words, **owner
            )
        )


async def inbox(person: Person) -> None:
    await person.remembers("cleo", "I own a cat.")
    for number in range(4):
        await suggest(person, "cleo", number)
    await person.goes("/inbox")
    for action in ("Reject", "Dismiss", "Accept"):
        await person.presses(action, "The decision is carried out")
    await suggest(person, "cleo", 9)
    await person.goes("/inbox")
    await person.tab.page.check("[data-all=ids]")
    await person.presses("Reject the ticked", "The decision is carried out")


async def open_conflict(
    ledger: Ledger, project_id: ProjectId, user_id: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Write an open conflict between two memories of a user."""
    lane_id, conflict_id = Scope(project_id, user_id=user_id).lane_id, uuid4()
    ids = [row["id"] for row in rows]
    pairs = [
        {
            "conflict_id": conflict_id,
            "memory_id": row["id"],
            "against_id": against,
            "lane_id": lane_id,
            "text_hash": text_hash(row["memory"]),
        }
        for row, against in zip(rows, reversed(ids), strict=True)
    ]
    async with ledger.engine.begin() as connection:
        await connection.execute(
            insert(conflicts).values(
                id=conflict_id, project_id=project_id, lane_id=lane_id, slot="zoe · pet",
                event_id=rows[0]["event_id"],
            )
        )  # fmt: skip
        await connection.execute(insert(conflict_members), pairs)


async def conflict(person: Person) -> None:
    await person.remembers("zoe", "I own a horse.", "I like rye bread.")
    rows = (await person.memories("zoe"))[:2]
    await open_conflict(person.ledger, person.project_id, "zoe", rows)
    await person.goes("/inbox?kind=conflicts")
    await person.tab.page.check("[name=keep][value=both]")
    await person.presses("Resolve", "The conflict is resolved")


async def curator(person: Person) -> None:
    await person.goes("/inbox?kind=curator&user_id=zoe")  # the ids of the filter, in the form too
    person.stack.kill("worker-1", signal.SIGSTOP)
    await person.presses("Look for suggestions", "It has started")
    await person.presses("End", "The run has ended")
    person.stack.kill("worker-1", signal.SIGCONT)
    await person.fills(every_hours="24", idle_minutes="60")
    await person.presses("Save schedule", "runs by itself")
    await person.fills(every_hours="")
    await person.presses("Save schedule", "only on request")


async def graph(person: Person) -> None:
    await person.remembers("gil", "My sister Ines works at Siemens.")
    await person.goes("/graph?user_id=gil")
    page = person.tab.page
    rows = page.locator("a[href*='/console/graph/']")
    nodes = {await row.inner_text(): await row.get_attribute("href") for row in await rows.all()}
    [firm, *_], other = (
        [path for name, path in nodes.items() if name == "Siemens"],
        next(path for name, path in nodes.items() if name != "Siemens"),
    )
    await person.tab.open(str(firm))
    await person.fills(name="Siemens AG")
    await person.presses("Save", "The entity is changed")
    await person.tab.open(str(firm))
    chosen = urlsplit(str(other)).path.rpartition("/")[2]
    await page.select_option("[name=into]", chosen)
    await person.presses("Merge", "The entities are merged")
    await person.tab.open(str(firm))
    await person.presses("Take the merge back", "The merge is taken back")
    await page.check("[name=sure]")
    await person.presses("Delete", "The entity is deleted")


async def failures(person: Person) -> None:
    await person.goes("/failures")
    await person.presses("Retry all", "The events are queued again")


async def webhooks(person: Person) -> None:
    await person.goes("/webhooks")
    await person.fills(name="door", url="https://hooks.example.org/x")
    await person.presses("Create", "This secret signs")
    await person.remembers("hal", "I own a dog.")
    async with person.ledger.engine.begin() as connection:
        await connection.execute(text(ALL_DEAD))
    await person.goes("/webhooks")
    await person.tab.click("a.row", "h1:has-text('Webhook door')")
    await person.presses("Send again", "The delivery is sent again")
    await person.presses("Turn off", "Turn on")
    await person.tab.page.check("[name=sure]")
    await person.presses("Delete", "The webhook is deleted")


async def costs(person: Person) -> None:
    await person.goes("/costs")
    await person.fills(project_tokens="1000000")
    await person.presses("Save budgets", "0 % used")
    await person.fills(project_tokens="")
    await person.presses("Save budgets", "The project has no budget")


async def replays(person: Person) -> None:
    await person.remembers("rex", "I live in Bergen.")
    for button, then in (("Discard", "The replay is discarded"), ("Switch", "are in force")):
        await person.goes("/replays?user_id=rex")
        await person.presses("Start", "It has started")
        await person.sees("ready")
        await person.tab.page.reload(wait_until="commit")
        await person.presses(button, then)


async def tokens(person: Person) -> None:
    await person.goes("/user-tokens")
    await person.fills(origins=SITE)
    await person.presses("Save sites", "Saved.")
    await person.fills(user_id="rex")
    await person.presses("Create token", "It is shown only once")
    await person.goes("/user-tokens")
    await person.presses("Revoke", "The token is revoked")


async def user_page(person: Person) -> None:
    await person.remembers("una", "I live in Oslo.", "I own a canoe.")
    body = {"user_id": "una", "rights": ["read", "correct", "delete"]}
    token = (await person.client.post("/v1/user-tokens/", json=body)).json()["token"]
    await person.tab.page.goto(f"{person.stack.url}/user/#{token}", wait_until="commit")
    await person.sees("User lives in Oslo")
    assert "#" not in person.tab.page.url
    await person.fills(keywords="canoe")
    await person.presses("Find", "User owns a canoe")
    await person.presses("Correct, history", "How it came to be")
    await person.fills(text="User owns two canoes")
    await person.presses("Save", "Your correction is stored")
    await person.tab.page.locator("main summary").filter(has_text="Delete").first.click()
    await person.presses("Yes, delete", "It is deleted")
    async with person.tab.page.expect_download() as saved:
        await person.tab.page.click("button:has-text('Download')", no_wait_after=True)
    assert "Oslo" in Path(await (await saved.value).path()).read_text("utf-8")
    await person.tab.page.check("[name=sure]")
    await person.presses("Erase all", "Everything about you is erased")
    assert await person.memories("una") == []


async def views(person: Person) -> None:
    await person.goes("/events?status=FAILED")
    await person.tab.page.click("summary:has-text('Save this view')")
    await person.fills(name="Broken")
    await person.presses("Save", "The view is saved")
    await person.goes("/live")
    await person.presses("Delete", "The view is deleted")


async def erasures(person: Person) -> None:
    await person.remembers("eve", "I live in Rome.")
    await person.goes("/erasures")
    await person.fills(user_id="eve")
    await person.tab.page.check("[name=sure]")
    await person.presses("Erase for good", "none of it can be read any more")
    await person.sees("succeeded")


async def admin(person: Person) -> None:
    await person.goes("/admin")
    await person.tab.page.fill("form[action$='/admin/keys'] [name=name]", "desk")
    await person.presses("Create key", "It is shown only once")
    await person.goes("/admin")
    await person.presses("Revoke", "The key is revoked", within="tr:has-text('desk')")
    await person.fills(email="noor@example.org")
    await person.tab.page.fill("form[action$='/admin/members'] [name=email]", "noor@example.org")
    await person.presses("Add member", "Saved.")
    await person.presses("Remove", "The member is removed")
    await person.tab.page.fill("form[action$='/admin/projects'] [name=name]", "second")
    await person.presses("Create project", "Saved.")
    await person.goes("/audit")
    await person.sees("Create a project in the organization")


async def sign_out(person: Person) -> None:
    await person.goes("/live")
    await person.presses("Sign out", "You have signed out", within=".who")


async def test_a_worker_dies_and_the_page_shows_how_the_event_ends(
    stack: Stack, browser: Chromium
) -> None:
    async with stack.client() as client, tab(browser, stack.url, stack.key) as opened:
        stack.kill("worker-1", signal.SIGSTOP)
        event_id = await client.add("wim", "I live in Delft.", "I own a red bike.")
        await opened.open(f"/console/events/{event_id}")
        await opened.page.wait_for_selector("button:has-text('Cancel')")
        live = await opened.page.context.new_page()
        await live.goto(f"{stack.url}/console/live", wait_until="commit")
        # A browser may stop the frames of a tab behind another, and Playwright waits for frames.
        await opened.page.bring_to_front()
        killed = stack.kill("worker-1")

        async def back() -> bool:
            return stack.pids().get("worker-1", killed) != killed

        await wait_until(back, within_s=60, what="the supervisor starts another worker")
        # The hint may have reached the stopped worker; the sweeper repeats it after its grace.
        await opened.page.wait_for_selector(".state.succeeded", timeout=120_000)
        await opened.sees("User lives in Delft")
        await live.get_by_text(event_id[:8]).first.wait_for()
        assert opened.faults == []
