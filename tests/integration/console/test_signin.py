"""Sign in, out, one-time links, expiry, forged forms."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from uuid import UUID

import pytest
from sqlalchemy import func, select, update

from api.auth.rate_limit import RateLimit
from pipeline.domain.tenants import Access
from pipeline.ledger.tables import console_sessions
from tests.support.api_service import Service
from tests.support.console_client import COOKIE, Browser, browsing, text_of

LIVE = "/console/live"


async def test_a_key_opens_a_session_with_a_safe_cookie(service: Service) -> None:
    async with browsing(service.app) as browser:
        answer = await browser.client.post("/console/sign-in", data={"key": service.key})
        cookie = answer.headers["set-cookie"]
        assert answer.headers["location"] == LIVE
        assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/console"))
        assert service.key not in cookie
        page = await browser.get(LIVE)
        assert page.status_code == 200
        policy = page.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy


async def test_a_page_without_a_session_leads_to_the_form_and_back(service: Service) -> None:
    async with browsing(service.app) as browser:
        answer = await browser.get("/console/events?status=FAILED")
        assert answer.status_code == 303
        form = answer.headers["location"]
        assert form == "/console/sign-in?next=/console/events%3Fstatus%3DFAILED"
        assert 'value="/console/events?status=FAILED"' in (await browser.get(form)).text
        wanted = {"key": service.key, "next": "/console/events?status=FAILED"}
        entered = await browser.client.post("/console/sign-in", data=wanted)
        assert entered.headers["location"] == "/console/events?status=FAILED"


async def test_a_part_that_updates_itself_leads_to_the_form_and_back(service: Service) -> None:
    shown = "/console/events?status=FAILED"
    async with browsing(service.app) as browser:
        headers = {"HX-Request": "true", "HX-Current-URL": f"http://memlane{shown}"}
        answer = await browser.client.get(
            "/console/events?status=FAILED&part=rows", headers=headers
        )
        assert answer.status_code == 401
        form = answer.headers["hx-redirect"]
        assert form == "/console/sign-in?next=/console/events%3Fstatus%3DFAILED"
        assert f'value="{shown}"' in (await browser.get(form)).text


async def test_the_form_leads_back_below_the_path_of_the_public_url(service: Service) -> None:
    settings = service.api.settings.model_copy(update={"public_url": "https://example.org/memlane"})
    service.app.state.api = replace(service.api, settings=settings)
    async with browsing(service.app) as browser:
        # The proxy in front has taken /memlane away.
        answer = await browser.get("/console/events?status=FAILED")
        target = "/memlane/console/events?status=FAILED"
        form = "/memlane/console/sign-in?next=/memlane/console/events%3Fstatus%3DFAILED"
        assert answer.headers["location"] == form
        wanted = {"key": service.key, "next": target}
        entered = await browser.client.post("/console/sign-in", data=wanted)
        assert entered.headers["location"] == target


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/console/", "//evil.example", "/v1/x", "/console/\\evil", "javascript:1"],
)
async def test_the_form_leads_nowhere_else(service: Service, elsewhere: str) -> None:
    async with browsing(service.app) as browser:
        wanted = {"key": service.key, "next": elsewhere}
        answer = await browser.client.post("/console/sign-in", data=wanted)
        assert answer.headers["location"] == LIVE


async def test_a_wrong_key_is_refused_and_many_of_them_are_limited(service: Service) -> None:
    async with browsing(service.app) as browser:
        first = await browser.client.post("/console/sign-in", data={"key": "ml_wrong"})
        assert first.status_code == 401
        assert "not valid" in text_of(first)
        assert "set-cookie" not in first.headers
        statuses = {
            (await browser.client.post("/console/sign-in", data={"key": f"ml_{n}"})).status_code
            for n in range(70)
        }
        assert statuses == {401, 429}
        right = await browser.client.post("/console/sign-in", data={"key": service.key})
        assert right.status_code == 303


async def test_an_address_without_a_page_is_answered_by_a_page(
    service: Service, browser: Browser
) -> None:
    async with browsing(service.app) as stranger:
        for visitor in (browser, stranger):
            answer = await visitor.get("/console/nosuch")
            assert answer.status_code == 404
            assert answer.headers["content-type"].startswith("text/html")
            assert 'href="/console/live"' in answer.text
            assert "/v1/" not in answer.text


async def test_signing_out_ends_the_session(service: Service, browser: Browser) -> None:
    token = browser.client.cookies[COOKIE]
    answer = await browser.send("/console/sign-out")
    assert answer.status_code == 303
    browser.client.cookies.set(COOKIE, token, domain="memlane.local", path="/console")
    assert (await browser.get(LIVE)).status_code == 303


async def test_a_new_session_ends_the_one_it_replaces(service: Service, browser: Browser) -> None:
    link = (await service.client.post("/v1/console/links/")).json()["url"]
    for address, fields in (
        ("/console/sign-in", {"key": service.key}),
        (link[link.index("/console/") :], {}),
    ):
        replaced = browser.client.cookies[COOKIE]
        answer = await browser.client.post(address, data=fields)
        assert answer.status_code == 303
        assert (await browser.get(LIVE)).status_code == 200
        async with browsing(service.app) as other:
            other.client.cookies.set(COOKIE, replaced, domain="memlane.local", path="/console")
            assert (await other.get(LIVE)).status_code == 303


async def test_a_session_ends_with_its_time(service: Service, browser: Browser) -> None:
    over = update(console_sessions).values(expires_at=func.now() - timedelta(seconds=1))
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(over)
    assert (await browser.get(LIVE)).status_code == 303


async def test_a_session_ends_with_its_key(service: Service, browser: Browser) -> None:
    made = (await service.client.post("/v1/keys/", json={"name": "x", "scope": "read"})).json()
    async with browsing(service.app, made["key"]) as reader:
        assert (await reader.get(LIVE)).status_code == 200
        await service.client.delete(f"/v1/keys/{made['id']}/")
        assert (await reader.get(LIVE)).status_code == 303
    assert (await browser.get(LIVE)).status_code == 200


async def test_a_link_works_once_and_only_by_its_button(service: Service) -> None:
    made = (await service.client.post("/v1/console/links/")).json()
    assert made["expires_in_s"] == 600
    path = made["url"].removeprefix("http://memlane")
    async with browsing(service.app) as browser:
        for _ in range(2):  # a program that previews links uses none
            assert (await browser.get(path)).status_code == 200
        entered = await browser.client.post(path)
        assert entered.headers["location"] == LIVE
        assert (await browser.get(LIVE)).status_code == 200
    async with browsing(service.app) as other:
        again = await other.client.post(path)
        assert again.status_code == 401
        assert "was used" in text_of(again)
        assert (await other.get(LIVE)).status_code == 303


async def test_a_link_of_a_revoked_key_shows_the_form_and_sets_no_cookie(service: Service) -> None:
    made = (await service.client.post("/v1/keys/", json={"name": "x", "scope": "read"})).json()
    headers = {"Authorization": f"Token {made['key']}"}
    link = (await service.client.post("/v1/console/links/", headers=headers)).json()["url"]
    await service.client.delete(f"/v1/keys/{made['id']}/")
    async with browsing(service.app) as browser:
        answer = await browser.client.post(link.removeprefix("http://memlane"))
        assert answer.status_code == 401
        assert "The API key of this link was revoked or has ended." in text_of(answer)
        assert "set-cookie" not in answer.headers
    async with service.engine.ledger.engine.connect() as connection:
        rows = await connection.scalar(select(func.count()).select_from(console_sessions))
    assert rows == 0


async def test_a_link_is_no_session_and_a_session_no_link(service: Service) -> None:
    made = (await service.client.post("/v1/console/links/")).json()
    token = made["url"].rpartition("/")[2]
    async with browsing(service.app) as browser:
        headers = {"Cookie": f"{COOKIE}={token}"}
        assert (await browser.client.get(LIVE, headers=headers)).status_code == 303
        await browser.sign_in(service.key)
        used = await browser.client.post(f"/console/enter/{browser.client.cookies[COOKIE]}")
        assert used.status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
async def test_a_form_of_another_site_is_refused(
    service: Service, browser: Browser, headers: dict[str, str]
) -> None:
    fields = {"csrf": browser.csrf, "key": service.key}
    for path in ("/console/sign-out", "/console/sign-in"):
        answer = await browser.client.post(path, data=fields, headers=headers)
        assert answer.status_code == 403
    assert (await browser.get(LIVE)).status_code == 200


async def test_a_form_without_the_sessions_token_is_refused(
    service: Service, browser: Browser
) -> None:
    async with browsing(service.app, service.key) as other:
        for csrf in ("", "x", other.csrf):
            assert (await browser.send("/console/sign-out", csrf=csrf)).status_code == 403
    assert (await browser.get(LIVE)).status_code == 200


async def test_a_read_key_sees_and_changes_nothing(service: Service, browser: Browser) -> None:
    made = await service.client.post("/v1/keys/", json={"name": "x", "scope": Access.READ})
    event_id = await service.add("I live in Berlin.")
    path = f"/console/events/{event_id}"
    async with browsing(service.app, made.json()["key"]) as reader:
        page = await reader.get(path)
        assert "Berlin" in page.text
        assert "Undo" not in text_of(page)
        refused = await reader.send(f"{path}/undo", confirmed="1")
        assert refused.status_code == 403
        assert "scope write" in text_of(refused)
    assert "Undo" in await browser.shown(path)


OWN = {"Sec-Fetch-Site": "same-origin"}
WRITTEN = 'User lives in "Pots&dam"\non the lake'


async def test_a_text_that_was_sent_after_the_sessions_end_is_sent_after_a_sign_in(
    service: Service, browser: Browser
) -> None:
    """Also if the first key is wrong. The form needs a second click, with the new session."""
    await service.add("I live in Berlin.")
    [memory] = await service.listed()
    path = f"/console/memories/{memory['id']}/edit"
    fields = {"csrf": browser.csrf, "text": WRITTEN, "version": "1"}
    browser.client.cookies.clear()
    answer = await browser.client.post(path, data=fields, headers=OWN)
    assert answer.status_code == 401
    assert WRITTEN in unescape(answer.text)
    for key, status in (("ml_wrong", 401), (service.key, 200)):
        sign_in = fields_of(answer.text, "/console/sign-in") | {"key": key}
        answer = await browser.client.post("/console/sign-in", data=sign_in, headers=OWN)
        assert answer.status_code == status
    assert [row["memory"] for row in await service.listed()] == ["User lives in Berlin"]
    again = fields_of(answer.text, path)
    assert again["csrf"] not in ("", browser.csrf)
    assert (await browser.client.post(path, data=again, headers=OWN)).status_code == 303
    assert [row["memory"] for row in await service.listed()] == [WRITTEN]


async def test_a_form_of_an_earlier_session_is_offered_again(
    service: Service, browser: Browser
) -> None:
    """A person signs in again in another tab."""
    await service.add("I live in Berlin.")
    path = f"/console/memories/{(await service.listed())[0]['id']}/edit"
    fields = {"csrf": browser.csrf, "text": WRITTEN}
    await browser.sign_in(service.key)
    answer = await browser.client.post(path, data=fields, headers=OWN)
    assert answer.status_code == 403
    again = fields_of(answer.text, path)
    assert (await browser.client.post(path, data=again, headers=OWN)).status_code == 303
    assert [row["memory"] for row in await service.listed()] == [WRITTEN]


@pytest.mark.parametrize("headers", [{}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}])
async def test_a_form_that_may_be_of_another_site_is_not_offered_again(
    service: Service, browser: Browser, headers: dict[str, str]
) -> None:
    await service.add("I live in Berlin.")
    path = f"/console/memories/{(await service.listed())[0]['id']}/edit"
    forged = {"csrf": "x", "text": WRITTEN}
    signed_in = await browser.client.post(path, data=forged, headers=headers)
    browser.client.cookies.clear()
    unknown = await browser.client.post(path, data=forged, headers=headers)
    assert (signed_in.status_code, unknown.status_code) == (403, 401)
    assert path not in signed_in.text
    assert "Pots" not in unknown.text
    carried = {"key": service.key, "unsent": path.removeprefix("/console"), "unsent.text": "Mine"}
    entered = await browser.client.post("/console/sign-in", data=carried, headers=headers)
    assert (entered.status_code, path in entered.text) in ((303, False), (403, False))


def fields_of(page: str, action: str) -> dict[str, str]:
    """The hidden fields of the form with this address."""
    [form] = re.findall(rf'(?s)<form[^>]*action="{re.escape(action)}"[^>]*>(.*?)</form>', page)
    pairs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in pairs}


async def test_a_forged_form_above_the_rate_limit_is_not_offered_again(
    service: Service, browser: Browser
) -> None:
    """The limit is checked before the CSRF token, and the page has forms with a valid one."""
    path = "/console/playground"
    service.api.keys.rate = RateLimit(1)
    service.api.keys.rate.take(await _key_id(service))
    for headers, offered in (({"Sec-Fetch-Site": "same-site"}, False), (OWN, True)):
        forged = {"csrf": "x", "conversation": "I live in Rome."}
        answer = await browser.client.post(path, data=forged, headers=headers)
        assert answer.status_code == 429
        assert (f'action="{path}"' in answer.text) is offered


async def _key_id(service: Service) -> UUID:
    grant = await service.api.keys.grant(service.key)
    assert grant is not None
    return grant.key_id
