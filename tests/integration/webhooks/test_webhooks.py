"""Webhooks: payloads, receivers, signatures, and deliveries that fail."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, update

from pipeline.adapters.sender_httpx import LOOKUPS, HttpSender
from pipeline.domain.errors import InvalidInput, MalformedAnswer, Undeliverable
from pipeline.domain.events import StageName
from pipeline.domain.usage import Answer
from pipeline.erasure import service as erasure
from pipeline.erasure.store import OwnerKey
from pipeline.ledger.tables.webhooks import webhook_deliveries
from pipeline.memories import service as memories
from pipeline.memories.editing import MemoryEdit
from pipeline.stores import Ledger
from pipeline.webhooks.delivery import MOST_DEAD, WebhookDelivery
from pipeline.webhooks.service import create
from pipeline.webhooks.store import MOST_WEBHOOKS, TryResult
from tests.support.api_service import Service, error_of, serving
from tests.support.engine import Engine
from tests.support.receiver import WebhookReceiver

ALL = ["memory_add", "memory_update", "memory_delete", "event_failed"]


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with WebhookReceiver() as running:
        yield running


async def hook(engine: Engine, receiver: WebhookReceiver, types: list[str] | None = None) -> str:
    """Create a webhook of the engine's project; return its secret."""
    _, secret = await create(
        engine.project.id,
        name="test",
        url=receiver.url,
        event_types=types or ALL,
        private=True,
        webhooks=engine.ledger.webhooks,
    )
    return secret


async def deliver(engine: Engine, *, tries: int = 8, private: bool = True) -> None:
    """Deliver everything that is due; failed deliveries are due again at once."""
    sender = HttpSender(timeout_s=20, private=private)
    webhook_delivery = WebhookDelivery(
        engine.ledger.webhooks, sender, tries=tries, first_retry_s=0, lease=timedelta(seconds=10)
    )
    await webhook_delivery.deliver()
    await sender.close()


async def outbox(engine: Engine) -> list[Any]:
    query = select(webhook_deliveries).order_by(webhook_deliveries.c.created_at)
    async with engine.ledger.engine.connect() as connection:
        return list((await connection.execute(query)).all())


def details(receiver: WebhookReceiver) -> list[dict[str, Any]]:
    return [json.loads(delivery.body)["event_details"] for delivery in receiver.arrived]


async def test_changes_by_a_model_are_delivered_in_the_format_of_the_clients(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver)
    await engine.add("I live in Bern.")
    await engine.drain()
    await engine.add("I moved to Porto.")
    await engine.drain()
    await deliver(engine)
    [memory] = await engine.ledger.memories.active(
        engine.project.id, [UUID(details(receiver)[0]["id"])]
    )
    changes = {(d["event"], d["data"]["memory"]) for d in details(receiver)}
    assert changes == {("ADD", "User lives in Bern"), ("UPDATE", "User lives in Porto")}
    assert {d["id"] for d in details(receiver)} == {str(memory.id)}


async def test_changes_by_people_are_delivered_as_well(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    event_id = await engine.add("I live in Bern.")
    await engine.drain()
    await hook(engine, receiver)
    ledger, index, project_id = engine.ledger, engine.services.index, engine.project.id
    memory_id = (await engine.event(event_id)).receipt[0].memory_id
    assert memory_id is not None
    edit = MemoryEdit(memory_id, {"text": "User lives in Basel"})
    embedder = engine.services.embedder
    await memories.edit(project_id, [edit], editing=ledger.editing, embedder=embedder, index=index)
    await memories.retire(project_id, [memory_id], editing=ledger.editing, index=index)
    await deliver(engine)
    assert {d["event"] for d in details(receiver)} == {"UPDATE", "DELETE"}
    assert {d["data"]["memory"] for d in details(receiver)} == {"User lives in Basel"}


class Mute:
    """Model whose answers are always malformed."""

    name = "mute"

    async def extract(self, *_: object, **__: object) -> Answer[Any]:
        raise MalformedAnswer("not JSON")

    decide = relate = distil = curate = summarize = extract

    async def close(self) -> None:
        """Do nothing: there are no connections."""


async def test_a_delete_of_everything_and_its_undo_are_delivered_as_well(
    service: Service, receiver: WebhookReceiver
) -> None:
    await service.add("I live in Bern.")
    await hook(service.engine, receiver)
    answer = await service.client.delete("/v1/memories/", params={"user_id": "maya"})
    undone = await service.client.post(f"/v1/event/{answer.json()['event_id']}/undo/")
    assert undone.status_code == 200, undone.text
    await deliver(service.engine)
    assert {d["event"] for d in details(receiver)} == {"DELETE", "ADD"}


async def test_the_categories_of_a_new_state_go_to_webhooks_that_want_them(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver, ["memory_categorize"])
    event_id = await engine.add("I like to play football.")
    await engine.drain()
    await deliver(engine)
    [line] = (await engine.event(event_id)).receipt
    assert line.memory_id is not None
    memory = await engine.ledger.memories.get(engine.project.id, line.memory_id)
    [detail] = details(receiver)
    assert detail["categories"] == list(memory.categories) != []
    assert (detail["event"], detail["memory_id"]) == ("CATEGORIZE", str(memory.id))


async def test_a_failed_event_is_delivered_with_its_id_and_code(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver)
    engine.with_model(Mute())
    event_id = await engine.add("I live in Bern.")
    await engine.drain()
    await deliver(engine)
    assert details(receiver) == [
        {
            "event": "FAILED",
            "event_id": str(event_id),
            "event_type": "ADD",
            "code": "LLM_BAD_OUTPUT",
            "user_id": "maya",
        }
    ]


async def test_a_succeeded_event_is_delivered_with_its_owner(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver, ["event_succeeded"])
    event_id = await engine.add("I live in Bern.")
    await engine.drain()
    await deliver(engine)
    expected = {"event": "SUCCEEDED", "event_type": "ADD", "user_id": "maya"}
    assert details(receiver) == [expected | {"event_id": str(event_id)}]


async def test_a_delivery_of_a_change_has_the_owner_the_event_and_the_text_before(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver)
    first = await engine.add("I live in Bern.")
    await engine.drain()
    second = await engine.add("I moved to Porto.")
    await engine.drain()
    memory_id = (await engine.event(first)).receipt[0].memory_id
    assert memory_id is not None
    edit = MemoryEdit(memory_id, {"text": "User lives in Lisbon"})
    services = engine.services
    await memories.edit(
        engine.project.id,
        [edit],
        editing=engine.ledger.editing,
        embedder=services.embedder,
        index=services.index,
    )
    await deliver(engine)
    owned = {"id": str(memory_id), "user_id": "maya"}
    bern, porto, lisbon = (f"User lives in {where}" for where in ("Bern", "Porto", "Lisbon"))
    shown = sorted(details(receiver), key=lambda detail: str(detail["data"]["memory"]))
    assert shown == [
        owned | {"event": "ADD", "event_id": str(first), "data": {"memory": bern}},
        owned | {"event": "UPDATE", "data": {"memory": lisbon, "old_memory": porto}},
        owned
        | {
            "event": "UPDATE",
            "event_id": str(second),
            "data": {"memory": porto, "old_memory": bern},
        },
    ]


async def test_a_webhook_gets_only_its_event_types_of_its_own_project(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver, ["memory_delete"])
    other, _ = await engine.ledger.projects.create("other")
    await hook(Engine(engine.ledger, other, engine.services, engine.vectors), receiver)
    await engine.add("I live in Bern.")
    await engine.drain()
    assert await outbox(engine) == []


async def test_a_stage_that_is_done_twice_tells_it_once(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver)
    await engine.add("I live in Bern.")
    hint = await engine.run_until(StageName.APPLY)
    await engine.claim(hint)  # this worker dies without a trace
    await engine.pass_time(60)
    await engine.sweep()
    await engine.drain()
    assert len(await outbox(engine)) == 1


async def test_each_delivery_is_signed_as_standard_webhooks_has_it(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    secret = await hook(engine, receiver)
    await engine.add("I live in Bern.")
    await engine.drain()
    await deliver(engine)
    [delivery] = receiver.arrived
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{delivery.id}.{delivery.headers['webhook-timestamp']}.".encode() + delivery.body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert delivery.headers["webhook-signature"] == f"v1,{digest}"
    assert delivery.headers["content-type"] == "application/json"


async def test_a_receiver_that_fails_is_tried_again_under_the_same_id(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    answers = {1: 500, 2: None, 3: 302, 4: 200}
    receiver.answering = lambda _id, nth: answers[nth]
    await hook(engine, receiver)
    await engine.add("I live in Bern.")
    await engine.drain()
    await deliver(engine)
    assert [delivery.status for delivery in receiver.seen] == [500, None, 302, 200]
    assert {delivery.path for delivery in receiver.seen} == {"/hooks"}  # no redirect was followed
    assert len({(delivery.id, delivery.body) for delivery in receiver.seen}) == 1
    [row] = await outbox(engine)
    assert (row.state, row.attempts, row.due_at) == ("DELIVERED", 4, None)


async def test_a_pause_grows_and_no_try_comes_before_its_time(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    receiver.answering = lambda _id, _nth: 503
    await hook(engine, receiver)
    await engine.add("I live in Bern.")
    await engine.drain()
    sender = HttpSender(timeout_s=20, private=True)
    webhook_delivery = WebhookDelivery(
        engine.ledger.webhooks, sender, tries=4, first_retry_s=100, lease=timedelta(seconds=10)
    )
    pauses_s = []
    for _ in range(3):
        await webhook_delivery.deliver()
        async with engine.ledger.engine.begin() as connection:
            left = func.extract("epoch", webhook_deliveries.c.due_at - func.now())
            pauses_s.append(float(await connection.scalar(select(left)) or 0))
            await connection.execute(update(webhook_deliveries).values(due_at=func.now()))
    await webhook_delivery.deliver()
    await sender.close()
    for pause_s, usual_s in zip(pauses_s, (100, 400, 1600), strict=True):
        assert 0.79 * usual_s < pause_s < 1.21 * usual_s
    [row] = await outbox(engine)
    assert (row.state, row.attempts, row.status_code) == ("DEAD", 4, 503)


async def test_a_courier_that_dies_in_a_try_loses_nothing(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver)
    await engine.add("I live in Bern.")
    await engine.drain()
    webhooks = engine.ledger.webhooks
    [lost] = await webhooks.claim(limit=10, each=10, each_project=10, lease=timedelta(seconds=0))
    await deliver(engine)  # the lease has expired
    assert len(receiver.arrived) == 1
    # the first process reports its result too late
    await webhooks.end(lost, TryResult("DEAD"), most_dead=1, most_silent=1)
    assert (await outbox(engine))[0].state == "DELIVERED"


async def test_couriers_at_once_deliver_each_only_once(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver)
    for n in range(12):
        await engine.add("I live in Bern.", user_id=f"user-{n}")
    await engine.drain()
    await asyncio.gather(*(deliver(engine) for _ in range(4)))
    assert len(receiver.seen) == len({delivery.id for delivery in receiver.seen}) == 12


async def test_a_webhook_is_switched_off_after_so_many_dead_deliveries_and_on_again_by_request(
    service: Service, receiver: WebhookReceiver
) -> None:
    engine, client = service.engine, service.client
    receiver.answering = lambda _id, _nth: 500
    await hook(engine, receiver)
    for n in range(MOST_DEAD):
        await service.add("I live in Bern.", user_id=f"user-{n}")
    await deliver(engine, tries=1)
    url = f"/api/v1/webhooks/projects/{engine.project.id}/"
    [shown] = (await client.get(url)).json()
    assert (shown["is_active"], "5 deliveries" in shown["disabled_reason"]) == (False, True)
    await service.add("I like rye.", user_id="later")
    assert len(await outbox(engine)) == MOST_DEAD  # a disabled webhook gets no deliveries
    await client.put(f"/api/v1/webhooks/{shown['webhook_id']}/", json={"is_active": True})
    [shown] = (await client.get(url)).json()
    assert (shown["is_active"], shown["disabled_reason"]) == (True, None)


async def test_a_receiver_that_is_gone_is_not_asked_again(
    service: Service, receiver: WebhookReceiver
) -> None:
    receiver.answering = lambda _id, _nth: 410
    await hook(service.engine, receiver)
    await service.add("I live in Bern.")
    await deliver(service.engine)
    assert len(receiver.seen) == 1
    [shown] = await service.engine.ledger.webhooks.of(service.engine.project.id)
    assert (shown.is_active, shown.disabled_reason) == (False, "The receiver answered 410 Gone.")


async def test_the_log_tells_each_delivery_and_one_can_be_sent_again(
    service: Service, receiver: WebhookReceiver
) -> None:
    receiver.answering = lambda _id, nth: 200 if nth > 1 else 500
    await hook(service.engine, receiver)
    await service.add("I live in Bern.")
    await deliver(service.engine, tries=1)
    [shown] = await service.engine.ledger.webhooks.of(service.engine.project.id)
    url = f"/api/v1/webhooks/{shown.id}/deliveries/"
    log = (await service.client.get(url, params={"state": "DEAD"})).json()
    [line] = log["results"]
    assert (log["count"], line["status_code"], line["attempts"]) == (1, 500, 1)
    again = await service.client.post(f"{url}{line['id']}/redeliver/")
    assert again.status_code == 200, again.text
    await deliver(service.engine)
    [line] = (await service.client.get(url)).json()["results"]
    assert (line["state"], line["status_code"]) == ("DELIVERED", 200)
    assert len({delivery.id for delivery in receiver.seen}) == 1


async def test_an_erasure_deletes_sent_and_pending_deliveries(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    await hook(engine, receiver)
    await engine.add("I live in Zanzibar.", user_id="maya")
    await engine.drain()
    await engine.add("I live in Bern.", user_id="jon")
    await engine.drain()
    erasures = engine.ledger.erasures
    event_id = await erasure.erase(engine.project.id, OwnerKey("user", "maya"), erasures=erasures)
    receipt = await erasures.receipt(engine.project.id, event_id)
    assert receipt.counts["webhook_deliveries"] == 1
    await deliver(engine)
    assert [d["data"]["memory"] for d in details(receiver)] == ["User lives in Bern"]


# ── the API ──────────────────────────────────────────────────────────────────────────────────────


async def test_the_routes_speak_as_the_clients_expect_and_the_secret_is_shown_once(
    service: Service,
) -> None:
    client, project = service.client, str(service.engine.project.id)
    url = f"/api/v1/webhooks/projects/{project}/"
    body = {"name": "audit", "url": "https://example.com/h", "event_types": ["memory_add"]}
    made = await client.post(url, json=body)
    assert made.status_code == 201, made.text
    assert made.json()["secret"].startswith("whsec_")
    [shown] = (await client.get(url)).json()
    assert "secret" not in shown
    assert shown.items() >= {**body, "project": project, "is_active": True}.items()
    webhook_url = f"/api/v1/webhooks/{shown['webhook_id']}/"
    changed = await client.put(webhook_url, json={"name": "other"})
    assert changed.json() == {"message": "Webhook updated successfully"}
    assert (await client.get(url)).json()[0]["name"] == "other"
    assert (await client.delete(webhook_url)).json() == {"message": "Webhook deleted successfully"}
    assert (await client.get(url)).json() == []
    assert (await client.delete(webhook_url)).status_code == 404


REFUSED = {
    "another scheme": {"url": "ftp://example.com/"},
    "no host": {"url": "https:///x"},
    "no URL": {"url": "https://[::1"},
    "a port that is none": {"url": "https://example.com:99999/"},
    "a password": {"url": "https://a:b@example.com/"},
    "loopback": {"url": "http://127.0.0.1:9/"},
    "localhost": {"url": "http://localhost/"},
    "IPv6 loopback": {"url": "http://[::1]/"},
    "loopback in short": {"url": "http://127.1/"},
    "loopback in hexadecimal": {"url": "http://0x7f.1/"},
    "loopback as one number": {"url": "http://2130706433/"},
    "loopback in IPv6": {"url": "http://[::ffff:127.0.0.1]/"},
    "cloud metadata": {"url": "http://169.254.169.254/latest"},
    "a private network": {"url": "http://10.1.2.3/"},
    "an unknown event": {"event_types": ["memory_add", "memory_sung"]},
    "no event": {"event_types": []},
    "no name": {"name": ""},
}


@pytest.mark.parametrize("wrong", REFUSED.values(), ids=REFUSED.keys())
async def test_what_cannot_be_a_webhook_is_refused(service: Service, wrong: dict[str, Any]) -> None:
    right = {"name": "n", "url": "https://example.com/", "event_types": ["memory_add"]}
    url = f"/api/v1/webhooks/projects/{service.engine.project.id}/"
    answer = await service.client.post(url, json=right | wrong)
    assert (answer.status_code, bool(error_of(answer))) == (400, True)
    assert (await service.client.get(url)).json() == []
    webhook_id = (await service.client.post(url, json=right)).json()["webhook_id"]
    change = await service.client.put(f"/api/v1/webhooks/{webhook_id}/", json=wrong)
    assert (change.status_code, bool(error_of(change))) == (400, True)
    assert right.items() <= (await service.client.get(url)).json()[0].items()


async def test_a_project_has_no_more_webhooks_than_it_may(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    for _ in range(MOST_WEBHOOKS):
        await hook(engine, receiver)
    with pytest.raises(InvalidInput, match="delete one first"):
        await hook(engine, receiver)


async def test_no_tenant_reaches_anothers_webhooks(
    service: Service, receiver: WebhookReceiver
) -> None:
    engine, client = service.engine, service.client
    await hook(engine, receiver)
    await service.add("I live in Bern.")
    [mine] = await engine.ledger.webhooks.of(engine.project.id)
    [row] = await outbox(engine)
    _, key = await engine.ledger.projects.create("other")
    headers = {"Authorization": f"Token {key}"}
    webhook_url = f"/api/v1/webhooks/{mine.id}/"
    project = f"/api/v1/webhooks/projects/{mine.project_id}/"
    body = {"name": "n", "url": "https://example.com/", "event_types": ["memory_add"]}
    for method, url in (
        ("GET", project),
        ("POST", project),
        ("PUT", webhook_url),
        ("DELETE", webhook_url),
        ("GET", f"{webhook_url}deliveries/"),
        ("POST", f"{webhook_url}deliveries/{row.id}/redeliver/"),
    ):
        answer = await client.request(method, url, json=body, headers=headers)
        assert answer.status_code == 404, (method, url, answer.text)
    assert [webhook.name for webhook in await engine.ledger.webhooks.of(engine.project.id)] == [
        "test"
    ]


# ── addresses of deliveries ──────────────────────────────────────────────────────────────────────


async def test_a_name_that_leads_to_a_private_address_is_not_delivered_to(
    engine: Engine, receiver: WebhookReceiver
) -> None:
    receiver.answering = lambda _id, _nth: 200
    await hook(engine, receiver)
    await engine.add("I live in Bern.")
    await engine.drain()
    await deliver(engine, tries=1, private=False)
    assert receiver.seen == []
    [row] = await outbox(engine)
    assert (row.state, "private address" in row.error) == ("DEAD", True)


async def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_connected_to(
    receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: a second lookup would return another address."""
    resolved = []

    def resolve(host: str, port: int, **_: object) -> list[Any]:
        resolved.append(host)
        where = "127.0.0.1" if len(resolved) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (where, port))]

    sender = HttpSender(timeout_s=20, private=True)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", resolve)
        url = f"http://hooks.example:{receiver.port}/here"
        assert await sender.post(url, b"{}", {"webhook-id": "1"}) == 200
    await sender.close()
    assert resolved == ["hooks.example"]
    assert receiver.seen[0].headers["host"] == f"hooks.example:{receiver.port}"


async def test_a_name_with_one_private_address_among_public_ones_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(_host: str, port: int, **_: object) -> list[Any]:
        return [(2, 1, 6, "", (ip, port)) for ip in ("93.184.216.34", "10.0.0.1")]

    sender = HttpSender(timeout_s=20, private=False)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(Undeliverable, match="private address"):
            await sender.post("http://hooks.example/", b"", {})
    await sender.close()


async def test_names_that_are_not_resolved_delay_no_other_delivery(
    receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that does not answer: each look-up lasts longer than a try."""
    answered = threading.Event()

    def resolve(host: str, port: int, **_: object) -> list[Any]:
        if host == "dead.example":
            answered.wait(20)
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    sender = HttpSender(timeout_s=20, private=True)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    dead = [
        asyncio.create_task(sender.post("http://dead.example/", b"{}", {}))
        for _ in range(LOOKUPS - 1)
    ]
    await asyncio.sleep(0)
    url = f"http://hooks.example:{receiver.port}/here"
    assert await sender.post(url, b"{}", {"webhook-id": "1"}) == 200
    assert not any(task.done() for task in dead)
    answered.set()
    for error in await asyncio.gather(*dead, return_exceptions=True):
        assert isinstance(error, Undeliverable)
    await sender.close()


async def test_a_name_with_letters_beyond_ascii_is_delivered_to(
    receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(_host: str, port: int, **_: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    sender = HttpSender(timeout_s=20, private=True)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", resolve)
        url = f"http://bücher.example:{receiver.port}/here"
        assert await sender.post(url, b"{}", {"webhook-id": "1"}) == 200
    await sender.close()
    assert receiver.seen[0].headers["host"] == f"xn--bcher-kva.example:{receiver.port}"


async def test_a_receiver_that_never_answers_costs_its_time_and_no_more() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    sender = HttpSender(timeout_s=0.2, private=True)
    with pytest.raises(Undeliverable, match=r"No answer|ReadTimeout"):
        await sender.post(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", b"{}", {})
    await sender.close()
    server.close()
    await server.wait_closed()
