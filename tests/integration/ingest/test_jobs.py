"""The end of a job in a sentence of `local/rules`, which names no employer."""

from __future__ import annotations

import pytest

from pipeline.stores import Ledger
from tests.support.api_service import serving


@pytest.mark.parametrize(
    ("first", "second", "then"),
    [
        ("I work at Tidewater.", "I quit my job.", "User no longer works at Tidewater"),
        ("I'm a nurse.", "I lost my job.", "User no longer works as a nurse"),
        ("I work at Tidewater.", "I quit smoking.", "User works at Tidewater"),
        ("I work at Tidewater.", "I want to quit my job.", "User works at Tidewater"),
        ("I work at Tidewater.", "My brother quit his job.", "User works at Tidewater"),
    ],
)
async def test_the_end_of_a_job_ends_its_memory_and_its_relation(
    ledger: Ledger, first: str, second: str, then: str
) -> None:
    async with serving(ledger) as service:
        for line in ("I like tea.", first, second):
            turn = {"messages": [{"role": "user", "content": line}], "user_id": "maya"}
            answer = await service.client.post("/v3/memories/add/", json=turn)
            assert answer.status_code == 200, answer.text
            await service.engine.drain()
        memories = (await service.client.get("/v1/memories/?user_id=maya")).json()
        texts = {memory["memory"] for memory in memories}
        about_work = {"User works at Tidewater", "User works as a nurse", then}
        assert texts & about_work == {then}
        graph = (await service.client.get("/v1/graph/?user_id=maya")).json()["results"]
        work = [row for row in graph if row["relationship"] in ("works_at", "works_as")]
        assert bool(work) is (" no longer " not in then)
