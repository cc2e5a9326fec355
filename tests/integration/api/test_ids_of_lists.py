"""Entity ids in the query string: a filter, a check of the row's owner, or a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID

import pytest
from fastapi.routing import APIRoute

from api.http.unknown_fields import declared
from api.routers import ROUTERS
from pipeline.domain.filters import ENTITY_IDS
from pipeline.events.store import NO_SUCH_EVENT
from tests.support.api_service import Service, error_of

UNKNOWN = UUID(int=0)
VALUES = {"entity_type": "agent", "entity_id": "bot", "webhook_id": "x"}


def _lists() -> Iterator[tuple[tuple[str, str], set[str]]]:
    """The method and path of each list of the API, and the query parameters that it takes."""
    for router in ROUTERS:
        for route in router.routes:
            if not isinstance(route, APIRoute) or "system" in route.tags:
                continue
            names = {parameter.alias for parameter in declared(route.dependant)}
            if ("{" not in route.path and route.methods == {"GET"}) or "page" in names:
                method = "GET" if route.methods == {"GET"} else "POST"
                yield (method, route.path.replace(":path", "").format(**VALUES)), names


LISTS = dict(_lists())
MISSING = [(*path, name) for path, names in LISTS.items() for name in {*ENTITY_IDS} - names]
# A misspelt id of a list that takes the right one has an answer of its own.
MISSPELT = [(*path, "userId") for path, names in LISTS.items() if "user_id" not in names]


@pytest.mark.parametrize(("method", "path", "name"), sorted(MISSING) + MISSPELT)
async def test_a_list_without_a_filter_by_an_id_refuses_the_id(
    shared: Service, method: str, path: str, name: str
) -> None:
    """Ignored, the id would widen the list to the rows of all users."""
    for value in ("maya", ""):
        answer = await shared.client.request(method, path, params={name: value})
        assert answer.status_code == 400, answer.text
        assert f"has no filter {name}" in error_of(answer)


def test_some_lists_without_a_filter_by_ids_are_tested() -> None:
    paths = {path for _, path, _ in MISSING}
    assert {"/entities/", "/v1/entities/", "/v1/audit/", "/v3/memories/"} <= paths


# Lists whose rows belong to no scope, or that have the owner's ids elsewhere.
NOT_BY_ID = {
    "/v1/audit/": "entries belong to keys",
    "/v1/entities/": "its rows are the owners",
    "/v1/entities/filters/": "values of filters",
    "/v1/keys/": "keys belong to the project",
    "/v1/memories/agent/bot/": "the path names the owner",
    "/v1/user-tokens/": "tokens are of users, and it takes user_id",
    "/v1/verify/": "the seals of the whole project",
    "/v1/verify/heads/": "the seals of the whole project",
    "/v2/profiles/settings/": "settings of the project",
}


def test_each_list_of_rows_of_scopes_takes_all_four_ids() -> None:
    lacking = {
        path
        for (method, path), names in LISTS.items()
        if method == "GET" and path.startswith(("/v1/", "/v2/")) and not {*ENTITY_IDS} <= names
    }
    assert lacking == set(NOT_BY_ID)


async def test_other_unknown_parameters_of_a_list_are_ignored_and_named(shared: Service) -> None:
    for path in ("/v1/conflicts/", "/v1/entities/"):
        answer = await shared.client.get(path, params={"colour": "red", "source": "cli"})
        assert (answer.status_code, answer.headers["X-Memlane-Ignored"]) == (200, "colour")


def _rows() -> Iterator[tuple[tuple[str, str], set[str]]]:
    """The method and path of each route of one row, and the query parameters that it takes."""
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute) and "{" in route.path and "system" not in route.tags:
                known = route.path.replace(":path", "").format_map(Known(VALUES))
                path = re.sub("{.+?}", str(UNKNOWN), known)
                for method in sorted(route.methods or ()):
                    yield (method, path), {each.alias for each in declared(route.dependant)}


class Known(dict[str, str]):
    """Values by name; other names stay as they are, in braces."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


ROWS = dict(_rows())
UNCHECKED = [path for path, names in ROWS.items() if not {*ENTITY_IDS} <= names | {"page"}]


@pytest.mark.parametrize(("method", "path"), sorted(UNCHECKED))
async def test_a_route_of_one_row_that_does_not_check_its_owner_refuses_an_id(
    shared: Service, method: str, path: str
) -> None:
    """Ignored, the id would let a request for one user reach the row of another."""
    for name in ("agent_id", "agentId"):
        answer = await shared.client.request(method, path, params={name: "bot"})
        assert answer.status_code == 400, answer.text
        assert name in error_of(answer)


@pytest.mark.parametrize(
    ("method", "end"),
    [
        ("GET", ""),
        ("GET", "stream/"),
        *(("POST", f"{end}/") for end in ("cancel", "replay", "undo")),
    ],
)
async def test_an_event_that_is_not_of_the_given_ids_is_unknown(
    service: Service, method: str, end: str
) -> None:
    event_id = await service.add("I like jazz.")
    path = f"/v1/event/{event_id}/{end}"
    for ids in ({"user_id": "ines"}, {"user_id": "maya", "agent_id": "helper"}):
        answer = await service.client.request(method, path, params=ids)
        assert (answer.status_code, error_of(answer)) == (404, NO_SUCH_EVENT), answer.text
    assert len(await service.listed()) == 1
    own = await service.client.request(method, path, params={"user_id": "maya"})
    assert own.status_code != 404, own.text
    assert (await service.client.request(method, path, params={"user_id": " "})).status_code == 400


@pytest.mark.parametrize(
    "path", ["/v1/users/*/download/", "/v1/users/%2A/download/", "/v1/memories/user/*/"]
)
async def test_an_id_in_a_path_stands_for_no_other(service: Service, path: str) -> None:
    """In filters `*` is any user: the download of one would have the memories of all."""
    await service.add("I live in Berlin.")
    answer = await service.client.get(path)
    assert answer.status_code == 400
    assert "cannot be an id" in error_of(answer)
