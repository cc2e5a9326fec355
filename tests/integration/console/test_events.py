"""The pages Live, Events and Event."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from html import unescape
from uuid import uuid4

import pytest
from sqlalchemy import update

from api.console.pages import events
from api.console.word_marks import MOST_MARKED
from api.http.sse import next_change
from api.http.streams import MOST_CONSOLE_STREAMS
from pipeline.domain.events import AddOptions
from pipeline.ledger import tables
from tests.support.api_service import Service
from tests.support.console_client import Browser, browsing, text_of
from tests.support.stack import wait_until

HOSTILE = '<script>alert("x")</script> <img src=x onerror=alert(1)> [a](javascript:1) \u202egnp.exe'


async def test_live_shows_the_numbers_and_the_newest_events(
    service: Service, browser: Browser
) -> None:
    event_id = await service.add("I live in Berlin.")
    text = await browser.shown("/console/live")
    assert "Succeeded1" in text.replace(" ", "")
    assert "balanced" in text
    assert event_id[:8] in text
    part = await browser.client.get("/console/live", headers={"HX-Request": "true"})
    assert "<html" not in part.text
    assert event_id[:8] in part.text


async def test_live_of_one_project_is_not_updated_with_the_numbers_of_another(
    service: Service, browser: Browser
) -> None:
    update = {"HX-Request": "true"}
    match = re.search(
        r'hx-get="(/console/live\?project=[\w-]+)"', (await browser.get("/console/live")).text
    )
    assert match
    own = await browser.client.get(match[1], headers=update)
    assert (own.status_code, "Memories" in own.text) == (200, True)
    _, key = await service.engine.ledger.projects.create("other")
    await browser.sign_in(key)  # in another tab
    other = await browser.client.get(match[1], headers=update)
    assert (other.text, other.headers["HX-Refresh"]) == ("", "true")


async def test_live_names_the_oldest_work_and_its_state(service: Service) -> None:
    queue = service.engine.ledger.queue
    project_id = service.engine.project.id
    assert (await queue.ages(project_id)).dispatchable is None
    event_id = await service.engine.add("I live in Berlin.")
    oldest = (await queue.ages(project_id)).dispatchable
    assert oldest is not None
    assert (oldest.event_id, oldest.events, oldest.code) == (event_id, 1, None)
    [minute] = await queue.rate(project_id)
    assert minute.accepted == 1


async def test_the_event_page_shows_waterfall_receipt_and_source_words(
    service: Service, browser: Browser
) -> None:
    event_id = await service.add("I live in Berlin.")
    page = await browser.get(f"/console/events/{event_id}")
    assert "<mark>Berlin</mark>" in page.text
    assert "User lives in Berlin" in text_of(page)
    for part in ("queued", "extract", "apply"):
        assert f'scope="row">{part}' in page.text


async def test_the_unaccounted_time_is_one_row_with_the_figure_above_it(
    service: Service, browser: Browser
) -> None:
    """A gap of 9 s after the queue, and one of 1.5 % at the end."""
    event_id = await service.add("I live in Berlin.")
    late = update(tables.events).values(
        created_at=tables.events.c.created_at - timedelta(seconds=10),
        started_at=tables.events.c.started_at - timedelta(seconds=9),
        completed_at=tables.events.c.completed_at + timedelta(milliseconds=150),
    )
    async with service.engine.ledger.engine.begin() as connection:
        await connection.execute(late)
    page = await browser.get(f"/console/events/{event_id}")
    [row] = re.findall(r'<tr class="unaccounted">.*?</tr>', page.text, re.DOTALL)
    assert row.count("<rect") >= 2
    [above] = re.findall(r"of it unaccounted ([\d.]+ s)", page.text)
    assert f'<td class="num">{above}</td>' in row


async def test_the_marks_of_a_page_are_bounded(service: Service, browser: Browser) -> None:
    texts = [" ".join(f"word{n}x{at}" for at in range(1_200)) for n in range(4)]
    event_id = await service.add(*texts, infer=False)
    page = await browser.get(f"/console/events/{event_id}")
    marked = sum(map(len, re.findall("<mark>(.*?)</mark>", page.text)))
    assert MOST_MARKED / 2 < marked <= MOST_MARKED
    shown = unescape(re.sub("</?mark>", "", page.text))
    for text in texts:
        assert text in shown


async def test_hostile_text_is_only_text(service: Service, browser: Browser) -> None:
    ids = {"user_id": HOSTILE[:60], "agent_id": '"><script>'}
    event_id = await service.add(f"I like {HOSTILE}.", infer=False, **ids)
    for path in (f"/console/events/{event_id}", "/console/events", "/console/live"):
        page = await browser.get(path)
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
        assert '"><script>' not in page.text
        assert "&lt;script&gt;alert" in page.text
    # A query string that is shown again in the fields of the filter.
    page = await browser.get("/console/events", user_id='"><script>alert(1)</script>')
    assert "<script>alert" not in page.text


async def test_lists_are_read_in_keyset_pages(service: Service, browser: Browser) -> None:
    for number in range(60):
        await service.engine.add(f"I own {number} pens.", options=AddOptions(infer=False))
    await service.engine.drain()
    first = await browser.get("/console/events")
    [older] = [line for line in first.text.splitlines() if 'rel="next"' in line]
    address = older.partition('href="')[2].partition('"')[0].replace("&amp;", "&")
    second = await browser.get("/console/events" + address)

    def ids(text: str) -> list[str]:
        return [part[:36] for part in text.split('<tr id="e-')[1:]]

    assert len(ids(first.text)) == 50
    assert len(ids(second.text)) == 10
    assert not set(ids(first.text)) & set(ids(second.text))


async def test_filters_have_an_address(service: Service, browser: Browser) -> None:
    event_id = await service.add("I live in Berlin.")
    assert event_id[:8] in await browser.shown("/console/events", user_id="maya")
    assert event_id[:8] not in await browser.shown("/console/events", user_id="tom")
    assert event_id[:8] not in await browser.shown("/console/events", status="FAILED")
    wrong = await browser.get("/console/events", status="SOON")
    assert wrong.status_code == 400
    assert "status is one of" in text_of(wrong)


async def test_undo_shows_its_plan_first(service: Service, browser: Browser) -> None:
    path = f"/console/events/{await service.add('I live in Berlin.')}"
    unconfirmed = await browser.send(f"{path}/undo")
    assert unconfirmed.headers["location"] == f"{path}/undo"
    for _ in range(2):  # a page that can be loaded again
        assert "Nothing has changed yet" in await browser.shown(f"{path}/undo")
    assert len(await service.listed()) == 1
    done = await browser.send(f"{path}/undo", confirmed="1")
    assert done.status_code == 303
    assert "undone" in await browser.shown(done.headers["location"])
    assert await service.listed() == []
    again = await browser.send(f"{path}/undo", confirmed="1")
    assert again.status_code == 409


async def test_an_undo_of_an_event_whose_memories_have_changed_leaves_these(
    service: Service, browser: Browser
) -> None:
    event_id = await service.add("I live in Berlin.", "I like green tea.")
    changed = next(row for row in await service.listed() if "Berlin" in row["memory"])
    await browser.send(f"/console/memories/{changed['id']}/edit", text="User lives in Bonn")
    path = f"/console/events/{event_id}/undo"
    assert "Some of it has changed since then" in await browser.shown(path)
    undone = await browser.send(path, confirmed="1", force="1")
    assert undone.status_code == 303
    assert [row["memory"] for row in await service.listed()] == ["User lives in Bonn"]


async def test_cancel_retry_and_a_dry_run(service: Service) -> None:
    event_id = await service.engine.add("I live in Berlin.")
    path = f"/console/events/{event_id}"
    async with browsing(service.app, service.key) as browser:
        assert "Cancel" in await browser.shown(path)
        assert (await browser.send(f"{path}/cancel")).status_code == 303
        text = await browser.shown(path)
        assert "cancelled" in text
        tried = await browser.send(f"{path}/retry", dry_run="1", content="I live in Rome.")
        await service.engine.drain()
        assert "User lives in Rome" in await browser.shown(tried.headers["location"])
        assert await service.listed() == []
        retried = await browser.send(f"{path}/retry", content="I live in Lima.")
        assert retried.status_code == 303
        await service.engine.drain()
        assert "User lives in Lima" in await browser.shown(path)


async def test_the_stream_sends_the_page_part_until_the_end(
    service: Service, browser: Browser
) -> None:
    event_id = await service.add("I live in Berlin.")
    answer = await browser.get(f"/console/events/{event_id}/stream")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "User lives in Berlin" in answer.text
    assert answer.text.endswith("event: end\ndata: \n\n")


@pytest.mark.parametrize("heartbeat_s", [0.01, 600.0])
async def test_the_stream_ends_once_its_key_is_revoked(
    service: Service, monkeypatch: pytest.MonkeyPatch, heartbeat_s: float
) -> None:
    """At the next change of the event, and without one at the next heartbeat."""
    monkeypatch.setattr(events, "next_change", partial(next_change, heartbeat_s=heartbeat_s))
    event_id = await service.engine.add("I live in Berlin.")
    body = {"name": "guest", "scope": "read"}
    key = (await service.client.post("/v1/keys/", json=body)).json()
    frames = service.api.event_frames
    async with browsing(service.app, key["key"]) as browser:
        stream = asyncio.create_task(browser.get(f"/console/events/{event_id}/stream"))

        async def shown() -> bool:
            return any(event._frame for event in frames._events.values())

        await wait_until(shown, within_s=30, what="the first frame")
        await service.client.delete(f"/v1/keys/{key['id']}/")
        if heartbeat_s > 1:
            await service.client.post(f"/v1/event/{event_id}/cancel/")
        async with asyncio.timeout(30):
            answer = await stream
        assert answer.text.endswith("event: end\ndata: \n\n")
        assert "cancelled" not in answer.text
        page = await browser.get(f"/console/events/{event_id}")
        assert page.headers["location"].startswith("/console/sign-in")


async def test_unknown_ids_are_not_found(browser: Browser) -> None:
    for path in (f"/console/events/{uuid4()}", f"/console/events/{uuid4()}/stream"):
        answer = await browser.get(path)
        assert answer.status_code == 404
        assert "Event not found" in text_of(answer)
    assert (await browser.get("/console/events/7")).status_code == 400


async def test_the_streams_of_a_project_are_limited(service: Service, browser: Browser) -> None:
    path = f"/console/events/{await service.add('I live in Berlin.')}/stream"
    with ExitStack() as others:
        for _ in range(MOST_CONSOLE_STREAMS):
            others.enter_context(service.api.console_streams.place(service.engine.project.id))
        refused = await browser.get(path)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
    assert (await browser.get(path)).status_code == 200
