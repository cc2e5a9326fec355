"""/metrics: who may read it, what it costs, and what it says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic import SecretStr

from api.figures import Figures
from pipeline.ledger import Ledger
from tests.integration.test_api import Service, serving
from tests.support.plans import recorded

PENDING = 'memlane_events_in_flight{status="PENDING"}'


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


def configure(service: Service, **settings: object) -> None:
    api = service.app.state.api
    changed = api.settings.model_copy(update=settings)
    service.app.state.api = replace(api, settings=changed)


def figure(exposition: str, name: str) -> float:
    [line] = [one for one in exposition.splitlines() if one.startswith(f"{name} ")]
    return float(line.split()[-1])


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer", "right"])
async def test_metrics_want_their_token_where_there_is_one(
    service: Service, header: str | None
) -> None:
    configure(service, metrics_token=SecretStr("right"), host="0.0.0.0")
    headers = {"Authorization": header or ""}
    answer = await service.client.get("/metrics", headers=headers)
    assert answer.status_code == 401
    assert "MEMLANE_METRICS_TOKEN" in answer.json()["error"]
    right = await service.client.get("/metrics", headers={"Authorization": "Bearer right"})
    assert right.status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1", 200), ("localhost", 200), ("::1", 200), ("0.0.0.0", 403), ("memlane", 403)],
)
async def test_without_a_token_only_this_machine_may_ask(
    service: Service, host: str, status: int
) -> None:
    configure(service, host=host)
    assert (await service.client.get("/metrics")).status_code == status


async def test_however_often_it_is_scraped_the_ledger_is_asked_once(service: Service) -> None:
    await service.client.get("/metrics")
    engine = service.engine.ledger.engine
    with recorded(engine) as statements:
        for _ in range(20):
            await service.client.get("/metrics")
    assert statements == []


async def test_figures_that_are_old_enough_are_read_again(service: Service) -> None:
    service.app.state.api = replace(
        service.app.state.api, figures=Figures(service.engine.ledger.books, kept_s=0)
    )
    await service.engine.add("I like jazz.")
    assert figure((await service.client.get("/metrics")).text, PENDING) == 1
    await service.engine.add("I like tea.")
    assert figure((await service.client.get("/metrics")).text, PENDING) == 2


async def test_metrics_are_served_while_the_ledger_is_away(service: Service) -> None:
    assert figure((await service.client.get("/metrics")).text, "memlane_ledger_up") == 1

    class Away:
        async def accounts(self) -> None:
            raise ConnectionRefusedError

    figures = Figures(Away())  # type: ignore[arg-type]
    service.app.state.api = replace(service.app.state.api, figures=figures)
    assert figure((await service.client.get("/metrics")).text, "memlane_ledger_up") == 0
