"""Keys and projects: a request reads and writes the project of its key only."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from tests.support.api_service import ADD, LIST, LIVES, MAYA, SEARCH, Service, error_of, stranger


async def test_another_projects_ids_are_as_unknown_as_ids_never_given(service: Service) -> None:
    event_id = await service.add("I like jazz.")
    [stored] = await service.listed()
    _, key = await service.engine.ledger.projects.create("theirs")
    theirs = {"Authorization": f"Token {key}"}
    foreign = {"memories": stored["id"], "event": event_id, "events": event_id}
    unknown = dict.fromkeys(foreign, str(uuid4()))

    async def asked(ids: dict[str, str], headers: dict[str, str]) -> list[tuple[int, str]]:
        memory = f"/v1/memories/{ids['memories']}/"
        requests = [
            service.client.get(memory, headers=headers),
            service.client.put(memory, json={"text": "Mine now"}, headers=headers),
            service.client.put(memory, json={"metadata": {}}, headers=headers),
            service.client.delete(memory, headers=headers),
            service.client.get(f"{memory}history/", headers=headers),
            service.client.get(f"/v1/event/{ids['event']}/", headers=headers),
            service.client.get(f"/v1/events/{ids['events']}/", headers=headers),
            service.client.get(f"/v1/event/{ids['event']}/?wait=5", headers=headers),
        ]
        answers = [await request for request in requests]
        return [(answer.status_code, error_of(answer)) for answer in answers]

    seen = await asked(foreign, theirs)
    assert {status for status, _ in seen} == {404}
    assert seen == await asked(unknown, theirs)
    for body in ({"filters": MAYA}, {"filters": {"memory_ids": [stored["id"]]} | MAYA}):
        assert (await service.client.post(LIST, json=body, headers=theirs)).json()["count"] == 0
        answer = await service.client.post(SEARCH, json=body | {"query": "jazz"}, headers=theirs)
        assert (answer.json()["results"], answer.json()["relations"]) == ([], [])
    assert (await service.client.get("/v1/events/", headers=theirs)).json()["count"] == 0
    assert await service.listed() == [stored]


async def test_one_scope_name_in_two_projects_is_two_scopes(service: Service) -> None:
    _, key = await service.engine.ledger.projects.create("theirs")
    theirs = {"Authorization": f"Token {key}"}
    await service.client.post(ADD, json=LIVES, headers=theirs)
    await service.engine.drain()
    assert await service.listed() == []


@pytest.mark.parametrize("scheme", ["Token", "Bearer", "token", "BEARER"])
async def test_the_key_may_come_as_token_or_bearer(shared: Service, scheme: str) -> None:
    async with stranger(shared) as client:
        headers = {"Authorization": f"{scheme} {shared.key}"}
        assert (await client.get("/v1/ping/", headers=headers)).status_code == 200


async def test_the_key_may_come_in_a_header_of_its_own(shared: Service) -> None:
    async with stranger(shared) as client:
        answer = await client.get("/v1/ping/", headers={"X-API-Key": shared.key})
        assert answer.status_code == 200


async def test_ping_tells_the_ids_clients_cannot_do_without(service: Service) -> None:
    body = (await service.client.get("/v1/ping/")).json()
    project = service.engine.project
    assert body["status"] == "ok"
    assert body["org_id"] == str(project.organization_id)
    assert body["project_id"] == str(project.id)
    # Clients require an email address and send it to a third party, so it must name no person.
    assert body["user_email"] == "local@memlane.invalid"


NO_KEYS: dict[str, dict[str, str]] = {
    "none": {},
    "wrong": {"Authorization": "Token ml_wrong"},
    "empty": {"Authorization": "Token "},
    "another scheme": {"Authorization": "Basic bWF5YTp4"},
    "not ASCII": {"Authorization": "Token sch\xf6n"},
    "wrong X-API-Key": {"X-API-Key": "ml_wrong"},
}


@pytest.mark.parametrize("headers", NO_KEYS.values(), ids=NO_KEYS.keys())
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/ping/"),
        ("POST", ADD),
        ("POST", "/v1/memories/"),
        ("POST", LIST),
        ("POST", SEARCH),
        ("GET", f"/v1/memories/{UUID(int=1)}/"),
        ("PUT", f"/v1/memories/{UUID(int=1)}/"),
        ("DELETE", f"/v1/memories/{UUID(int=1)}/"),
        ("GET", f"/v1/memories/{UUID(int=1)}/history/"),
        ("GET", f"/v1/event/{UUID(int=1)}/"),
        ("GET", f"/v1/events/{UUID(int=1)}/"),
        ("GET", "/v1/events/"),
        ("GET", "/v1/stats/"),
        ("GET", f"/v1/event/{UUID(int=1)}/stream/"),
        ("POST", f"/v1/event/{UUID(int=1)}/cancel/"),
        ("POST", f"/v1/event/{UUID(int=1)}/replay/"),
        ("POST", f"/v1/event/{UUID(int=1)}/undo/"),
        ("POST", "/v1/events/replay/"),
    ],
)
async def test_without_a_valid_key_nothing_is_returned(
    shared: Service, method: str, path: str, headers: dict[str, str]
) -> None:
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    async with stranger(shared) as client:
        answer = await client.request(method, path, json={"text": "x"}, headers=sent)
    assert answer.status_code == 401
    assert "Authorization: Token <key>" in error_of(answer)
    assert answer.headers["WWW-Authenticate"] == "Token"
