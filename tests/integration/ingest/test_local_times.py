"""The day of "yesterday": that of the speaker's clock, from the offset of `timestamp`."""

from __future__ import annotations

import re

import pytest

from tests.support.api_service import ADD, MAYA, Service

# 1 March, 16:00 in UTC.
INSTANTS = {
    "2026-03-01T16:00:00Z": "2026-02-28",
    "2026-03-02T01:00:00+09:00": "2026-03-01",
    "2026-03-01T21:45:00+05:45": "2026-02-28",
    "2026-03-01T08:00:00-08:00": "2026-02-28",
}
SAID_AT = "2026-03-01T16:00:00Z"


@pytest.mark.parametrize(("timestamp", "day"), INSTANTS.items())
async def test_yesterday_is_that_of_the_speaker(service: Service, timestamp: str, day: str) -> None:
    await service.add("I moved to Bern yesterday.", timestamp=timestamp)
    [row] = await service.listed()
    assert row["memory"] == f"User lives in Bern (moved on {day})"
    assert (row["said_at"], row["valid_from"]) == (SAID_AT, f"{day}T00:00:00Z")


async def test_a_statement_about_today_does_not_begin_after_it_is_made(service: Service) -> None:
    """In Auckland it is 2 March, and a later turn of the same day must count as later."""
    await service.add("I moved to Bern today.", timestamp="2026-03-02T05:00:00+13:00")
    [row] = await service.listed()
    assert row["valid_from"] == row["said_at"] == SAID_AT
    await service.add("I live in Bonn now.", timestamp="2026-03-02T06:00:00+13:00")
    newest, _ = await service.listed()
    assert newest["memory"] == "User lives in Bonn"


async def test_adds_that_wait_together_keep_their_days(service: Service) -> None:
    for place, timestamp in zip(("Bern", "Rome", "Oslo", "Lima"), INSTANTS, strict=True):
        turn = {"role": "user", "content": f"I visited {place} yesterday."}
        body = {"messages": [turn], "timestamp": timestamp} | MAYA
        assert (await service.client.post(ADD, json=body)).status_code == 200
    await service.engine.drain()
    days = [re.findall(r"2026-\d\d-\d\d", row["memory"]) for row in await service.listed()]
    assert sorted(days) == sorted([day] for day in INSTANTS.values())


async def test_a_dry_run_has_the_day_of_the_add(service: Service) -> None:
    body = {"dry_run": True, "timestamp": "2026-03-02T01:00:00+09:00"}
    event = await service.event(await service.add("I moved to Bern yesterday.", **body))
    assert "2026-03-01" in event["results"][0]["memory"]


async def test_the_same_instant_on_another_clock_is_the_same_add(service: Service) -> None:
    key = {"Idempotency-Key": "once"}
    events = set()
    for timestamp in INSTANTS:
        body = {"messages": [{"role": "user", "content": "Hello"}], "timestamp": timestamp} | MAYA
        events.add((await service.client.post(ADD, json=body, headers=key)).json()["event_id"])
    assert len(events) == 1
