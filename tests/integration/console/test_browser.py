"""The console in a real browser: accessibility, width and requests of each page; tasks by click."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count

import pytest
import uvicorn
from playwright.async_api import Browser as Chromium
from playwright.async_api import FrameLocator, Route

from api.console.shared_part import SharedPart
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.stores import Ledger
from tests.integration.console.test_memories import suggest
from tests.support.api_service import Service, serving
from tests.support.chromium import DESK, MARK, PHONE, UNMARKED, Tab, chromium, tab
from tests.support.stack import wait_until

PAGES = (
    *("/live", "/events", "/failures", "/costs", "/health", "/memories", "/inbox", "/playground"),
    *("/inbox?kind=conflicts", "/inbox?kind=curator", "/replays", "/webhooks", "/verify"),
    *("/erasures", "/admin", "/search", "/graph", "/trends", "/audit", "/user-tokens"),
    *("/search?q=Where+do+I+live%3F&other=dog&user_id=maya", "/graph?user_id=maya"),
)

# Pairs of controls of a form that cover each other, as their texts or names.
COVERED = """() => [...document.querySelectorAll("main form")].flatMap((form) => {
  const boxes = [...form.querySelectorAll("input:not([type=hidden]), select, textarea, button")]
    .filter((control) => control.checkVisibility())
    .map((control) => [control.name || control.textContent, control.getBoundingClientRect()]);
  return boxes.flatMap(([name, box], at) => boxes.slice(at + 1)
    .filter(([, other]) => box.left < other.right - 1 && other.left < box.right - 1
      && box.top < other.bottom - 1 && other.top < box.bottom - 1)
    .map(([other]) => `${name} and ${other}`));
})"""
# The focused element's name and the style of its outline; null at the end of the page.
FOCUSED = """() => { const element = document.activeElement;
  return element === document.body ? null
    : [element.name || element.textContent.trim(), getComputedStyle(element).outlineStyle]; }"""
# Controls that do nothing without scripts.
SCRIPTED = "[data-slider], [data-all], #validity, #graph, .chart"
# True once htmx is loaded and the tasks that it has queued have run.
HTMX_IS_IDLE = "new Promise(done => setTimeout(() => done(typeof htmx === 'object'), 50))"


class Background(uvicorn.Server):
    """A server that leaves the signals to the test process."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()


@dataclass
class Site:
    """A service behind a real port, and the browser."""

    service: Service
    browser: Chromium
    url: str


@pytest.fixture(scope="module")
async def site(module_ledger: Ledger) -> AsyncIterator[Site]:
    async with chromium() as browser, serving(module_ledger) as service:
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(service.app, lifespan="off", log_level="warning", ws="none")
        server = Background(config)
        running = asyncio.create_task(server.serve([listener]))
        for text in ("I live in Berlin.", "My dog is called Bruno.", "I like <b>bold</b> tea."):
            await service.add(text)
        yield Site(service, browser, f"http://127.0.0.1:{listener.getsockname()[1]}")
        server.should_exit = True
        await running


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_accessible_fits_a_phone_and_requests_nothing_elsewhere(
    site: Site, path: str
) -> None:
    for options in ({"color_scheme": "dark", "viewport": PHONE}, {"color_scheme": "light"}):
        async with tab(site.browser, site.url, site.service.key, **options) as opened:
            await opened.open(f"/console{path}")
            assert await opened.violations() == []
            assert not await opened.overflows()
            assert await opened.page.evaluate(COVERED) == []
            assert opened.faults == []


async def test_the_pages_of_one_event_and_one_memory_are_accessible(site: Site) -> None:
    event_id = await site.service.add("I work at Siemens.")
    memory = (await site.service.listed())[0]
    for path in (f"/console/events/{event_id}", f"/console/memories/{memory['id']}"):
        for viewport in (PHONE, DESK):
            async with tab(site.browser, site.url, site.service.key, viewport=viewport) as opened:
                await opened.open(path)
                assert await opened.violations() == []
                assert not await opened.overflows()
                assert await opened.page.evaluate(COVERED) == []
                assert opened.faults == []


async def test_the_users_page_is_accessible(site: Site) -> None:
    """With all rights: the list, and one memory with its forms."""
    token = await users_token(site, "maya")
    for options in ({"color_scheme": "dark", "viewport": PHONE}, {"color_scheme": "light"}):
        async with tab(site.browser, site.url, **options) as opened:
            await opened.page.goto(f"{site.url}/user/#{token}", wait_until="commit")
            await opened.sees("Bruno")
            assert await opened.violations() == []
            assert not await opened.overflows()
            await opened.click("text=Correct, history >> nth=0", "text=How it came to be")
            assert await opened.violations() == []
            assert not await opened.overflows()
            assert opened.faults == []


async def test_a_users_link_that_follows_another_in_the_same_tab_shows_its_own_user(
    site: Site,
) -> None:
    """Browsers load no page for an address that differs only behind the #."""
    await site.service.add("I keep llamas.", user_id="lea")
    tokens = await users_token(site, "maya"), await users_token(site, "lea")
    async with tab(site.browser, site.url) as opened:
        for token, words in zip(tokens, ("Bruno", "llamas"), strict=True):
            await opened.page.goto(f"{site.url}/user/#{token}", wait_until="commit")
            await opened.sees(words)
        assert await opened.page.get_by_text("Bruno").count() == 0
        assert "#" not in opened.page.url


async def test_a_click_waits_for_the_next_page_though_this_one_looks_the_same(
    site: Site,
) -> None:
    numbers = count(1)
    later = "setTimeout(() => location.reload(), 300)"

    async def same(route: Route) -> None:
        text = f'<main><h1>Same</h1><p>{next(numbers)}</p><a onclick="{later}">Next</a></main>'
        await route.fulfill(body=text, content_type="text/html")

    async with tab(site.browser, site.url) as opened:
        await opened.page.route("**/same", same)
        await opened.open("/same")
        await opened.click("a", "h1:has-text('Same')")
        assert await opened.page.inner_text("p") == "2"


async def test_forms_work_over_plain_http_on_a_local_network(site: Site) -> None:
    """There browsers send no `Sec-Fetch-Site`, only the origin of the page."""
    url = site.url.replace("127.0.0.1", "memlane.test")
    async with tab(site.browser, url) as opened:
        await opened.open("/console/sign-in")
        await opened.page.fill("input[name=key]", site.service.key)
        await opened.click("text=Sign in >> nth=-1", "h1:has-text('Live')")
        await opened.click("text=Sign out", "text=You have signed out.")
        assert opened.faults == []


async def test_sign_in_and_out_by_keyboard(site: Site) -> None:
    async with tab(site.browser, site.url) as opened:
        await opened.open("/console/events")
        assert await opened.violations() == []
        await opened.page.keyboard.type(site.service.key)
        await opened.page.keyboard.press("Enter")
        await opened.page.wait_for_selector("h1:has-text('Events')")
        await opened.loaded()  # before that, the page has no shortcuts
        await opened.page.keyboard.press("g")
        await opened.page.keyboard.press("m")
        await opened.page.wait_for_selector("h1:has-text('Memories')")
        await opened.click("text=Sign out", "text=You have signed out")


@pytest.mark.parametrize("path", ["/memories?user_id=maya", "/admin", "/graph?user_id=maya"])
async def test_the_focus_is_visible_at_each_stop_of_the_keyboard(site: Site, path: str) -> None:
    """Also in the parts of a date field, whose own element is then not focused by itself."""
    async with tab(site.browser, site.url, site.service.key) as opened:
        await opened.open(f"/console{path}")
        stops: list[list[str]] = []
        await opened.page.keyboard.press("Tab")
        while stop := await opened.page.evaluate(FOCUSED):
            stops.append(stop)
            await opened.page.keyboard.press("Tab")
        assert stops[0][0] == "Skip to the content"
        assert [name for name, outline in stops if outline == "none"] == []


async def test_live_shows_a_new_event_by_itself(site: Site) -> None:
    async with tab(site.browser, site.url, site.service.key) as opened:
        await opened.open("/console/live")
        event_id = await site.service.add("I own a boat.")
        await opened.sees(event_id[:8])
        assert opened.faults == []


async def test_an_update_keeps_open_what_a_person_has_opened(site: Site) -> None:
    await site.service.add("I own a tent.")
    async with tab(site.browser, site.url, site.service.key) as opened:
        await opened.open("/console/live")
        await opened.unfold("summary:has-text('As a table')", "table[aria-label='Events a minute']")
        for text in ("I own a sledge.", "I own a canoe."):
            event_id = await site.service.add(text)
            await opened.page.locator(f"#e-{event_id}").wait_for()
            assert await opened.page.locator("table[aria-label='Events a minute']").is_visible()
        assert opened.faults == []


async def test_live_says_that_the_ledger_is_down_and_goes_on_after_that(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: object) -> bytes:
        raise LedgerUnavailable(OSError("no connection"))

    async with tab(site.browser, site.url, site.service.key) as opened:
        await opened.open("/console/live")
        with monkeypatch.context() as during:
            during.setattr(SharedPart, "html", down)
            await opened.sees("Temporarily unavailable")
            assert await opened.page.locator("header.side").count() == 1
            assert await opened.page.locator("main").count() == 1
            assert await opened.page.locator("dl.tiles").count() == 0
        await opened.page.wait_for_selector("dl.tiles")
        assert await opened.page.get_by_text("Temporarily unavailable").count() == 0


async def embedded(opened: Tab, url: str) -> FrameLocator:
    """The inside of a frame of another page, which shows this address."""
    frame = f'<h1>Chat</h1><iframe src="{url}" width="600" height="600" title="Yours"></iframe>'

    async def chat(route: Route) -> None:
        await route.fulfill(
            body=f"<html lang=en><title>Chat</title><main>{frame}</main>", content_type="text/html"
        )

    await opened.page.route("**/chat", chat)
    await opened.open("/chat")
    return opened.page.frame_locator("iframe")


async def test_a_page_that_embeds_the_users_page_shows_that_its_token_has_ended(
    site: Site,
) -> None:
    async with tab(site.browser, site.url) as opened:
        inside = await embedded(opened, f"{site.url}/user/#mlu_ended")
        await inside.get_by_text("This page has ended.").wait_for()


async def users_token(site: Site, user_id: str) -> str:
    """A token of this user with all rights."""
    body = {"user_id": user_id, "rights": ["read", "correct", "delete"]}
    return str((await site.service.client.post("/v1/user-tokens/", json=body)).json()["token"])


@pytest.mark.parametrize("page", ["list", "memory"])
async def test_an_embedded_page_deletes_a_memory_only_after_a_question(
    site: Site, page: str
) -> None:
    """By keyboard: Enter twice on Delete asks, and takes the question back."""
    await site.service.add("I keep bees.", user_id=page)
    token = await users_token(site, page)
    async with tab(site.browser, site.url) as opened:
        inside = await embedded(opened, f"{site.url}/user/#{token}")
        if page == "memory":
            await inside.get_by_text("Correct, history").click()
            await inside.get_by_text("How it came to be").wait_for()
        yes = inside.get_by_role("button", name="Yes, delete")
        await inside.locator("summary").focus()
        await opened.page.keyboard.press("Enter")
        await yes.wait_for()
        assert await opened.violations() == []
        await opened.page.keyboard.press("Enter")
        await yes.wait_for(state="hidden")
        assert len(await site.service.listed(user_id=page)) == 1
        await opened.page.keyboard.press("Enter")
        await opened.page.keyboard.press("Tab")
        await opened.page.keyboard.press("Enter")
        await inside.get_by_text("It is deleted.").wait_for()
    assert await site.service.listed(user_id=page) == []


async def test_a_memory_of_the_users_page_is_deleted_without_scripts(site: Site) -> None:
    await site.service.add("I keep goats.", user_id="ada")
    token = await users_token(site, "ada")
    async with tab(site.browser, site.url, java_script_enabled=False) as opened:
        await opened.page.goto(f"{site.url}/user/", wait_until="commit")
        await opened.page.fill("input[name=token]", token)
        await opened.click("button:has-text('Show')", "text=goats >> nth=0")
        await opened.unfold("summary", "button:has-text('Yes, delete')")
        await opened.unfold("summary", "summary:has-text('Delete')")
        assert await opened.page.get_by_role("button", name="Yes, delete").count() == 0
        await opened.unfold("summary", "button:has-text('Yes, delete')")
        await opened.click("button:has-text('Yes, delete')", "text=It is deleted.")
    assert await site.service.listed(user_id="ada") == []


async def test_an_event_is_followed_until_it_ends(site: Site) -> None:
    event_id = await site.service.engine.add("My sister lives in Porto.")
    async with tab(site.browser, site.url, site.service.key) as opened:
        await opened.open(f"/console/events/{event_id}")
        await opened.page.wait_for_selector("text=Cancel")
        await site.service.engine.drain()
        await opened.page.wait_for_selector(".state.succeeded")
        await opened.page.wait_for_selector("text=Undo")
        await opened.click("text=Undo …", "text=Nothing has changed yet")
        await opened.page.reload(wait_until="commit")
        await opened.click("button.danger", "text=The changes of the event are undone.")
        assert opened.faults == []


async def test_updates_begin_though_the_extension_loads_late(site: Site) -> None:
    """htmx starts only when its extension is there: else the page never asks for updates."""
    event_id = await site.service.engine.add("My brother lives in Faro.")
    async with tab(site.browser, site.url, site.service.key) as opened:

        async def hold(route: Route) -> None:
            async def idle() -> bool:
                return bool(await opened.page.evaluate(HTMX_IS_IDLE))

            await wait_until(idle, within_s=30, what="htmx has run what it runs by itself")
            await route.continue_()

        await opened.page.route("**/hx-sse.min.js*", hold, times=1)
        await opened.open(f"/console/events/{event_id}")
        await site.service.engine.drain()
        await opened.page.wait_for_selector(".state.succeeded")


async def test_a_memory_is_changed_by_clicks(site: Site) -> None:
    await site.service.add("I own a red bike.")
    memory = next(row for row in await site.service.listed() if "bike" in row["memory"])
    async with tab(site.browser, site.url, site.service.key) as opened:
        opened.page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
        await opened.open("/console/memories?keywords=bike")
        await opened.click("a.row", "text=Correct it")
        await opened.page.fill("textarea[name=text]", "User owns a blue bike")
        await opened.click("text=Save", "text=The text is changed")
        await opened.click("button:has-text('Pin')", "text=No model changes this memory now")
        await opened.click("button.danger", "text=The memory is deleted")
        await opened.click("text=Restore version 1", "text=The version is restored")
        assert opened.faults == []
    texts = [row["memory"] for row in await site.service.listed()]
    assert memory["memory"] in texts


async def test_a_suggestion_is_accepted_by_a_click(site: Site) -> None:
    await suggest(site.service, "UPDATE", "User likes the sea")
    async with tab(site.browser, site.url, site.service.key) as opened:
        await opened.open("/console/inbox")
        await opened.click("button:has-text('Accept') >> nth=0", "text=The decision is carried out")
    assert "User likes the sea" in [row["memory"] for row in await site.service.listed()]


async def test_the_graph_is_drawn_and_its_slider_moves(site: Site) -> None:
    async with tab(site.browser, site.url, site.service.key) as opened:
        await opened.open("/console/graph?user_id=maya")
        await opened.page.wait_for_selector("#graph canvas")
        await opened.page.focus("#validity")
        await opened.page.keyboard.press("ArrowLeft")
        await opened.page.locator("#valid").filter(has_text=re.compile("^20")).wait_for()
        assert opened.faults == []


async def test_everything_works_without_scripts_but_for_updates(site: Site) -> None:
    async with tab(site.browser, site.url, java_script_enabled=False) as opened:
        page = opened.page
        await page.goto(f"{site.url}/console/memories?user_id=maya", wait_until="commit")
        await page.fill("input[name=key]", site.service.key)
        await opened.click("text=Sign in >> nth=-1", "h1:has-text('Memories')")
        await page.fill("input[name=keywords]", "Berlin")
        await opened.click("button:has-text('Filter')", "a.row")
        await opened.click("a.row", "text=Correct it")
        await opened.click("button:has-text('Pin')", "text=No model changes this memory now")


async def test_what_needs_scripts_is_not_shown_without_them(site: Site) -> None:
    suggestion_id = await suggest(site.service, "DELETE", None)
    memory = (await site.service.listed())[0]
    for scripts in (False, True):
        shown = set()
        for path in (
            *("/live", "/trends", "/inbox", "/graph?user_id=maya"),
            *(f"/memories/{memory['id']}", "/costs"),
        ):
            async with tab(
                site.browser, site.url, site.service.key, java_script_enabled=scripts
            ) as opened:
                await opened.open(f"/console{path}")
                for control in await opened.page.locator(SCRIPTED).all():
                    if await control.is_visible():
                        shown.add(path)
        assert shown >= {"/live", "/inbox", "/graph?user_id=maya"} if scripts else not shown
    await site.service.client.post(f"/v1/suggestions/{suggestion_id}/dismiss/")


async def test_a_double_click_sends_a_form_once(site: Site) -> None:
    await site.service.add("I own a kite.", user_id="kim")
    [memory] = await site.service.listed(user_id="kim")
    path = f"/console/memories/{memory['id']}"
    async with tab(site.browser, site.url, site.service.key) as opened:
        sent: list[str] = []

        clicked_again = asyncio.Event()

        async def slow(route: Route) -> None:
            sent.append(route.request.url)
            await clicked_again.wait()
            await route.continue_()

        async def is_sent() -> bool:
            return bool(sent)

        await opened.page.route(f"**{path}/pin", slow)
        await opened.open(path)
        box = await opened.page.locator("button:has-text('Pin')").bounding_box()
        assert box is not None
        place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        await opened.page.mouse.click(*place)
        await wait_until(is_sent, within_s=30, what="the form is sent")
        await opened.page.mouse.click(*place)
        clicked_again.set()
        await opened.sees("No model changes this memory now")
        assert len(sent) == 1
        assert opened.faults == []


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_text_survives_the_end_of_the_session(site: Site, scripts: bool) -> None:
    user_id = f"eve-{scripts}"
    await site.service.add("I own a lamp.", user_id=user_id)
    [memory] = await site.service.listed(user_id=user_id)
    path = f"/console/memories/{memory['id']}"
    async with tab(site.browser, site.url, site.service.key, java_script_enabled=scripts) as opened:
        await opened.open(path)
        await opened.page.fill("textarea[name=text]", "User owns a\nred lamp")
        await opened.page.context.clear_cookies()
        await opened.click("button:has-text('Save')", "text=Your session has ended")
        if scripts:
            assert await opened.violations() == []
        await opened.page.fill("input[name=key]", site.service.key)
        await opened.click("main button:has-text('Sign in')", "text=You are signed in")
        if scripts:
            assert await opened.violations() == []
        await opened.click("button:has-text('Send it now')", "text=The text is changed")
        await opened.page.goto(f"{site.url}{path}/edit", wait_until="commit")
        await opened.sees("Nothing was sent or changed")
    assert [row["memory"] for row in await site.service.listed(user_id=user_id)] == [
        "User owns a\nred lamp"
    ]


@pytest.mark.parametrize("scripts", [True, False])
async def test_rare_filters_are_folded_on_a_phone_unless_one_is_in_use(
    site: Site, scripts: bool
) -> None:
    small = {"viewport": {"width": 360, "height": 640}, "java_script_enabled": scripts}
    for path, unused, used in (
        ("/memories", "user_id=maya", "agent_id=bot"),
        ("/events", "user_id=maya", "event_type=ADD"),
        ("/graph", "user_id=maya", "hops=2"),
        ("/search", "user_id=maya&q=Berlin", "user_id=maya&q=Berlin&top_k=3"),
    ):
        async with tab(site.browser, site.url, site.service.key, **small) as opened:
            await opened.open(f"/console{path}?{unused}")
            field = opened.page.locator("main input[name=app_id]")
            assert not await field.is_visible()
            first = opened.page.locator("main :is(table, .canvas, .empty, h2):visible").first
            box = await first.bounding_box()
            assert box is not None
            assert box["y"] < 500
            await opened.page.click("text=More filters")
            await field.fill("chat")
            await opened.open(f"/console{path}?{used}")
            await opened.sees("1 in use")
            assert await field.is_visible()
        async with tab(
            site.browser, site.url, site.service.key, java_script_enabled=scripts
        ) as opened:
            await opened.open(f"/console{path}?{unused}")
            assert await field_is_used(opened, "app_id")
            assert not await opened.page.locator("text=More filters").is_visible()


async def field_is_used(opened: Tab, name: str) -> bool:
    """Tell if a person can type into a field, and screen readers name it."""
    field = opened.page.locator(f"main input[name={name}]")
    await field.fill("chat")
    named = opened.page.get_by_role("main").get_by_role("textbox", name="App")
    return await field.is_visible() and await named.count() == 1


async def test_the_times_of_a_memory_are_chosen_by_slider(site: Site) -> None:
    """Keys only move it, and Enter opens the time; the pointer opens the time when released."""
    await site.service.add("I own a green boat.", user_id="ida")
    [memory] = await site.service.listed(user_id="ida")
    path = f"/console/memories/{memory['id']}"
    for text in ("User owns a white boat", "User owns a black boat"):
        await site.service.client.put(f"/v1/memories/{memory['id']}/", json={"text": text})
    async with tab(site.browser, site.url, site.service.key) as opened:
        sent: list[str] = []
        opened.page.on("request", lambda request: sent.append(request.url))
        await opened.open(path)
        slider = opened.page.locator("[data-slider=as_of-links]")
        for keys, chosen in ((("ArrowLeft", "ArrowLeft"), "v1"), (("ArrowRight",), "v2")):
            await slider.focus()
            for key in keys:
                await opened.page.keyboard.press(key)
            assert str(await slider.get_attribute("aria-valuetext")).startswith(chosen)
        assert [url for url in sent if "as_of" in url] == []
        await opened.page.locator("html").evaluate(MARK)
        await opened.page.keyboard.press("Enter")
        await opened.page.locator(f"{UNMARKED} .big:has-text('white')").wait_for()
        box = await slider.bounding_box()
        assert box is not None
        await opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        await opened.page.mouse.down()
        await opened.page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2, steps=3)
        assert "white" in await opened.page.inner_text(".big")
        await opened.page.mouse.up()
        await opened.page.wait_for_selector(".big:has-text('green')")
        assert opened.faults == []


async def test_hostile_text_runs_nothing(site: Site) -> None:
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    await site.service.add(f"{hostile} \u202e{'w' * 30_000}", infer=False)
    async with tab(site.browser, site.url, site.service.key, viewport=PHONE) as opened:
        for path in ("/console/memories", "/console/live", "/console/events"):
            await opened.open(path)
            assert await opened.page.title() not in ("1", "2")
            assert not await opened.overflows()
        await opened.click("a.row >> nth=0", "text=Where the time went")
        assert not await opened.overflows()
        assert opened.faults == []
