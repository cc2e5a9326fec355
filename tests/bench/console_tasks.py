"""Five tasks of a person, by clicks alone: `python -m tests.bench.console_tasks`.

Each task begins on the page Live of a real stack, and uses only what the pages show. Printed: the
clicks, the fields that are filled, and the seconds that the pages take; a person's reading comes on
top. docs/howto/console.md has the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import uvloop

from pipeline.domain.tenants import ProjectId
from tests.e2e.test_console import open_conflict
from tests.support.chaos_ledger import database_url
from tests.support.chromium import Tab, chromium, tab
from tests.support.engine import build_ledger
from tests.support.llm_server import LLMServer
from tests.support.stack import Client, Stack

RESULTS = Path("bench-results")
USER = "maya"


@dataclass
class Hand:
    """The clicks and fields of a person at the browser."""

    tab: Tab
    clicks: int = 0
    fields: int = 0

    async def click(self, selector: str, then: str) -> None:
        """Click, and wait for a text of the page that follows."""
        self.clicks += 1
        await self.tab.page.locator(selector).first.click(no_wait_after=True)
        await self.tab.page.locator("main").filter(has_text=then).wait_for()
        await self.tab.loaded()

    async def menu(self, name: str) -> None:
        """Open a page from the menu."""
        self.clicks += 1
        await self.tab.page.locator(f"nav a:has-text('{name}')").first.click(no_wait_after=True)
        await self.tab.page.wait_for_selector(f"h1:has-text('{name}')")
        await self.tab.loaded()

    async def fill(self, name: str, value: str) -> None:
        """Fill a field of the page."""
        self.fields += 1
        await self.tab.page.locator(f"main [name={name}]").first.fill(value)

    async def tick(self, selector: str) -> None:
        """Tick a box or choose an option."""
        self.clicks += 1
        await self.tab.page.locator(selector).first.check()


async def redrive(hand: Hand) -> None:
    """Read why an event failed, and retry it."""
    await hand.menu("Failures")
    await hand.click("table:has-text('Outcome') a.row", "LLM_BAD_OUTPUT")
    await hand.click("main button:text-is('Retry')", "queued again")


async def missing(hand: Hand) -> None:
    """Read why a search does not return a memory."""
    await hand.menu("Search")
    await hand.fill("q", "Where does Maya live?")
    await hand.fill("user_id", USER)
    await hand.click("main button:has-text('Search')", "Why not")


async def tuesday(hand: Hand, at: datetime) -> None:
    """Read what was known at an earlier time."""
    await hand.menu("Memories")
    await hand.fill("user_id", USER)
    await hand.fill("as_of", at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    await hand.click("main button:has-text('Filter')", "lives in Berlin")


async def conflict(hand: Hand) -> None:
    """Resolve a conflict: keep both statements."""
    await hand.menu("Inbox")
    await hand.click("main a:has-text('Conflicts')", "Resolve")
    await hand.tick("[name=keep][value=both]")
    await hand.click("button:has-text('Resolve')", "The conflict is resolved")


async def erase(hand: Hand) -> None:
    """Erase a user and show the proof."""
    await hand.menu("Erasures")
    await hand.fill("user_id", USER)
    await hand.tick("[name=sure]")
    await hand.click("button:has-text('Erase for good')", "none of it can be read any more")
    await hand.tab.page.locator("main").filter(has_text="succeeded").wait_for()


async def prepare(stack: Stack, client: Client, model: LLMServer) -> datetime:
    """Store memories of a user, a conflict of two of them, and a failed event.

    Returns the time before the last change.
    """
    for words in ("I live in Berlin.", "I own a horse.", "My sister works at Siemens."):
        await client.ended(await client.add(USER, words))
    await asyncio.sleep(1.5)  # the field of the page has whole seconds
    moved = await client.ended(await client.add(USER, "I moved to Lisbon."))
    before = datetime.fromisoformat(moved["created_at"])
    body = {"filters": {"user_id": USER}}
    rows = (await client.http.post("/v3/memories/", json=body)).json()["results"][:2]
    project = (await client.http.get("/v1/ping/")).json()["project_id"]
    ledger = build_ledger(database_url(stack))
    await open_conflict(ledger, ProjectId(UUID(project)), USER, rows)
    await ledger.close()
    model.on("any", "malformed")
    failed = await client.add("tom", "I own a boat.")
    assert (await client.ended(failed, within_s=120))["status"] == "FAILED"
    model.rules.clear()
    return before


async def timed(
    stack: Stack, opened: Tab, task: Callable[[Hand], Awaitable[None]]
) -> dict[str, Any]:
    """Do one task from the page Live on."""
    await opened.open("/console/live")
    hand, begun = Hand(opened), time.perf_counter()
    await task(hand)
    seconds = time.perf_counter() - begun
    about = (task.__doc__ or "").partition("\n")[0]
    return {"task": about, "clicks": hand.clicks, "fields": hand.fields, "s": round(seconds, 1)}


async def measure() -> list[dict[str, Any]]:
    async with LLMServer() as model:
        settings = {
            "MEMLANE_LLM__MODEL": "openai/first",
            "MEMLANE_LLM__API_BASE": model.base_url,
            "MEMLANE_LLM__API_KEY": "sk-test",
        }
        with tempfile.TemporaryDirectory() as folder, Stack(Path(folder) / "s", settings) as stack:
            async with stack.client() as client:
                before = await prepare(stack, client, model)
            async with chromium() as browser, tab(browser, stack.url, stack.key) as opened:
                opened.page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))

                async def what_was_known(hand: Hand) -> None:
                    await tuesday(hand, before)

                what_was_known.__doc__ = tuesday.__doc__
                tasks = (redrive, missing, what_was_known, conflict, erase)
                return [await timed(stack, opened, task) for task in tasks]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    figures = uvloop.run(measure())
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "console_tasks.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print(json.dumps(figures, indent=1))
