"""/metrics: access, queries per scrape, and content."""

from __future__ import annotations

import asyncio
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from api.dependencies import STUCK_S
from api.system.figures import Figures
from deploy.stack.command import inherited_environment
from pipeline import telemetry
from pipeline.adapters.model_rules import RulesModel
from pipeline.domain.errors import ModelUnavailable
from pipeline.domain.events import FailureCode
from pipeline.domain.facts import Fact
from pipeline.domain.graph.values import RelationRequest
from pipeline.domain.messages import Source
from pipeline.domain.usage import Answer
from pipeline.lanes.group_commit import GroupCommit
from pipeline.ledger.failures import LedgerUnavailable
from pipeline.model_settings import LLMSettings, ModelSettings
from pipeline.models.circuits import FAILURES
from pipeline.models.measured import MeasuredEmbedder, MeasuredModel
from pipeline.ports import ExtractionRequest
from pipeline.stores import Ledger
from tests.support.api_service import SEARCH, Service, serving
from tests.support.embedder_hash import HashEmbedder
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


# Longer than any test.
HOUR_S = 3_600.0


def keep_figures(service: Service, kept_s: float) -> None:
    ledger = service.engine.ledger
    figures = Figures(ledger.balance, ledger.graph_outbox, ledger.queue, kept_s=kept_s)
    service.app.state.api = replace(service.app.state.api, figures=figures)


def figure(exposition: str, name: str) -> float:
    [line] = [row for row in exposition.splitlines() if row.startswith(f"{name} ")]
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


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "memory.example.com"},  # a proxy that keeps the name, or DNS rebinding
        {"Host": "127.0.0.1:8000", "X-Forwarded-For": "203.0.113.7"},
        {"Host": "127.0.0.1:8000", "Forwarded": "for=203.0.113.7"},
        {"Host": "127.0.0.1:8000", "Via": "1.1 proxy"},
    ],
)
async def test_without_a_token_no_proxy_may_ask_for_others(
    service: Service, headers: dict[str, str]
) -> None:
    """The API listens on loopback, and a reverse proxy in front passes everything on to it."""
    configure(service, host="127.0.0.1")
    answer = await service.client.get("/metrics", headers=headers)
    assert answer.status_code == 403
    assert "MEMLANE_METRICS_TOKEN" in answer.json()["error"]
    direct = await service.client.get("/metrics", headers={"Host": "127.0.0.1:8000"})
    assert direct.status_code == 200


async def test_however_often_it_is_scraped_the_ledger_is_asked_once(service: Service) -> None:
    keep_figures(service, HOUR_S)
    await service.client.get("/metrics")
    engine = service.engine.ledger.engine
    with recorded(engine) as statements:
        for _ in range(20):
            await service.client.get("/metrics")
    assert statements == []


async def test_scrapes_at_the_same_time_build_one_text_and_not_on_the_loop(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    keep_figures(service, HOUR_S)

    def exposition() -> tuple[bytes, str]:
        threads.append(threading.current_thread())
        return b"metrics", "text/plain"

    monkeypatch.setattr(telemetry, "exposition", exposition)
    answers = await asyncio.gather(*[service.client.get("/metrics") for _ in range(20)])
    assert {answer.text for answer in answers} == {"metrics"}
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_figures_that_are_old_enough_are_read_again(service: Service) -> None:
    keep_figures(service, 0)
    await service.engine.add("I like jazz.")
    assert figure((await service.client.get("/metrics")).text, PENDING) == 1
    await service.engine.add("I like tea.")
    assert figure((await service.client.get("/metrics")).text, PENDING) == 2


async def test_every_known_series_is_there_from_zero() -> None:
    """A new process prints them: in this one, other tests have already counted."""
    program = "from pipeline import telemetry; print(telemetry.exposition()[0].decode())"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=PIPE)
    text = (await process.communicate())[0].decode()
    for name in (
        'memlane_fenced_writes_total{stage="apply"}',
        'memlane_lanes_swept_total{was="RUNNING"}',
        'memlane_adds_refused_total{limit="server"}',
        'memlane_webhook_tries_total{state="DEAD"}',
        'memlane_events_ended_total{code="POISON_CRASH",status="FAILED"}',
        'memlane_stage_errors_total{code="LLM_UNAVAILABLE",outcome="wait",stage="extract"}',
        "memlane_kicks_failed_total",
    ):
        assert figure(text, name) == 0, name


COUNT = """
from pipeline import telemetry
telemetry.events_accepted.inc()
telemetry.event_seconds.observe(1)
telemetry.ledger_up.set(1)
print(telemetry.exposition()[0].decode())
"""


async def test_a_restarted_process_goes_on_in_the_files_of_the_one_before(tmp_path: Path) -> None:
    """So the number of files, and the time of each scrape, do not grow with the restarts."""
    files = []
    for restarts in range(1, 4):
        env = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PROMETHEUS_MULTIPROC_NAME": "worker-1"}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", COUNT, stdout=PIPE, env=inherited_environment() | env
        )
        text = (await process.communicate())[0].decode()
        assert figure(text, "memlane_events_accepted_total") == restarts
        assert figure(text, "memlane_event_seconds_count") == restarts
        assert figure(text, "memlane_ledger_up") == 1
        files.append(sorted(path.name for path in tmp_path.iterdir()))
    assert files[0] == files[2]


async def test_requests_are_counted_by_route_and_never_by_path(service: Service) -> None:
    keep_figures(service, 0)
    name = 'memlane_http_answers_total{method="GET",route="/v1/event/{event_id}/",status="404"}'
    before = (await service.client.get("/metrics")).text
    start = figure(before, name) if name in before else 0
    for _ in range(3):
        await service.client.get(f"/v1/event/{uuid4()}/")
    await service.client.get("/nowhere/at/all")
    await service.client.request("BREW", "/v1/ping/")
    text = (await service.client.get("/metrics")).text
    assert figure(text, name) == start + 3
    assert 'route="unknown",status="404"' in text
    assert 'method="other"' in text
    assert "/nowhere" not in text
    assert "BREW" not in text


async def test_searches_and_embeddings_are_timed(service: Service) -> None:
    await service.client.post(SEARCH, json={"query": "jazz", "filters": {"user_id": "maya"}})
    text = (await service.client.get("/metrics")).text
    assert figure(text, "memlane_search_seconds_count") > 0


class Failing(RulesModel):
    async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
        raise ModelUnavailable("503")


async def test_questions_to_a_model_are_timed_and_its_failures_counted() -> None:
    errors = telemetry.model_errors.labels("local/rules", "LLM_UNAVAILABLE")
    timed = telemetry.model_seconds.labels("local/rules", "relate")
    failed, seconds = errors._value.get(), timed._sum.get()
    with pytest.raises(ModelUnavailable):
        await MeasuredModel(Failing()).extract(None)  # type: ignore[arg-type]
    await MeasuredModel(RulesModel()).relate(
        RelationRequest([Fact("User lives in Bern", Source(0, 0))])
    )
    assert errors._value.get() == failed + 1
    assert timed._sum.get() > seconds


async def test_calls_of_the_embedder_are_timed() -> None:
    embedder = MeasuredEmbedder(HashEmbedder())
    seconds = telemetry.embedder_seconds.labels(embedder.name)
    before = seconds._sum.get()
    await embedder.embed(["jazz"])
    assert seconds._sum.get() > before


async def test_readiness_tells_what_was_last_seen_of_the_model(service: Service) -> None:
    cooldowns = service.engine.ledger.circuits
    configure(service, llm=LLMSettings(model="openai/gpt"))
    for _ in range(FAILURES):
        assert (await service.client.get("/readyz")).json()["model"] == "ok"
        await cooldowns.failed("openai/gpt", retry_after_s=None)
    answer = await service.client.get("/readyz")
    # Adds are still accepted.
    assert (answer.status_code, answer.json()["model"]) == (200, "ModelUnavailable")
    await cooldowns.answered("openai/gpt")
    assert (await service.client.get("/readyz")).json()["model"] == "ok"


async def test_readiness_names_a_rejected_key_after_one_call(service: Service) -> None:
    cooldowns = service.engine.ledger.circuits
    remote = ModelSettings(model="openai/embedder")
    configure(service, llm=LLMSettings(model="openai/gpt"), embedder=remote)
    for model in ("openai/gpt", "openai/embedder"):
        await cooldowns.failed(model, retry_after_s=None, code=FailureCode.LLM_REJECTED)
    state = (await service.client.get("/readyz")).json()
    assert (state["model"], state["embedder"]) == ("LLM_REJECTED", "LLM_REJECTED")
    await cooldowns.answered("openai/gpt")
    assert (await service.client.get("/readyz")).json()["model"] == "ok"


async def test_an_inbox_that_writes_nothing_is_not_ready(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await service.client.get("/readyz")).status_code == 200
    monkeypatch.setattr(GroupCommit, "waited_s", STUCK_S + 1)
    answer = await service.client.get("/readyz")
    assert (answer.status_code, answer.json()["ledger"]) == (503, "StoreUnavailable")


async def test_metrics_are_served_while_the_ledger_is_away(service: Service) -> None:
    assert figure((await service.client.get("/metrics")).text, "memlane_ledger_up") == 1

    class Away:
        async def totals(self) -> None:
            raise LedgerUnavailable(ConnectionRefusedError(), sent=False)

    ledger = service.engine.ledger
    figures = Figures(Away(), ledger.graph_outbox, ledger.queue)  # type: ignore[arg-type]
    service.app.state.api = replace(service.app.state.api, figures=figures)
    assert figure((await service.client.get("/metrics")).text, "memlane_ledger_up") == 0


async def test_searches_are_written_without_a_reader_of_the_figures(service: Service) -> None:
    """Each API process counts its own searches; any process may be asked for the sum."""
    ledger, project_id = service.engine.ledger, service.engine.project.id
    figures = Figures(ledger.balance, ledger.graph_outbox, ledger.queue, written_after_s=0)
    figures.searched(project_id)
    async with asyncio.timeout(30):
        while (await ledger.balance.totals(project_id)).searches != 1:
            pass
    figures.searched(project_id)
    await figures.close()
    assert (await ledger.balance.totals(project_id)).searches == 2


def dispatchable(exposition: str) -> float:
    return figure(exposition, "memlane_queue_dispatchable_seconds")


def waiting(exposition: str, reason: str) -> float:
    return figure(exposition, f'memlane_queue_waiting_seconds{{reason="{reason}"}}')


async def test_an_outage_does_not_count_as_dispatchable_and_a_backlog_does(
    service: Service,
) -> None:
    keep_figures(service, 0)
    engine = service.engine

    class Away(RulesModel):
        async def extract(self, request: ExtractionRequest) -> Answer[tuple[Fact, ...]]:
            raise ModelUnavailable("down")

    idle = (await service.client.get("/metrics")).text
    assert dispatchable(idle) == waiting(idle, "LLM_UNAVAILABLE") == 0
    engine.with_model(Away())
    await engine.add("I live in Berlin.")
    await engine.drain()
    await engine.age(600)
    outage = (await service.client.get("/metrics")).text
    assert dispatchable(outage) == 0
    assert waiting(outage, "LLM_UNAVAILABLE") >= 600
    await engine.pass_time(600)
    assert await engine.sweep() == 1
    tried_again = (await service.client.get("/metrics")).text
    assert dispatchable(tried_again) == 0
    await engine.pass_time(3_600)
    no_worker = (await service.client.get("/metrics")).text
    assert 600 <= dispatchable(no_worker) < 660
    await engine.sweep()
    await engine.drain()
    await engine.add("I own a boat.", user_id="tom")
    await engine.age(60)
    both = (await service.client.get("/metrics")).text
    assert 60 <= dispatchable(both) < 120
    assert waiting(both, "LLM_UNAVAILABLE") >= 660
