"""The pages Memories, Memory, Search, Inbox and Graph."""

from __future__ import annotations

import asyncio
import html
import json
import re
from uuid import uuid4

import pytest
from sqlalchemy import insert

from api.console.pages import graph
from pipeline.domain.scope import Scope
from pipeline.ledger.tables import suggestions
from tests.support.api_service import MAYA, Service
from tests.support.console_client import Browser, text_of


async def test_a_memory_is_found_by_filters_and_changed_by_a_person(
    service: Service, browser: Browser
) -> None:
    await service.add("I live in Berlin.")
    [memory] = await service.listed()
    path = f"/console/memories/{memory['id']}"
    assert "User lives in Berlin" in await browser.shown("/console/memories", user_id="maya")
    assert "User lives" not in await browser.shown("/console/memories", user_id="tom")
    assert "User lives" in await browser.shown("/console/memories", keywords="berlin")
    for form, fields, shown in (
        ("edit", {"text": "User lives in Potsdam"}, "User lives in Potsdam"),
        ("pin", {"pinned": "1"}, "pinned"),
        ("feedback", {"feedback": "NEGATIVE", "reason": "too vague"}, "rating is stored"),
        ("restore", {"version": "1"}, "User lives in Berlin"),
        ("delete", {}, "deleted"),
    ):
        answer = await browser.send(f"{path}/{form}", **fields)
        assert answer.status_code == 303, text_of(answer)
        assert shown in await browser.shown(answer.headers["location"])
    assert await service.listed() == []
    restored = await browser.send(f"{path}/restore", version="2")
    assert "User lives in Potsdam" in await browser.shown(restored.headers["location"])


async def test_a_memory_is_shown_as_it_was(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    before = (await service.engine.ledger.now()).isoformat()
    await service.add("I moved to Lisbon.")
    [memory] = await service.listed()
    path = f"/console/memories/{memory['id']}"
    now = await browser.get(path)
    assert "<del>Berlin</del>" in now.text
    assert "Lisbon" in now.text
    then = await browser.get(path, as_of=before)
    assert '<div class="big"><bdi class="words">User lives in Berlin</bdi></div>' in then.text
    early = await browser.shown(path, as_of="2000-01-01")
    assert "There was no such memory" in early
    assert "Berlin" in await browser.shown("/console/memories", user_id="maya", as_of=before)


async def test_a_memory_has_the_times_of_its_creation_and_of_its_version(
    service: Service, browser: Browser
) -> None:
    """A time of the past in the add sets the first, a correction the second."""
    await service.add("I live in Berlin.", timestamp=1_577_880_000)
    [memory] = await service.listed()
    path = f"/console/memories/{memory['id']}"
    await browser.send(f"{path}/edit", text="User lives in Potsdam")
    page = await browser.shown(path)
    [stored_at] = re.findall(r"Stored ?(\d{4}-\d\d-\d\d)", page)
    now = await service.engine.ledger.now()
    assert re.search("Created ?2020-01-01", page)
    assert stored_at == f"{now:%Y-%m-%d}"


async def test_search_shows_scores_and_why_not(service: Service, browser: Browser) -> None:
    for text in ("I live in Berlin.", "My dog is called Bruno.", "I like green tea."):
        await service.add(text)
    tea = next(row for row in await service.listed() if "tea" in row["memory"])
    page = await browser.shown(
        "/console/search", q="Where do I live?", other="dog", user_id="maya", why=tea["id"]
    )
    assert "User lives in Berlin" in page
    assert "Bruno" in page
    assert "green tea" in page
    refused = await browser.get("/console/search", q="Where?")
    assert refused.status_code == 400
    assert "user, agent, app or run" in text_of(refused)


async def test_one_result_is_counted_in_the_singular(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    shown = await browser.shown("/console/search", q="Berlin", user_id="maya", top_k="1")
    assert "1 result" in shown
    assert "1 results" not in shown


async def test_search_shows_results_that_are_long_together(
    service: Service, browser: Browser
) -> None:
    for n in range(2):
        texts = (f"Tea number {n}{at} " + "is green tea " * 1_500 for at in range(4))
        await service.add(*texts, infer=False)
    for ids in ({"user_id": "maya"}, {"user_id": "*"}):
        assert "8 results" in await browser.shown("/console/search", q="green tea", **ids)


async def test_a_long_history_has_pages(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    [memory] = await service.listed()
    path = f"/console/memories/{memory['id']}"
    for number in range(2, 6):
        text = f"User lives at number{number} " + "of a very long street " * 1_000
        assert (await browser.send(f"{path}/edit", text=text)).status_code == 303
    first = await browser.get(path)
    shown = [
        int(version) for version in re.findall(r'<article class="line" id="v(\d)"', first.text)
    ]
    assert shown == list(range(5, 5 - len(shown), -1))
    assert len(shown) < 5
    assert f"Restore version {5 - 1}" in first.text
    assert "Restore version 5" not in first.text
    [address] = re.findall(r'rel="next" href="([^"]*)"', first.text)
    second = await browser.get(path + html.unescape(address))
    rest = [
        int(version) for version in re.findall(r'<article class="line" id="v(\d)"', second.text)
    ]
    assert rest[0] == shown[-1] - 1
    assert f"Restore version {rest[0]}" in second.text


async def suggest(service: Service, kind: str, text: str | None) -> str:
    """A suggestion about the newest memory."""
    memory = (await service.listed())[0]
    project_id, suggestion_id = service.engine.project.id, uuid4()
    scope = Scope(project_id, **MAYA)
    target = {"memory_id": memory["id"], "version": memory["version"]}
    values = {"kind": kind, "origin": "event", "targets": [target], "content_hash": kind.encode()}
    words = {"fact_text": text, "proposed_text": text, "reason": "A person has edited it."}
    owner = {"project_id": project_id, "lane_id": scope.lane_id}
    async with service.engine.ledger.engine.begin() as connection:
        row = insert(suggestions).values(id=suggestion_id, **values, **words, **owner)
        await connection.execute(row)
    return str(suggestion_id)


async def test_a_suggestion_is_accepted_with_an_edit(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    suggestion_id = await suggest(service, "UPDATE", "User lives in Potsdam")
    page = await browser.get("/console/inbox")
    assert "<del>Berlin</del>" in page.text
    path = f"/console/inbox/suggestions/{suggestion_id}"
    answer = await browser.send(f"{path}/accept", text="User lives in Bonn")
    assert answer.status_code == 303
    assert [row["memory"] for row in await service.listed()] == ["User lives in Bonn"]
    accepted = await browser.get("/console/inbox", state="ACCEPTED")
    match = re.search(r"/console/events/([\w-]{36})", accepted.text)
    assert match
    undone = await browser.send(f"/console/events/{match[1]}/undo", confirmed="1")
    assert undone.status_code == 303
    assert [row["memory"] for row in await service.listed()] == ["User lives in Berlin"]


async def test_suggestions_and_their_owner_are_shown(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    await suggest(service, "UPDATE", "User lives in Potsdam")
    page = await browser.get("/console/inbox")
    assert '<a href="/console/memories?user_id=maya">' in page.text


async def test_suggestions_are_decided_in_bulk(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    ids = [await suggest(service, kind, None) for kind in ("DELETE", "UPDATE")]
    answer = await browser.client.post(
        "/console/inbox/decide", data={"csrf": browser.csrf, "action": "reject", "ids": ids}
    )
    assert answer.status_code == 303
    assert "No suggestion waits" in await browser.shown("/console/inbox")
    assert len(await service.listed()) == 1


async def test_the_graph_is_shown_and_its_entities_changed(
    service: Service, browser: Browser
) -> None:
    await service.add("My sister Ines works at Siemens.")
    page = await browser.get("/console/graph", user_id="maya")
    assert "Siemens" in page.text
    entities = dict(
        re.findall(
            r'/console/graph/([\w-]{36})\?user_id=maya"><bdi class="words">([^<]+)', page.text
        )
    )
    node = next(node for node, name in entities.items() if name == "Siemens")
    path = f"/console/graph/{node}"
    renamed = await browser.send(f"{path}/rename", name="Siemens AG")
    assert "Siemens AG" in await browser.shown(renamed.headers["location"])
    other = next(key for key in entities if key != node)
    chosen = await browser.get(path, user_id="maya")
    assert f'<option value="{other}">{html.escape(entities[other])}</option>' in chosen.text
    assert f'<option value="{node}"' not in chosen.text
    merged = await browser.send(f"{path}/merge", into=other)
    assert merged.status_code == 303
    assert (await browser.send(f"{path}/split")).status_code == 303
    unsure = await browser.send(f"{path}/delete")
    assert unsure.status_code == 400
    assert (await browser.send(f"{path}/delete", sure="1")).status_code == 303
    assert (await browser.get(path)).status_code == 404


async def test_rows_of_a_large_graph_come_in_pages(
    service: Service, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drawing of four relations, and pages of two rows."""
    monkeypatch.setattr(graph, "DRAWN", 4)
    monkeypatch.setattr(graph, "SHOWN", 2)
    for name in ("Ann", "Ben", "Cem", "Dan", "Eva"):
        await service.add(f"My friend {name} works at Siemens.")
    whole = await service.client.get("/v1/graph/", params={"user_id": "maya"})
    count = whole.json()["count"]
    assert count > 4
    rows: list[str] = []
    query: dict[str, str] = {}
    while True:
        page = await browser.get("/console/graph", user_id="maya", **query)
        shown = re.findall(r"(?s)<tr>\s*<td><a class=\"row\".*?</tr>", page.text)
        assert len(shown) == min(2, count - len(rows))
        drawing = re.search(r"data-graph='([^']*)'", page.text)
        assert drawing
        links = json.loads(html.unescape(drawing[1]))["links"]
        assert len(links) == min(4, count - len(rows) // 4 * 4)
        rows += shown
        older = re.search(r'rel="next" href="[^"]*page=(\d+)', page.text)
        if older is None:
            break
        query = {"page": older[1]}
    assert len(rows) == len(set(rows)) == count


@pytest.mark.parametrize("page", ["9" * 5_000, "0", "-1", "x", "²"])
async def test_a_page_that_is_no_number_of_a_page_is_the_first(browser: Browser, page: str) -> None:
    first, other = [await browser.get("/console/inbox", page=number) for number in ("1", page)]
    assert (other.status_code, text_of(other)) == (200, text_of(first))


async def test_an_empty_graph_asks_for_an_id(browser: Browser) -> None:
    assert "Give an id" in await browser.shown("/console/graph")


async def test_a_form_without_a_choice_says_what_to_choose(
    service: Service, browser: Browser
) -> None:
    for path, fields, sentence in (
        ("/console/inbox/decide", {"action": "reject"}, "Tick at least one suggestion first."),
        (f"/console/inbox/conflicts/{uuid4()}", {}, "Choose what holds, or write a text."),
    ):
        answer = await browser.send(path, **fields)
        assert answer.status_code == 400
        assert sentence in text_of(answer)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/console/inbox?kind=letters", "kind is one of suggestions, conflicts, curator."),
        ("/console/events?code=NONE", "'NONE' is no code of a failure"),
        ("/console/memories?as_of=soon", "'soon' is no time"),
    ],
)
async def test_a_wrong_filter_is_named_and_cannot_be_saved_as_a_view(
    service: Service, browser: Browser, address: str, sentence: str
) -> None:
    answer = await browser.get(address)
    assert answer.status_code == 400
    assert sentence in text_of(answer)
    assert "Save this view" not in answer.text


LONG = " ".join(f"word{n}" for n in range(1_250))


def folded(page: str) -> list[tuple[str, str]]:
    """The short form and the whole text of each long text of a page, without tags."""
    pairs = re.findall(
        r'(?s)<div class="long"><div class="short">(.*?)</div><details><summary>Show all [\d,]+'
        r" characters</summary>(.*?)</details></div>",
        page,
    )
    texts = [[html.unescape(re.sub(r"<[^>]+>", "", part)) for part in pair] for pair in pairs]
    return [(short, whole) for short, whole in texts]


async def test_a_long_text_is_shown_in_short_with_the_whole_behind_a_button(
    service: Service, browser: Browser
) -> None:
    """On the pages of a memory, an event, the inbox and the conflicts."""
    event_id = await service.add(LONG, infer=False)
    [memory] = await service.listed()
    await browser.send(f"/console/memories/{memory['id']}/edit", text=f"{LONG} and tea")
    await suggest(service, "UPDATE", f"{LONG} and coffee")
    for path, times in ((f"/events/{event_id}", 2), (f"/memories/{memory['id']}", 4)):
        texts = folded((await browser.get(f"/console{path}")).text)
        assert [LONG in whole for _, whole in texts] == [True] * times
        assert max(len(short) for short, _ in texts) < 700
    [(short, whole)] = folded((await browser.get("/console/inbox")).text)
    assert "word1249" in short
    assert "tea" in short
    assert "coffee" in short
    assert len(short) < 400
    assert LONG in whole


async def test_an_edit_of_a_memory_that_has_changed_asks_first(
    service: Service, browser: Browser
) -> None:
    """A second tab has the text of before."""
    await service.add("I live in Berlin.")
    [memory] = await service.listed()
    path = f"/console/memories/{memory['id']}/edit"
    for version, text, status in (("1", "User lives in Bonn", 303), ("1", "In Bern", 409)):
        answer = await browser.send(path, text=text, version=version)
        assert answer.status_code == status
    assert "User lives in Bonn" in text_of(answer)
    assert "In Bern" in text_of(answer)
    assert [row["memory"] for row in await service.listed()] == ["User lives in Bonn"]
    assert 'name="version" value="2"' in answer.text
    assert (await browser.send(path, text="In Bern", version="2")).status_code == 303
    assert [row["memory"] for row in await service.listed()] == ["In Bern"]


async def test_of_two_edits_at_once_one_asks_first(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    [memory] = await service.listed()
    path = f"/console/memories/{memory['id']}/edit"
    edits = [browser.send(path, text=text, version="1") for text in ("In Bonn", "In Bern")]
    answers = await asyncio.gather(*edits)
    assert sorted(answer.status_code for answer in answers) == [303, 409]


async def test_an_error_shows_what_was_written(service: Service, browser: Browser) -> None:
    await service.add("I live in Berlin.")
    [memory] = await service.listed()
    path = f"/console/memories/{memory['id']}/feedback"
    answer = await browser.send(path, feedback="BAD", reason="It is <too> vague")
    assert answer.status_code == 400
    assert ">It is &lt;too&gt; vague</textarea>" in answer.text
    assert f'href="/console/memories/{memory["id"]}">Back to the page' in answer.text
