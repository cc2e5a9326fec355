"""Reads of the graph over very many scopes: no relation is missing without a word about it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from pipeline.stores import Ledger
from tests.support.api_service import MAYA, SEARCH, Service, serving

SCOPES = 1_500
# One scope for each session of a user, each with a relation of an entity of its own.
FILL = (
    """INSERT INTO lanes
        (id, project_id, user_id, run_id, accepted_seq, settled_seq, state, created_at)
    SELECT md5('l' || n)::uuid, :project_id, 'maya', 'r' || n, 1, 1, 'IDLE',
           now() - n * interval '1 hour'
    FROM generate_series(1, :scopes) n""",
    """INSERT INTO entities (id, project_id, lane_id, name, name_key, kind, plain_name)
    SELECT md5(name || n)::uuid, :project_id, md5('l' || n)::uuid, name, lower(name), 'other',
           lower(name)
    FROM generate_series(1, :scopes) n,
         LATERAL (VALUES ('User'), ('Town' || n)) AS of_lane (name)""",
    """INSERT INTO relations
        (id, project_id, lane_id, source_id, relation, destination_id, event_id, valid_from)
    SELECT md5('r' || n)::uuid, :project_id, md5('l' || n)::uuid, md5('User' || n)::uuid,
           'lives_in', md5('Town' || n || n)::uuid, gen_random_uuid(), now() - n * interval '1 hour'
    FROM generate_series(1, :scopes) n""",
)


@pytest.fixture
async def crowded(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as service:
        values = {"project_id": service.engine.project.id, "scopes": SCOPES}
        async with ledger.engine.begin() as connection:
            for words in FILL:
                await connection.execute(text(words), values)
            await connection.execute(text("ANALYZE lanes, entities, relations"))
        yield service


@pytest.mark.parametrize("number", [1, 700, SCOPES])
async def test_a_search_finds_the_relation_of_any_scope_by_its_name(
    crowded: Service, number: int
) -> None:
    body = {"query": f"Who lives in Town{number}?", "filters": MAYA}
    answer = (await crowded.client.post(SEARCH, json=body)).json()
    assert [row["target"] for row in answer["relations"]][:1] == [f"Town{number}"]
    assert answer["degraded_parts"] == []


async def test_a_search_says_that_it_left_scopes_out(crowded: Service) -> None:
    body = {"query": "Where do I live?", "filters": MAYA}
    answer = (await crowded.client.post(SEARCH, json=body)).json()
    assert answer["relations"]
    assert answer["degraded_parts"] == ["relations"]


@pytest.mark.parametrize("ids", [MAYA, MAYA | {"run_id": "r1400"}])
async def test_the_list_counts_every_scope(crowded: Service, ids: dict[str, str]) -> None:
    last = SCOPES // 100 if ids == MAYA else 1
    params = ids | {"page": last, "page_size": 100}
    answer = (await crowded.client.get("/v1/graph/", params=params)).json()
    if ids == MAYA:
        assert (answer["count"], answer["results"][-1]["target"]) == (SCOPES, f"Town{SCOPES}")
    else:
        assert [row["target"] for row in answer["results"]] == ["Town1400"]


async def test_the_neighbourhood_of_a_name_is_whole_and_that_of_the_user_says_it_is_not(
    crowded: Service,
) -> None:
    town = (await crowded.client.get("/v1/graph/", params=MAYA | {"entity": "Town1400"})).json()
    assert (len(town["results"]), town["incomplete"]) == (1, False)
    user = (await crowded.client.get("/v1/graph/", params=MAYA | {"entity": "User"})).json()
    assert user["incomplete"]


async def test_the_export_has_every_scope(crowded: Service) -> None:
    answer = (await crowded.client.get("/v1/graph/export/", params=MAYA)).json()
    assert answer["count"] == 3 * SCOPES
