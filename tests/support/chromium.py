"""Debian's Chromium, driven by Playwright: pages as a person sees them, and what they request.

Playwright's own browsers cannot be downloaded everywhere, and its pytest plugin replaces session
fixtures, so this starts the system's browser itself.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser as Chromium
from playwright.async_api import Error as BrowserError
from playwright.async_api import Locator, Page, async_playwright
from playwright.async_api import TimeoutError as BrowserTimeoutError

from tests.support.stack import wait_until

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    # A host that browsers do not trust over plain HTTP, unlike loopback: as on a local network.
    "--host-resolver-rules=MAP memlane.test 127.0.0.1",
)
MISSING = "There is no Chromium: install it with `apt-get install chromium`."
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 860}
# Milliseconds to wait for an element: long, for machines that do other work too.
PATIENCE_MS = 30_000
# Milliseconds until a navigation that sent no request counts as lost.
NAVIGATION_MS = 15_000
# Mark of a document that a click is about to leave.
MARK = "element => { element.ownerDocument.documentElement.dataset.left = '' }"
UNMARKED = "html:not([data-left])"
INTERRUPTED = ("is interrupted by another navigation", "net::ERR_ABORTED")


@dataclass
class Tab:
    """A page of the browser. `faults`: errors of scripts and of the policy; requests elsewhere."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        """Open a page and wait for its content.

        It does not wait for the load event, which Playwright misses with a browser of a later
        version.
        """
        left = self.page.url
        for _ in range(3):
            await self._go(path)
            await self.page.wait_for_selector("main h1")
            await self.loaded()
            # A page that reloads itself at its event's end can take the place of the new one.
            if self.page.url != left or left == self.url + path:
                return
        pytest.fail(f"{path} was replaced by a reload of {left}")

    async def _go(self, path: str) -> None:
        """Navigate; again if the page that is left has just reloaded itself.

        A reload at the same moment takes the place of the navigation. Playwright then reports an
        interruption, or misses it and waits until its timeout: then no request was sent. A request
        without an answer is a fault of the server and fails.
        """
        url = self.url + path
        for _ in range(3):
            try:
                async with self._requests() as sent:
                    await self.page.goto(url, wait_until="commit", timeout=NAVIGATION_MS)
            except BrowserTimeoutError:
                if url in sent:
                    raise
            except BrowserError as error:
                if not any(words in str(error) for words in INTERRUPTED):
                    raise
            else:
                return
        pytest.fail(f"{path} was interrupted by other navigations")

    @asynccontextmanager
    async def _requests(self) -> AsyncIterator[list[str]]:
        """Addresses that the page requests inside this block."""
        sent: list[str] = []

        def note(request: Any) -> None:
            sent.append(request.url)

        self.page.on("request", note)
        try:
            yield sent
        finally:
            self.page.remove_listener("request", note)

    async def loaded(self) -> None:
        """Wait until the page and its scripts are loaded.

        Playwright's `wait_for_function` evaluates a text, which the policy of the pages forbids.
        """

        async def complete() -> bool:
            return bool(await self.page.evaluate("document.readyState === 'complete'"))

        await wait_until(complete, within_s=PATIENCE_MS / 1000, what="the page is loaded")

    async def click(self, selector: str, then: str) -> None:
        """Click what leads to another page, and wait for an element of that page."""
        await self.follow(self.page.locator(selector).first, then)

    async def follow(self, element: Locator, then: str) -> None:
        """Click an element that leads to another page, and wait for `then` on that page.

        The page that is left may match `then` too, so its document is marked: a wait that it meets
        would end before the server has answered.
        """
        await element.evaluate(MARK)
        await element.click(no_wait_after=True)
        await self.page.locator(UNMARKED).locator(then).first.wait_for()

    async def unfold(self, selector: str, then: str) -> None:
        """Click what changes this page, and wait for an element that appears."""
        await self.page.click(selector)
        await self.page.wait_for_selector(then)

    async def sees(self, text: str) -> None:
        """Wait until a text is visible."""
        await self.page.get_by_text(text).first.wait_for()

    async def violations(self) -> list[str]:
        """Serious findings of axe, with the elements."""
        results = (await Axe().run(self.page)).response
        return [
            f"{finding['id']}: {[node['html'][:120] for node in finding['nodes'][:3]]}"
            for finding in results["violations"]
            if finding["impact"] in ("serious", "critical")
        ]

    async def overflows(self) -> bool:
        """Tell if the page is wider than the window."""
        width = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(await self.page.evaluate(width))


@asynccontextmanager
async def chromium() -> AsyncIterator[Chromium]:
    """The browser. Without it the test is skipped, and fails in CI."""
    path = shutil.which("chromium")
    if path is None:
        if os.environ.get("CI"):  # noqa: TID251  no setting of ours
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        await browser.close()


@asynccontextmanager
async def tab(
    browser: Chromium, url: str, key: str | None = None, **options: Any
) -> AsyncIterator[Tab]:
    """A page with a session of its own, signed in with the key."""
    context = await browser.new_context(**{"viewport": DESK} | options)
    context.set_default_timeout(PATIENCE_MS)
    if key:
        form: dict[str, str | float | bool] = {"key": key}
        answer = await context.request.post(f"{url}/console/sign-in", form=form, max_redirects=0)
        assert answer.status == 303
    page = await context.new_page()
    opened = Tab(page, url)
    own = urlsplit(url).netloc

    def request(sent: Any) -> None:
        if sent.url.startswith(("http", "ws")) and urlsplit(sent.url).netloc != own:
            opened.faults.append(f"request to {sent.url}")

    page.on("request", request)
    page.on("pageerror", lambda error: opened.faults.append(str(error)))
    page.on(
        "console",
        lambda line: opened.faults.append(line.text) if line.type == "error" else None,
    )
    yield opened
    await context.close()
