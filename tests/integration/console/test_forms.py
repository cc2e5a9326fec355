"""Addresses that take only forms: a browser asks for one after a sign-in or a step back."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from fastapi.routing import iter_route_contexts

from api.app import create_app
from api.console.unsent import UnsentForm, page_with_form
from pipeline.settings import Settings
from tests.support.api_service import Service
from tests.support.console_client import Browser, text_of

ID = str(UUID(int=7))


def addresses() -> list[str]:
    """An address of each form of the console, but for those of the sign-in."""
    paths = {
        context.path
        for context in iter_route_contexts(create_app(Settings()).routes)
        if context.path
        and context.path.startswith("/console/")
        and "POST" in (context.methods or ())
    }
    entrance = {"/console/sign-in", "/console/enter/{token}"}
    return sorted(re.sub(r"{\w+}", ID, path) for path in paths - entrance)


@pytest.mark.parametrize("address", addresses())
async def test_each_address_of_a_form_leads_to_the_page_with_the_form(
    browser: Browser, address: str
) -> None:
    path = address.removeprefix("/console")
    page = page_with_form(path)
    assert page
    answer = await browser.get(address)
    if page == path:
        assert answer.status_code == (404 if ID in path else 200)
        return
    assert answer.status_code == 303
    location = answer.headers["location"]
    assert location == f"/console{page}{'&' if '?' in page else '?'}done=only-a-form"
    if ID not in location:
        shown = await browser.get(location)
        assert shown.status_code == 200
        assert "Nothing was sent or changed" in text_of(shown)


async def test_an_address_without_a_page_or_a_form_is_not_found(browser: Browser) -> None:
    for path in ("/nothing", "/events/x/nothing", "/memories/x/edit/more"):
        assert (await browser.get(f"/console{path}")).status_code == 404


@pytest.mark.parametrize("path", ["memories/x", "memories/x/correct", "download", "erase"])
async def test_a_form_of_the_users_page_leads_to_its_first_page(
    service: Service, browser: Browser, path: str
) -> None:
    answer = await browser.get(f"/user/{path}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/user/")


def test_an_unsent_form_names_its_action() -> None:
    for path, action in (
        (f"/memories/{ID}/edit", "edit"),
        ("/user-tokens", "user tokens"),
        (f"/inbox/conflicts/{ID}", "conflicts"),
    ):
        assert UnsentForm(path, {}).action == action
