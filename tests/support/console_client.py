"""A browser without scripts: signs in to the console, sends its forms, reads its pages."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape

import httpx
from fastapi import FastAPI

CSRF = re.compile(r'name="csrf" value="(\w+)"')
COOKIE = "memlane_console"


@dataclass
class Browser:
    """A client with the cookies of one session. `csrf`: the token of its forms."""

    client: httpx.AsyncClient
    csrf: str = ""

    async def sign_in(self, key: str) -> None:
        """Sign in with a key."""
        answer = await self.client.post("/console/sign-in", data={"key": key})
        assert answer.status_code == 303, answer.text
        page = await self.get("/console/live")
        match = CSRF.search(page.text)
        assert match
        self.csrf = match[1]

    async def get(self, path: str, **query: str) -> httpx.Response:
        """Get a page. The address may have a query of its own."""
        return await self.client.get(path, params=query or None)

    async def send(self, path: str, /, csrf: str | None = None, **fields: str) -> httpx.Response:
        """Send a form with the session's CSRF token, or with another one."""
        token = self.csrf if csrf is None else csrf
        return await self.client.post(path, data={"csrf": token} | fields)

    async def shown(self, path: str, **query: str) -> str:
        """The text of a page, without its tags."""
        answer = await self.get(path, **query)
        assert answer.status_code == 200, answer.text
        return text_of(answer)


def text_of(answer: httpx.Response) -> str:
    """The text of a page as a person reads it."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", answer.text)))


@asynccontextmanager
async def browsing(app: FastAPI, key: str | None = None) -> AsyncIterator[Browser]:
    """A browser at this server, signed in with the key if one is given."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://memlane") as client:
        browser = Browser(client)
        if key:
            await browser.sign_in(key)
        yield browser
