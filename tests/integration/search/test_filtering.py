"""Results of filters in the ledger: operators, nulls, wildcards, nesting."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from pipeline.domain.filters import parse
from pipeline.domain.memories import Memory
from pipeline.domain.scope import Scope
from pipeline.ledger.engine import STATEMENTS
from pipeline.ledger.filter_conditions import matching, shape
from pipeline.ledger.statements import SHAPES, SHAPES_BYTES, Direct
from pipeline.ledger.tables import memories
from pipeline.search.where import Where
from tests.support.engine import Engine


def noon(month: int) -> datetime:
    return datetime(2026, month, 10, 12, tzinfo=UTC)


MEMORIES: dict[str, dict[str, Any]] = {
    "tea": {
        "user_id": "maya",
        "categories": ["food", "user_preferences"],
        "metadata": {"trip": "oslo", "n": 3, "a": {"b": "deep"}, "odd.key": 1},
        "created_at": noon(1),
    },
    "rum": {
        "user_id": "maya",
        "agent_id": "bot",
        "metadata": {"trip": "Lisbon", "n": None, "day": "2026-01-31"},
        "created_at": noon(2),
        "expiration_date": date(2026, 12, 31),
    },
    "gin": {
        "user_id": "jon",
        "run_id": "r1",
        "categories": ["travel"],
        "metadata": {"day": "2026-02-01T08:00", "tags": ["jazz", "rock"]},
        "created_at": noon(3),
        "attributed_to": "assistant",
        "valid_from": noon(6),
        "kind": "activity",
        "memory_type": "episodic",
        "slot": "jon · visited",
        "subject": "Jon",
        "speaker": "Jon",
    },
    "Ale 100%": {"agent_id": "bot", "created_at": noon(4)},
}
FOUND: dict[str, tuple[Any, str]] = {
    "an id": ({"user_id": "maya"}, "tea rum"),
    "one of several ids": ({"user_id": {"in": ["maya", "jon"]}}, "tea rum gin"),
    "any id": ({"user_id": "*"}, "tea rum gin"),
    "no id": ({"user_id": None}, "ale"),
    "any but one id includes nobody": ({"user_id": {"ne": "maya"}}, "gin ale"),
    "ne any id is no id": ({"user_id": {"ne": "*"}}, "ale"),
    "exactly one scope": ({"user_id": "maya", "agent_id": None}, "tea"),
    "siblings are anded": ({"user_id": "maya", "agent_id": "bot"}, "rum"),
    "or": ({"OR": [{"user_id": "jon"}, {"agent_id": "bot"}]}, "rum gin ale"),
    "or beside and": (
        {"AND": [{"agent_id": "bot"}], "OR": [{"user_id": "maya"}, {"user_id": "jon"}]},
        "rum",
    ),
    "not": ({"NOT": {"user_id": "maya"}}, "gin ale"),
    "not of a list is none of it": ({"NOT": [{"user_id": "maya"}, {"run_id": "r1"}]}, "ale"),
    "nested": ({"AND": [{"user_id": "*"}, {"NOT": {"OR": [{"agent_id": "*"}]}}]}, "tea gin"),
    "camel case": ({"userId": "maya", "agentId": "bot"}, "rum"),
    "a session is a run": ({"session_id": "r1"}, "gin"),
    "after": ({"created_at": {"gt": "2026-02-10T12:00:00Z"}}, "gin ale"),
    "between": ({"created_at": {"gte": "2026-02-10", "lte": "2026-03-11"}}, "rum gin"),
    "Unix seconds": ({"createdAt": {"lt": 1_769_904_000}}, "tea"),
    "an expiration": ({"expiration_date": "*"}, "rum"),
    "no expiration": ({"expiration_date": None}, "tea gin ale"),
    "expires before": ({"expiration_date": {"lt": "2027-01-01"}}, "rum"),
    "a category": ({"categories": "food"}, "tea"),
    "any of the categories": ({"categories": {"in": ["food", "travel"]}}, "tea gin"),
    "a bare list of categories": ({"categories": ["travel", "sports"]}, "gin"),
    "a part of a category's name": ({"categories": {"contains": "PREFER"}}, "tea"),
    "a part of a category's name, whichever": ({"categories": {"contains": "*"}}, "tea gin"),
    "another category": ({"categories": {"ne": "food"}}, "rum gin ale"),
    "any category": ({"categories": "*"}, "tea gin"),
    "no category": ({"categories": None}, "rum ale"),
    "one of the categories, or none": ({"categories": {"in": ["food", None]}}, "tea rum ale"),
    "a list of no category": ({"categories": [None]}, "rum ale"),
    "neither one of the categories nor none": (
        {"user_id": "*", "NOT": {"categories": ["food", None]}},
        "gin",
    ),
    "metadata": ({"metadata": {"trip": "oslo"}}, "tea"),
    "two keys of metadata": ({"metadata": {"trip": "oslo", "n": 4}}, ""),
    "metadata, dotted": ({"metadata.n": 3}, "tea"),
    "metadata along a path": ({"metadata.a.b": "deep"}, "tea"),
    "a key with a dot in it": ({"metadata.odd.key": 1}, "tea"),
    "an object in metadata": ({"metadata": {"a": {"b": "deep"}}}, "tea"),
    "metadata that is not": ({"metadata": {"trip": {"ne": "oslo"}}}, "rum gin ale"),
    "metadata holds": ({"metadata": {"trip": {"contains": "LIS"}}}, "rum"),
    "any metadata of a key": ({"metadata": {"n": "*"}}, "tea"),
    "no metadata of a key": ({"metadata": {"n": {"ne": "*"}}}, "rum gin ale"),
    "metadata, one of several": ({"metadata": {"n": {"in": [3, 4]}}}, "tea"),
    "metadata, one of several numbers": ({"metadata": {"n": {"in": [3.0]}}}, "tea"),
    "metadata, a null among several": ({"metadata": {"n": {"in": [None, 4]}}}, "rum"),
    "metadata, none of several": ({"metadata": {"n": {"nin": [3, 4]}}}, "rum gin ale"),
    "metadata, greater": ({"metadata": {"n": {"gt": 2.5}}}, "tea"),
    "metadata, not greater": ({"metadata": {"n": {"gt": 3}}}, ""),
    "metadata, as numbers and not as text": ({"metadata": {"n": {"lt": 10}}}, "tea"),
    "metadata, a range": ({"metadata": {"n": {"gte": 3, "lte": 3}}}, "tea"),
    "metadata, a number is no string": ({"metadata": {"n": {"gte": "0"}}}, ""),
    "metadata, a string is no number": ({"metadata": {"trip": {"gte": 0}}}, ""),
    "metadata, strings by code points": ({"metadata": {"trip": {"gt": "Z"}}}, "tea"),
    "metadata, dates as text": ({"metadata": {"day": {"gte": "2026-02-01"}}}, "gin"),
    "metadata, a missing key is not less": ({"metadata": {"day": {"lt": "2026-02-01"}}}, "rum"),
    "not of what is missing": (
        {"user_id": "*", "NOT": {"metadata": {"n": {"in": [1, 3]}}}},
        "rum gin",
    ),
    "not greater includes what is missing": ({"NOT": {"metadata.n": {"gt": 1}}}, "rum gin ale"),
    "metadata holds, in any case": ({"metadata": {"trip": {"icontains": "LIS"}}}, "rum"),
    "metadata of a list holds": ({"metadata": {"tags": {"contains": "jazz"}}}, "gin"),
    "metadata, a whole list": ({"metadata": {"tags": {"eq": ["jazz", "rock"]}}}, "gin"),
    "text": ({"text": "tea"}, "tea"),
    "a part of the text": ({"text": {"contains": "%"}}, "ale"),
    "a part in the wrong case": ({"text": {"contains": "ALE"}}, ""),
    "a keyword": ({"keywords": "ALE"}, "ale"),
    "all of the keywords": ({"keywords": ["ale", "100"]}, "ale"),
    "keywords by their other name": ({"keywords_search": {"icontains": "T"}}, "tea"),
    "who said it": ({"attributed_to": "assistant"}, "gin"),
    "a kind": ({"kind": "activity"}, "gin"),
    "another kind": ({"kind": {"ne": "activity"}}, "tea rum ale"),
    "a type": ({"memory_type": {"in": ["episodic", "procedural"]}}, "gin"),
    "a slot": ({"slot": "jon · visited"}, "gin"),
    "no slot": ({"slot": None}, "tea rum ale"),
    "a subject": ({"subject": "Jon", "speaker": "Jon"}, "gin"),
    "said before": ({"said_at": {"lt": "2026-02-01"}}, "tea"),
    "valid later than said": ({"valid_from": {"gte": "2026-06-01"}}, "gin"),
    "a timestamp is the time of the statement": ({"timestamp": {"gte": "2026-04-01"}}, "ale"),
}


async def page(furnished: Engine, tree: Any) -> tuple[list[Memory], int]:
    return await furnished.ledger.memories.page(
        furnished.project.id, parse(tree), expired=True, limit=10, offset=0
    )


@pytest.mark.parametrize(("tree", "names"), FOUND.values(), ids=FOUND.keys())
async def test_a_filter_finds(furnished: Engine, tree: Any, names: str) -> None:
    rows, count = await page(furnished, tree)
    assert {row.text.split()[0].casefold() for row in rows} == set(names.split())
    assert count == len(rows)


@pytest.mark.parametrize(("tree", "names"), FOUND.values(), ids=FOUND.keys())
async def test_a_statement_for_all_filters_of_a_shape_finds_the_same(
    furnished: Engine, tree: Any, names: str
) -> None:
    shaped, values = shape(parse(tree))
    query = select(memories.c.text).where(matching(shaped, memories))
    values["in_project"] = furnished.project.id
    rows = await Direct(furnished.ledger.engine).rows(query, values)
    assert {row.text.split()[0].casefold() for row in rows} == set(names.split())


def test_filters_that_differ_in_values_alone_have_one_shape() -> None:
    first, values = shape(parse({"user_id": "maya", "created_at": {"gt": "2026-01-01"}}))
    second, others = shape(parse({"user_id": "jon", "created_at": {"gt": "2026-02-01"}}))
    assert hash(first) == hash(second)
    assert first == second
    assert values.keys() == others.keys()
    assert shape(parse({"user_id": "*", "created_at": {"gt": "2026-01-01"}}))[0] != first


async def test_memory_ids_find_only_those(furnished: Engine) -> None:
    ids = await page(furnished, {"user_id": "maya"})
    tree = {"memory_ids": [str(row.id) for row in ids[0]], "agent_id": "bot"}
    [row], _ = await page(furnished, tree)
    assert row.text == "rum"


@pytest.fixture
async def furnished(engine: Engine) -> Engine:
    async with engine.ledger.engine.begin() as connection:
        for text, values in MEMORIES.items():
            ids = {name: values.get(name) for name in ("user_id", "agent_id", "run_id")}
            scope = Scope(engine.project.id, **ids)
            await connection.execute(
                insert(memories).values(
                    id=uuid4(),
                    project_id=engine.project.id,
                    lane_id=scope.lane_id,
                    text=text,
                    text_hash=text.encode(),
                    embedding=b"",
                    embedder="none",
                    said_at=values["created_at"],
                    **{"attributed_to": "user", "valid_from": values["created_at"]} | values,
                )
            )
    return engine


async def test_filters_with_other_keys_and_values_share_their_statements(
    furnished: Engine,
) -> None:
    """Otherwise a caller that varies the keys of metadata would fill the memory."""
    passages, memories = furnished.ledger.passages, furnished.ledger.memories
    sizes = []
    for keys in (["trip", "a.b"], ["x", "y.z"], ["", "."]):
        tree = parse({"user_id": "maya", "NOT": {"metadata": dict.fromkeys(keys, 1)}})
        where = Where.of(furnished.project.id, tree, facts=True, turns=True, expired=True)
        words = await passages.by_words(where, ["tea"], limit=10)
        hits = list(words.shares)
        placed = await passages.candidates(where, hits, embedded=[], embedder="none")
        assert len(placed) == len(hits)
        await memories.page(furnished.project.id, tree, expired=False, limit=3, offset=0)
        sizes.append(len(SHAPES.kept))
    assert len(set(sizes)) == 1


async def test_shapes_of_any_number_and_size_take_a_bounded_memory(furnished: Engine) -> None:
    passages = furnished.ledger.passages
    for count in range(1, 60):
        tree = parse({"user_id": "maya", "NOT": {"metadata": {str(n): n for n in range(count)}}})
        where = Where.of(furnished.project.id, tree, facts=True, turns=True, expired=True)
        await passages.by_words(where, ["tea"], limit=10)
        await furnished.ledger.memories.page(
            furnished.project.id, tree, expired=False, limit=3, offset=0
        )
    assert SHAPES.kept.used_bytes <= SHAPES_BYTES
    assert STATEMENTS.used_bytes <= 24_000_000
