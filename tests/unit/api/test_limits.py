"""Limits of single values: an error states the size, the limit and what to change."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from api.adds.requests import AddRequest
from api.entities.requests import RegisterRequest
from api.entities.routes import OFFERED_USERS
from api.events.requests import ReplayRequest
from api.exports.requests import ExportRequest
from api.graph.requests import RenameRequest
from api.http import body, limits, strict_json
from api.lists.requests import LONGEST_WAIT_S, ListRequest
from api.memories.requests import BatchUpdateRequest, FeedbackRequest, UpdateRequest
from api.replays import requests as replay_requests
from api.tenants import requests as tenant_requests
from pipeline.domain import limits as of_values
from pipeline.search import concurrency
from pipeline.tenants.saved_views import MOST_VIEWS
from pipeline.webhooks.store import MOST_WEBHOOKS

ID = "00000000-0000-0000-0000-000000000001"
TEXT = "x" * (of_values.LONGEST_TEXT + 1)
INSTRUCTIONS = "x" * (limits.LONGEST_INSTRUCTIONS + 1)
LARGE = {"k": "x" * of_values.LARGEST_METADATA_BYTES}
MAYA = {"user_id": "maya"}
ADD = MAYA | {"messages": "I like tea."}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


TOO_MUCH: dict[str, tuple[type[BaseModel], dict[str, Any], str]] = {
    "a message": (AddRequest, ADD | {"messages": TEXT}, "32,001 characters, the limit is 32,000"),
    "a verbatim message": (AddRequest, ADD | {"messages": TEXT, "infer": False}, "split it"),
    "a message in parts": (
        AddRequest,
        ADD | {"messages": [{"content": [{"type": "text", "text": "x" * 20_000}] * 2}]},
        "split it over several messages",
    ),
    "parts": (
        AddRequest,
        ADD | {"messages": [{"content": [{"type": "text", "text": "x"}] * 201}]},
        "at most 200 parts",
    ),
    "messages": (AddRequest, ADD | {"messages": [{"content": "x"}] * 501}, "at most 500 items"),
    "a speaker": (AddRequest, ADD | {"messages": [{"content": "x", "name": "x" * 513}]}, "shorten"),
    "metadata": (AddRequest, ADD | {"metadata": LARGE}, "32,008 bytes as JSON"),
    "levels of metadata": (AddRequest, ADD | {"metadata": nested(17)}, "deeper than 16 levels"),
    "instructions": (
        AddRequest,
        ADD | {"custom_instructions": INSTRUCTIONS},
        "shorten the instructions",
    ),
    "categories": (
        AddRequest,
        ADD | {"custom_categories": {f"c{n}": "" for n in range(101)}},
        "101 categories, the limit is 100",
    ),
    "a category": (AddRequest, ADD | {"custom_categories": {"c": "x" * 2_001}}, "2,000 characters"),
    "a category's name": (AddRequest, ADD | {"custom_categories": {"c" * 513: ""}}, "512"),
    "a replayed message": (ReplayRequest, {"messages": TEXT}, "split it"),
    "a replay's instructions": (ReplayRequest, {"includes": INSTRUCTIONS}, "shorten"),
    "a shadow's instructions": (
        replay_requests.BeginRequest,
        MAYA | {"custom_instructions": INSTRUCTIONS},
        "short",
    ),
    "a memory": (UpdateRequest, {"text": TEXT}, "split it over several memories"),
    "a memory of a batch": (
        BatchUpdateRequest,
        {"memories": [{"memory_id": ID, "text": TEXT}]},
        "split it over several memories",
    ),
    "new metadata": (UpdateRequest, {"metadata": LARGE}, "32,008 bytes"),
    "a reason": (FeedbackRequest, {"memory_id": ID, "feedback_reason": "x" * 2_001}, "shorten"),
    "metadata of a user": (RegisterRequest, MAYA | {"metadata": LARGE}, "32,008 bytes"),
    "a user's name": (RegisterRequest, MAYA | {"name": "x" * 513}, "shorten the name"),
    "a date": (ListRequest, MAYA | {"start_date": "2" * 65}, "ISO 8601"),
    "fields": (ListRequest, MAYA | {"fields": ["id"] * 101}, "at most 100 items"),
    "a schema": (
        ExportRequest,
        MAYA | {"schema": {"properties": {"a": {"description": "x" * 64_000}}}},
        "ask for fewer properties",
    ),
    "a project's instructions": (
        tenant_requests.ProjectUpdateRequest,
        {"custom_instructions": INSTRUCTIONS},
        "at most 20000 characters",
    ),
}


@pytest.mark.parametrize(("model", "body", "fault"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_value_beyond_its_limit_is_refused_with_what_to_change(
    model: type[BaseModel], body: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ValidationError, match=re.escape(fault)):
        model.model_validate(body)


def test_values_at_their_limits_are_taken() -> None:
    longest = "x" * of_values.LONGEST_TEXT
    add = AddRequest.model_validate(
        ADD | {"messages": [{"content": longest}] * 3, "metadata": nested(16), "infer": False}
    )
    assert [turn.content for turn in add.turns()] == [longest] * 3
    assert UpdateRequest.model_validate({"text": longest}).values() == {"text": longest}


def test_the_page_of_limits_has_the_figures_of_the_code() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "limits.md").read_text(
        "utf-8"
    )
    figures = [
        of_values.LONGEST_TEXT,
        of_values.LONGEST_NAME,
        limits.LONGEST_INSTRUCTIONS,
        of_values.LONGEST_REASON,
        limits.LONGEST_DATE,
        of_values.MOST_PARTS,
        limits.MOST_FIELDS,
        of_values.MOST_CATEGORIES,
        limits.LONGEST_CATEGORY,
        of_values.LARGEST_METADATA_BYTES,
        of_values.DEEPEST_METADATA,
        limits.LARGEST_SCHEMA_BYTES,
        strict_json.MOST_VALUES,
        strict_json.DEEPEST,
        of_values.MOST_MESSAGES,
    ]
    missing = [figure for figure in figures if not re.search(rf"\b{figure:,}\b", page)]
    assert not missing, f"docs/reference/limits.md lacks {missing}"
    searches = f"| {concurrency.PROJECT_AT_ONCE}, and {concurrency.PROJECT_AWAY} that wait for"
    rows = [
        f"| `wait` | {LONGEST_WAIT_S:.0f} seconds |",
        f"| years {body.EARLIEST.year} to {body.LATEST.year} (UTC) |",
        f"| webhooks, saved views of a project | {MOST_WEBHOOKS}, {MOST_VIEWS} |",
        searches,
    ]
    assert [row for row in rows if row not in page] == []


def test_the_table_of_routes_has_the_number_of_offered_users() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "api-compat.md").read_text(
        "utf-8"
    )
    assert f"`/v1/entities/filters/` | works | the newest {OFFERED_USERS:,} users |" in page


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb", "a\u202eb", "a\u2028b", "\u2066a"])
@pytest.mark.parametrize("request_of", [RegisterRequest, RenameRequest])
def test_a_name_is_one_line_in_one_direction(request_of: type[BaseModel], name: str) -> None:
    owner = MAYA if request_of is RegisterRequest else {}
    with pytest.raises(ValidationError, match=r"remove U\+"):
        request_of(**owner, name=name)


@pytest.mark.parametrize("name", ["Maya Lopez", "مايا\u200f", "王小明"])
def test_a_name_in_any_script_is_taken(name: str) -> None:
    assert RegisterRequest(**MAYA, name=name).name == name
