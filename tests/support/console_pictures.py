"""Take pictures of the console's pages, from a running stack in which `make demo` was played:

    python -m tests.support.console_pictures http://127.0.0.1:8000 .memlane/api_key docs/pictures

Each page is taken light, dark, and on a phone. The pictures are compressed if pngquant is there.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvloop
from playwright.async_api import Browser as Chromium

from tests.support.chromium import DESK, PHONE, Tab, chromium, tab

LOOKS: Mapping[str, Mapping[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": DESK},
    "dark": {"color_scheme": "dark", "viewport": DESK},
    "phone": {"color_scheme": "light", "viewport": PHONE, "device_scale_factor": 2},
}
TALLEST = 1_600


@dataclass(frozen=True)
class Shot:
    """A page to take. `settled`: an element to wait for."""

    name: str
    path: str
    settled: str = "main h1"


async def ids(client: httpx.AsyncClient) -> tuple[str, str, str]:
    """The user with the most memories, the id of a memory with a history, and of an event."""
    entities = (await client.get("/v1/entities/")).json()["results"]
    users = [row for row in entities if row["type"] == "user"]
    user = max(users, key=lambda row: row["total_memories"])["name"]
    body = {"filters": {"user_id": user}}
    memories = (await client.post("/v3/memories/", json=body)).json()["results"]
    memory = max(memories, key=lambda row: row["version"])
    events = (await client.get("/v1/events/", params={"user_id": user})).json()["results"]
    event = max(events, key=lambda row: len(row.get("results") or ()))
    return user, memory["id"], event["id"]


async def shots(client: httpx.AsyncClient) -> AsyncIterator[Shot]:
    """The pages, with data of the demo."""
    user, memory, event = await ids(client)
    for name in (
        *("live", "events", "failures", "trends", "costs", "health", "memories", "inbox"),
        *("playground", "replays", "webhooks", "verify", "erasures", "user-tokens", "audit"),
        "admin",
    ):
        yield Shot(name, f"/console/{name}")
    yield Shot("event", f"/console/events/{event}")
    yield Shot("memory", f"/console/memories/{memory}")
    query = f"q=Where+does+Maya+live+now%3F&other=What+does+she+eat%3F&user_id={user}"
    yield Shot("search", f"/console/search?{query}")
    yield Shot("graph", f"/console/graph?user_id={user}", "#graph canvas")
    body = {"user_id": user, "rights": ["read", "correct", "delete"]}
    token = (await client.post("/v1/user-tokens/", json=body)).json()["token"]
    yield Shot("user", f"/user/#{token}", "text=All of it")


async def take(opened: Tab, shot: Shot, file: Path) -> None:
    """Take one picture, of at most TALLEST pixels."""
    await opened.page.goto(opened.url + shot.path, wait_until="commit")
    await opened.page.wait_for_selector(shot.settled)
    await opened.loaded()
    if "canvas" in shot.settled:
        await opened.page.wait_for_timeout(4_500)  # until the drawing rests
    height = await opened.page.evaluate("document.documentElement.scrollHeight")
    width = opened.page.viewport_size["width"] if opened.page.viewport_size else 0
    clip = {"x": 0.0, "y": 0.0, "width": float(width), "height": float(min(height, TALLEST))}
    await opened.page.screenshot(path=file, full_page=True, clip=clip)  # type: ignore[arg-type]


async def compress(file: Path) -> None:
    """Reduce a picture to 128 colors, if pngquant is there."""
    if shutil.which("pngquant"):
        options = ("--force", "--ext", ".png", "--speed", "1", "128")
        process = await asyncio.create_subprocess_exec("pngquant", *options, str(file))
        await process.wait()


async def run(url: str, key: str, folder: Path, only: list[str], looks: list[str]) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    headers = {"Authorization": f"Token {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers) as client:
        wanted = [shot async for shot in shots(client) if not only or shot.name in only]
    async with chromium() as browser:
        for look in looks or list(LOOKS):
            await _in_look(browser, url, key, folder, wanted, look)


async def _in_look(
    browser: Chromium, url: str, key: str, folder: Path, wanted: list[Shot], look: str
) -> None:
    async with tab(browser, url, key, **LOOKS[look]) as opened:
        for shot in wanted:
            file = folder / f"{shot.name}-{look}.png"
            await take(opened, shot, file)
            await compress(file)
            print(file, opened.faults or "")
            opened.faults.clear()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("key_file", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--look", nargs="*", default=[])
    given = parser.parse_args()
    key = given.key_file.read_text().strip()
    uvloop.run(run(given.url, key, given.folder, given.only, given.look))
