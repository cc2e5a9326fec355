"""Samples of the queue: one a minute and busy project, for charts."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from sqlalchemy import delete, func, select, text, update

from pipeline.accounting.samples import SPANS, ChartSpan
from pipeline.events.retention import SAMPLES_FOR, Retention
from pipeline.ledger.tables import queue_samples
from tests.support.api_service import serving
from tests.support.console_client import browsing
from tests.support.engine import Engine


async def back(engine: Engine, minutes: int) -> None:
    """Make all samples older."""
    async with engine.ledger.engine.begin() as connection:
        ago = timedelta(minutes=minutes)
        await connection.execute(update(queue_samples).values(minute=queue_samples.c.minute - ago))


async def test_a_busy_project_is_sampled_once_a_minute_until_it_is_idle(engine: Engine) -> None:
    samples, project_id = engine.ledger.samples, engine.project.id
    await engine.stays_in_a_minute()
    await engine.ledger.balance.fold()
    await samples.take()
    await engine.add("I live in Lima.")
    await back(engine, 2)
    assert await samples.take() == 1
    assert await samples.take() == 0
    await engine.drain()
    await engine.ledger.balance.fold()
    await back(engine, 1)
    assert await samples.take() == 1  # idle since the last one
    points = await samples.series(project_id, ChartSpan.HOUR)
    busy, idle = [point for point in points if point.open or point.succeeded]
    assert (busy.open, idle.open) == (1, 0)
    assert (busy.accepted, busy.succeeded) == (1, 0)  # the first sample is that of an empty project
    assert busy.ready_s >= 0
    assert (idle.succeeded, idle.memories) == (1, 1)
    await back(engine, 1)
    assert await samples.take() == 0  # and no more while it is


async def test_a_span_has_steps_and_sums(engine: Engine) -> None:
    values = {
        "project_id": engine.project.id, "searches": 0, "memories": 5, "running": 1,
        "ready_s": 2.0, "waiting_s": 0.0,
    }  # fmt: skip
    rows = [
        f"(:project_id, date_bin('2 hours', now(), timestamptz '2020-01-01') - interval '{ago}',"
        f" {accepted}, {accepted}, 0, :searches, :memories, 0, :running, :ready_s, :waiting_s)"
        for ago, accepted in (("200 minutes", 10), ("70 minutes", 40), ("10 minutes", 50))
    ]
    await engine.stays_in_a_minute()
    async with engine.ledger.engine.begin() as connection:
        await connection.execute(delete(queue_samples))
        await connection.execute(
            text(f"INSERT INTO queue_samples VALUES {', '.join(rows)}"),
            values,
        )
    points = await engine.ledger.samples.series(engine.project.id, ChartSpan.WEEK)
    first, second, *idle = points
    assert (first.accepted, second.accepted) == (0, 40)
    assert {(point.open, point.ready_s) for point in (first, second)} == {(1, 2.0)}
    assert {(point.accepted, point.open, point.memories) for point in idle} == {(0, 0, 5)}
    _, step = SPANS[ChartSpan.WEEK]
    assert {after.at - before.at for before, after in pairwise(points)} == {step}


async def test_old_samples_are_deleted_and_the_page_shows_the_others(engine: Engine) -> None:
    await engine.add("I live in Lima.")
    await engine.ledger.samples.take()
    async with serving(engine.ledger) as service, browsing(service.app, service.key) as browser:
        await service.engine.add("I own a boat.")
        await engine.ledger.samples.take()
        page = await browser.get("/console/trends", span="week")
        assert page.text.count("data-chart=") == 5
    day = timedelta(days=1)
    retention = Retention(engine.ledger.engine, keys_for=day, outputs_for=day)
    assert await retention.forget_samples() == 0
    await back(engine, int(SAMPLES_FOR.total_seconds() // 60) + 2)
    async with engine.ledger.engine.connect() as connection:
        rows = await connection.scalar(select(func.count()).select_from(queue_samples))
    assert await retention.forget_samples() == rows
