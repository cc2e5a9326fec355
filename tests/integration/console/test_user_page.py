"""The user's page: memories of one user, with the right of the token, embedded or not."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from api.app import create_app
from api.console import forms
from api.console.forms import MOST_FIELDS
from pipeline.domain.tenants import Right
from pipeline.settings import Settings
from tests.support.api_service import Service, stranger
from tests.support.console_client import text_of

PAGE = "/user/"
OTHERS = "Zanzibar"
HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:1) \u202egnp.exe"


async def token_for(service: Service, *rights: Right, user_id: str = "maya") -> str:
    body = {"user_id": user_id, "rights": list(rights)}
    answer = await service.client.post("/v1/user-tokens/", json=body)
    return str(answer.json()["token"])


async def send(service: Service, path: str, token: str, **fields: str) -> httpx.Response:
    """Send a form as a browser without cookies does, from within another site."""
    async with stranger(service) as client:
        headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://chat.example.org"}
        return await client.post(path, data={"token": token} | fields, headers=headers)


async def test_a_user_sees_the_memories_and_the_words_they_came_from(service: Service) -> None:
    await service.add("I live in Lima.")
    await service.add(f"I live in {OTHERS}.", user_id="jon")
    page = await send(service, PAGE, await token_for(service, Right.READ))
    shown = text_of(page)
    assert "User lives in Lima" in shown
    assert "You said I live in Lima." in shown
    assert OTHERS not in shown
    assert "Delete" not in shown
    assert "set-cookie" not in page.headers
    filtered = await send(service, PAGE, await token_for(service, Right.READ), keywords="boat")
    assert "Nothing with these words" in text_of(filtered)


@pytest.mark.parametrize("skip", ["9" * 5_000, "-1", "x"])
async def test_a_position_that_is_no_number_is_the_start(service: Service, skip: str) -> None:
    await service.add("I live in Lima.")
    page = await send(service, PAGE, await token_for(service, Right.READ), skip=skip)
    assert (page.status_code, "User lives in Lima" in text_of(page)) == (200, True)


async def test_a_user_corrects_deletes_downloads_and_erases(service: Service) -> None:
    await service.add("I live in Lima.")
    await service.add("I own a boat.")
    token = await token_for(service, *Right)
    home, boat = sorted(await service.listed(), key=lambda row: row["memory"])
    paths = [f"{PAGE}memories/{row['id']}" for row in (home, boat)]
    fixed = await send(service, f"{paths[0]}/correct", token, text="User lives in Rome")
    assert "Your correction is stored." in text_of(fixed)
    assert "User lives in Rome" in text_of(await send(service, paths[0], token))
    gone = await send(service, f"{paths[1]}/delete", token)
    assert "It is deleted." in text_of(gone)
    assert "boat" not in text_of(gone)
    saved = await send(service, f"{PAGE}download", token)
    assert "attachment" in saved.headers["content-disposition"]
    assert [row["memory"] for row in json.loads(saved.text)["memories"]] == ["User lives in Rome"]
    assert (await send(service, f"{PAGE}erase", token)).status_code == 400  # the box is not ticked
    erased = await send(service, f"{PAGE}erase", token, sure="1")
    assert "Everything about you is erased" in text_of(erased)
    event_id = re.search(r"<code>([\w-]{36})</code>", erased.text)
    assert event_id
    receipt = await service.client.get(f"/v1/erasures/{event_id[1]}/")
    assert receipt.json()["entity_type"] == "user"
    assert await service.listed() == []
    assert (await send(service, PAGE, token)).status_code == 401


async def test_a_correction_of_a_memory_that_has_changed_asks_first(service: Service) -> None:
    await service.add("I live in Lima.")
    token = await token_for(service, *Right)
    [row] = await service.listed()
    path = f"{PAGE}memories/{row['id']}"
    assert 'name="version" value="1"' in (await send(service, path, token)).text
    await service.client.put(f"/v1/memories/{row['id']}/", json={"text": "User lives in Oslo"})
    answer = await send(service, f"{path}/correct", token, text="I live in Rome", version="1")
    assert answer.status_code == 409
    assert "It has changed since you opened it" in text_of(answer)
    assert "User lives in Oslo" in text_of(answer)
    assert ">I live in Rome</textarea>" in answer.text
    answer = await send(service, f"{path}/correct", token, text="I live in Rome", version="2")
    assert "Your correction is stored." in text_of(answer)


ROUTES = sorted(
    {
        (context.path or "")
        for context in iter_route_contexts(create_app(Settings()).routes)
        if (context.path or "").startswith("/user") and "POST" in (context.methods or ())
    }
)
RIGHTS = {"correct": Right.CORRECT, "delete": Right.DELETE, "erase": Right.DELETE}


@pytest.mark.parametrize("path", ROUTES)
async def test_each_form_requires_a_token_its_right_and_an_own_memory(
    service: Service, path: str
) -> None:
    await service.add("I live in Lima.")
    await service.add(f"I live in {OTHERS}.", user_id="jon")
    [theirs] = await service.listed(user_id="jon")
    address = path.format(memory_id=theirs["id"])
    fields = {"text": "Mine.", "sure": "1"}
    for token in ("", "mlu_none", service.key):
        assert (await send(service, address, token, **fields)).status_code == 401
    right = RIGHTS.get(path.rpartition("/")[2], Right.READ)
    others = await token_for(service, *(other for other in Right if other is not right))
    refused = await send(service, address, others, **fields)
    assert refused.status_code == 403
    assert f"the right {right}" in text_of(refused)
    answer = await send(service, address, await token_for(service, *Right), **fields)
    assert answer.status_code == (404 if "{" in path else 200)
    assert OTHERS not in answer.text
    assert [row["memory"] for row in await service.listed(user_id="jon")] == [theirs["memory"]]


async def test_hostile_text_is_only_ever_text(service: Service) -> None:
    await service.add(HOSTILE, infer=False)
    await service.add("w" * 30_000, infer=False)
    token = await token_for(service, *Right)
    pages = [await send(service, PAGE, token, keywords=words) for words in ("", HOSTILE)]
    paths = [f"{PAGE}memories/{row['id']}" for row in await service.listed()]
    pages += [await send(service, path, token) for path in paths]
    for page in pages:
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
        assert 'href="javascript' not in page.text
        assert "script-src 'self';" in page.headers["content-security-policy"]


async def test_only_the_projects_origins_embed_what_a_token_shows(service: Service) -> None:
    project = service.engine.project
    path = f"/api/v1/orgs/organizations/{project.organization_id}/projects/{project.id}/"
    token = await token_for(service, Right.READ)

    async def ancestors(answer: Any) -> str:
        return str(answer.headers["content-security-policy"]).rpartition("frame-ancestors ")[2]

    assert await ancestors(await send(service, PAGE, token)) == "'self'"
    origins = ["https://chat.example.org", "http://127.0.0.1:3000"]
    await service.client.patch(path, json={"allowed_origins": origins})
    assert await ancestors(await send(service, PAGE, token)) == " ".join(["'self'", *origins])
    async with stranger(service) as client:
        empty = await client.get(PAGE)
    assert await ancestors(empty) == "*"
    assert "memor" not in text_of(empty).lower()
    refused = await send(service, PAGE, "mlu_none")
    assert (refused.status_code, await ancestors(refused)) == (401, "*")
    assert "form" not in refused.text


async def test_a_refused_form_leads_back_to_the_memories(service: Service) -> None:
    await service.add("I live in Lima.")
    [row] = await service.listed()
    token = await token_for(service, *Right)
    refused = await send(service, f"{PAGE}memories/{row['id']}/correct", token, text=" ")
    assert refused.status_code == 400
    assert "All memories" in text_of(refused)
    assert f'name="token" value="{token}"' in refused.text
    assert "Lima" not in refused.text


async def test_an_address_puts_no_words_into_the_page(service: Service) -> None:
    await service.add("I live in Lima.")
    [row] = await service.listed()
    token = await token_for(service, Right.READ)
    for path in (PAGE, f"{PAGE}memories/{row['id']}"):
        words = "Call+0900+123"
        page = await send(service, f"{path}?done={words}&note={words}", token)
        assert (page.status_code, "Call 0900" in page.text) == (200, False)


async def test_a_form_is_parsed_after_its_token_is_checked(service: Service) -> None:
    many = {f"f{n}": "1" for n in range(MOST_FIELDS + 1)}
    assert (await send(service, PAGE, "mlu_wrong", **many)).status_code == 401
    known = await send(service, PAGE, await token_for(service, Right.READ), **many)
    assert known.status_code == 400


async def test_a_large_form_needs_a_valid_key_or_token(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "LARGEST_OPEN_FORM_BYTES", 200)
    monkeypatch.setattr(forms, "INLINE_BYTES", 200)
    await service.add("I live in Lima.")
    token = await token_for(service, Right.READ)
    assert "Lima" in text_of(await send(service, PAGE, token, padding="x" * 300))
    async with stranger(service) as client:
        refused = await client.post("/console/sign-in", data={"key": "k" * 300})
        assert refused.status_code == 413
        assert "more than 200 bytes" in text_of(refused)
