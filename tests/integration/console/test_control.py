"""The pages Failures, Webhooks, Costs, Health, Replays, Verify, Erasures, Admin and Playground."""

from __future__ import annotations

import re

import httpx
import pytest
from sqlalchemy import text

from api.console.pages import replays
from api.console.pages.views import MOST_FILTERS
from pipeline.domain.messages import Message, Role
from pipeline.domain.scope import Scope
from tests.support.api_service import Service
from tests.support.console_client import Browser, browsing, text_of


async def test_failed_events_are_retried_by_code(service: Service, browser: Browser) -> None:
    event_id = await service.engine.add("I live in Berlin.")
    await browser.send(f"/console/events/{event_id}/cancel")
    page = await browser.get("/console/failures")
    assert "CANCELLED" in page.text
    retried = await browser.send("/console/failures/retry", code="CANCELLED")
    assert retried.status_code == 303
    await service.engine.drain()
    assert "No event has failed" in await browser.shown("/console/failures")
    assert len(await service.listed()) == 1


async def test_a_webhook_is_made_turned_off_and_deleted(browser: Browser) -> None:
    fields = {"name": "door", "url": "https://hooks.example.org/x", "event_types": "memory_add"}
    made = await browser.send("/console/webhooks", **fields)
    assert "whsec_" in made.text
    page = await browser.get("/console/webhooks")
    match = re.search(r"/console/webhooks/[\w-]{36}", page.text)
    assert match
    path = match[0]
    assert "No delivery" in await browser.shown(path)
    assert "whsec_" not in page.text
    assert (await browser.send(f"{path}/active")).status_code == 303
    assert "Turn on" in await browser.shown(path)
    assert (await browser.send(f"{path}/delete", sure="1")).status_code == 303
    assert "No webhook" in await browser.shown("/console/webhooks")


async def test_costs_health_and_verify_are_shown(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    assert "no budget" in await browser.shown("/console/costs", start_date="2020-01-01")
    health = await browser.shown("/console/health")
    assert "ledger" in health
    assert "MEMLANE_DATABASE_URL" not in health  # not the operator's organization
    assert "no tamper evidence" in await browser.shown("/console/verify", check="1")


async def test_recorded_heads_are_listed_newest_first_in_pages(
    service: Service, browser: Browser
) -> None:
    heads = (
        "INSERT INTO seal_checkpoints (project_id, number, counter, lanes, root, key_id, signature)"
        " SELECT :project, n, n, 1, sha256(n::text::bytea), '', '' FROM generate_series(1, 60) n"
    )
    values = {"project": service.engine.project.id}
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(
            text("UPDATE projects SET tamper_evidence = true WHERE id = :project"), values
        )
        await connection.execute(text(heads), values)
    first = await browser.get("/console/verify")
    match = re.search(r'rel="next" href="([^"]+)"', first.text)
    assert match
    second = await browser.get("/console/verify" + match[1].replace("&amp;", "&"))

    def numbers(page: httpx.Response) -> list[int]:
        return [int(number) for number in re.findall(r'<td class="num">(\d+)</td>', page.text)]

    assert numbers(first) + numbers(second) == list(range(60, 0, -1))
    assert 'rel="next"' not in second.text


async def test_a_replay_is_compared_and_discarded(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    begun = await browser.send("/console/replays", user_id="maya", answers="recorded")
    assert begun.status_code == 303, text_of(begun)
    await service.engine.drain()
    path = begun.headers["location"].partition("?")[0]
    assert "1 memories stay as they are" in await browser.shown(path)
    assert (await browser.send(f"{path}/discard")).status_code == 303
    assert (await browser.get(path)).status_code == 404


async def test_a_replay_counts_the_changes_that_it_does_not_show(
    service: Service, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.add("I live in Berlin.")
    await service.add("I own a boat.")
    for row in await service.listed():
        await service.client.delete(f"/v1/memories/{row['id']}/")
    begun = await browser.send("/console/replays", user_id="maya", answers="recorded")
    await service.engine.drain()
    path = begun.headers["location"].partition("?")[0]
    assert "not shown here" not in await browser.shown(path)
    monkeypatch.setattr(replays, "MOST_CHANGES", 1)
    assert "1 more new memories are not shown here." in await browser.shown(path)


async def test_a_user_is_erased_and_the_receipt_shown(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    unsure = await browser.send("/console/erasures", user_id="maya")
    assert unsure.status_code == 400
    assert len(await service.listed()) == 1
    erased = await browser.send("/console/erasures", user_id="maya", sure="1")
    receipt = await browser.shown(erased.headers["location"])
    assert "memories" in receipt
    assert await service.listed() == []
    event_id = erased.headers["location"].partition("?")[0].rpartition("/")[2]
    again = await browser.get("/console/erasures", receipt=event_id)
    assert again.headers["location"].endswith(event_id)


async def test_keys_are_made_shown_once_and_revoked(service: Service, browser: Browser) -> None:
    made = await browser.send("/console/admin/keys", name="desk", scope="read")
    match = re.search(r"ml_[\w-]{43}", made.text)
    assert match
    key = match[0]
    page = await browser.get("/console/admin")
    assert key not in page.text
    assert "desk" in page.text
    async with browsing(service.app, key) as reader:
        assert (await reader.get("/console/admin")).status_code == 403
        row = page.text.partition("desk")[2]
        revoke = re.search(r"/console/admin/keys/[\w-]{36}/revoke", row)
        assert revoke
        assert (await browser.send(revoke[0])).status_code == 303
        assert (await reader.get("/console/live")).status_code == 303


async def test_members_and_projects_are_added(browser: Browser) -> None:
    member = {"email": "noor@example.org", "role": "READER"}
    assert (await browser.send("/console/admin/members", **member)).status_code == 303
    assert (await browser.send("/console/admin/projects", name="second")).status_code == 303
    page = await browser.shown("/console/admin")
    assert "noor@example.org" in page
    assert "second" in page
    assert (await browser.send("/console/admin/members/remove", **member)).status_code == 303
    assert "No members" in await browser.shown("/console/admin")


async def test_the_playground_remembers_a_conversation(service: Service, browser: Browser) -> None:
    assert "fixed rules" in await browser.shown("/console/playground")
    sent = await browser.send("/console/playground", conversation="I live in Lima.\nassistant: Ok.")
    assert sent.status_code == 303, text_of(sent)
    await service.engine.drain()
    assert "User lives in Lima" in await browser.shown(sent.headers["location"])


async def test_a_view_with_too_many_filters_is_refused(browser: Browser) -> None:
    query = "&".join(f"a{number}=1" for number in range(MOST_FILTERS + 1))
    answer = await browser.send("/console/views", name="Many", path="/events", query=query)
    assert answer.status_code == 400
    assert f"at most {MOST_FILTERS} filters" in text_of(answer)


async def test_a_view_is_saved_listed_and_deleted(service: Service, browser: Browser) -> None:
    page = await browser.get("/console/events?status=FAILED&skip=3&before=2026-01-01")
    assert 'name="query" value="status=FAILED"' in page.text
    view = {"name": "Broken", "path": "/events", "query": "status=FAILED&skip=3"}
    saved = await browser.send("/console/views", **view)
    assert saved.headers["location"] == "/console/events?status=FAILED&done=view-saved"
    live = await browser.get("/console/live")
    assert 'href="/console/events?status=FAILED"' in live.text
    elsewhere = await browser.send("/console/views", **view | {"path": "//evil.example"})
    assert elsewhere.status_code == 400
    match = re.search(r"/console/views/[\w-]{36}/delete", live.text)
    assert match
    assert (await browser.send(match[0])).status_code == 303
    assert "Broken" not in await browser.shown("/console/live")


async def test_names_of_a_views_query_are_only_text(browser: Browser) -> None:
    query = "path=1&context=2&request=3&_loop_vars=4&done=5"
    saved = await browser.send("/console/views", name="odd", path="/events", query=query)
    assert saved.status_code == 303
    live = await browser.get("/console/live")
    assert live.status_code == 200
    assert 'href="/console/events?path=1&amp;context=2&amp;request=3&amp;_loop_vars=4"' in live.text


async def test_a_project_has_a_limited_number_of_views(browser: Browser) -> None:
    for number in range(50):
        await browser.send("/console/views", name=f"v{number}", path="/events", query="")
    full = await browser.send("/console/views", name="one more", path="/events", query="")
    assert full.status_code == 409


async def test_budgets_and_the_schedule_are_set_and_removed(browser: Browser) -> None:
    limits = {"project_tokens": "1000", "project_per": "month", "user_usd": "2.5"}
    assert (await browser.send("/console/costs/budget", **limits)).status_code == 303
    page = await browser.shown("/console/costs")
    assert "the project's 1000 tokens per month: 0 % used" in page
    wrong = await browser.send("/console/costs/budget", project_tokens="many")
    assert "is no number" in text_of(wrong)
    assert (await browser.send("/console/costs/budget")).status_code == 303
    assert "no budget" in await browser.shown("/console/costs")
    hours = {"every_hours": "24", "idle_minutes": "30"}
    assert (await browser.send("/console/inbox/schedule", **hours)).status_code == 303
    assert "runs by itself" in await browser.shown("/console/inbox", kind="curator")
    assert (await browser.send("/console/inbox/schedule", every_hours="12")).status_code == 303
    inbox = await browser.get("/console/inbox?kind=curator")
    assert re.search(r'name="every_hours"[^>]* value="12(\.0)?"', inbox.text), inbox.text
    assert re.search(r'name="idle_minutes"[^>]* value="60(\.0)?"', inbox.text), inbox.text
    assert (await browser.send("/console/inbox/schedule")).status_code == 303
    assert "only on request" in await browser.shown("/console/inbox", kind="curator")


@pytest.mark.parametrize("minutes", ["0", "-5", "1.5", "1e3", "an hour", "100000"])
async def test_a_token_is_not_made_for_another_time_than_the_form_says(
    browser: Browser, minutes: str
) -> None:
    form = {"user_id": "maya", "rights": "read", "minutes": minutes}
    refused = await browser.send("/console/user-tokens", **form)
    assert refused.status_code == 400
    assert "No valid token" in await browser.shown("/console/user-tokens")


async def test_a_users_token_is_made_listed_and_revoked(browser: Browser) -> None:
    made = await browser.send("/console/user-tokens", user_id="maya", rights="read", minutes="5")
    assert re.search(r"/user/#mlu_[\w-]{43}", made.text)
    page = await browser.get("/console/user-tokens?user_id=maya")
    match = re.search(r"/console/user-tokens/[\w-]{36}/revoke", page.text)
    assert match
    assert (await browser.send(match[0])).status_code == 303
    assert "No valid token" in await browser.shown("/console/user-tokens")
    sites = await browser.send("/console/user-tokens/origins", origins="https://chat.example.org")
    assert sites.status_code == 303
    assert "https://chat.example.org" in await browser.shown("/console/user-tokens")


async def test_the_inbox_and_the_replays_are_those_of_an_owner(
    service: Service, browser: Browser
) -> None:
    for user in ("maya", "ines"):
        await service.engine.send(
            Scope(service.engine.project.id, user_id=user), [Message(Role.USER, "I own a cat.")]
        )
        await service.engine.drain()
        assert (await browser.send("/console/inbox/curator", user_id=user)).status_code == 303
        assert (await browser.send("/console/replays", user_id=user)).status_code == 303
    runs = {}
    for user in ("maya", "ines", "unknown"):
        page = (await browser.get(f"/console/inbox?kind=curator&user_id={user}")).text
        runs[user] = set(re.findall(r"/console/inbox/curator/([\w-]{36})/cancel", page))
        for kind in ("suggestions", "conflicts"):
            shown = (await browser.get(f"/console/inbox?kind={kind}&user_id={user}")).text
            assert f"user_id={user}" in shown  # the tabs keep the filter
    assert (len(runs["maya"]), len(runs["ines"]), runs["unknown"]) == (1, 1, set())
    assert runs["maya"].isdisjoint(runs["ines"])
    page = (await browser.get("/console/inbox?kind=curator&user_id=maya")).text
    form = re.search(r'action="(/console/inbox/curator/[^"]+/cancel[^"]*)"', page)
    assert form
    ended = await browser.send(form[1])
    assert "user_id=maya" in ended.headers["location"]
    replayed = await browser.shown("/console/replays", user_id="maya")
    assert "maya" in replayed
    assert "ines" not in replayed
    assert "No replay" in await browser.shown("/console/replays", user_id="unknown")


async def test_the_key_of_the_own_session_is_marked(service: Service, browser: Browser) -> None:
    await service.client.post("/v1/keys/", json={"name": "other", "scope": "read"})
    page = await browser.get("/console/admin")
    assert page.text.count("your session</span>") == 1
    assert page.text.count("Revoke it, and end your session?") == 1
