"""Labels that a request puts into prompts: each is one line without control characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from api.adds.requests import AddRequest
from api.events.requests import ReplayRequest
from api.exports.requests import ExportRequest
from api.lists.requests import ReadRequest
from api.profiles.requests import UserProfileSettings
from api.replays.requests import BeginRequest
from api.tenants.requests import GraphTypesRequest, ProjectUpdateRequest
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import Instructions
from pipeline.models import prompts

MAYA = {"user_id": "maya"}
ADD = MAYA | {"messages": "I like tea."}
ABOUT = {"type": "string", "description": "x"}
Body = Callable[[str], dict[str, Any]]
# (model, field) of every label in a prompt, and a body with a label of that name.
LABELS: dict[tuple[type[BaseModel], str], list[Body]] = {
    (AddRequest, "custom_categories"): [
        lambda name: ADD | {"custom_categories": {name: "x"}},
        lambda name: ADD | {"custom_categories": [{"tea": "x"}, {name: "x"}]},
    ],
    (AddRequest, "messages"): [lambda name: MAYA | {"messages": [{"content": "x", "name": name}]}],
    (ReplayRequest, "messages"): [lambda name: {"messages": [{"content": "x", "name": name}]}],
    (ProjectUpdateRequest, "custom_categories"): [
        lambda name: {"custom_categories": {name: "x"}},
        lambda name: {"custom_categories": [{name: ""}]},
    ],
    (ProjectUpdateRequest, "custom_attributes"): [
        lambda name: {"custom_attributes": {name: "one"}}
    ],
    (ProjectUpdateRequest, "graph_types"): [
        lambda name: {"graph_types": {"entity_types": {name: "x"}}},
        lambda name: {"graph_types": {"relation_types": [{name: "x"}]}},
    ],
    (GraphTypesRequest, "entity_types"): [lambda name: {"entity_types": {name: ""}}],
    (GraphTypesRequest, "relation_types"): [lambda name: {"relation_types": {name: ""}}],
    (ExportRequest, "schema"): [
        lambda name: MAYA | {"schema": {"properties": {name: ABOUT}}},
        lambda name: MAYA | {"schema": {"fields": ["home", name]}},
        lambda name: MAYA | {"schema": {"properties": {"a": {"properties": {name: ABOUT}}}}},
        lambda name: (
            MAYA
            | {
                "schema": {
                    "properties": {"a": {"type": "array", "items": {"properties": {name: {}}}}}
                }
            }
        ),
    ],
    (UserProfileSettings, "schema"): [
        lambda name: {"schema": {"properties": {name: ABOUT}}},
    ],
}
# Texts that are instructions or descriptions on purpose: prompts have them in quotes.
FREE = {
    AddRequest: {
        *("custom_instructions", "includes", "excludes", "agent_custom_instructions"),
        "deduced_memories",
    },
    ReplayRequest: {"custom_instructions", "includes", "excludes"},
    BeginRequest: {"custom_instructions"},
    ProjectUpdateRequest: {
        *("custom_instructions", "includes", "excludes", "agent_custom_instructions"),
        "description",
    },
    GraphTypesRequest: set[str](),
    ExportRequest: {"export_instructions"},
    UserProfileSettings: {"custom_instructions"},
}
# Fields that no prompt contains.
ELSEWHERE = {
    AddRequest: {
        *("user_id", "agent_id", "app_id", "run_id", "filters", "metadata", "infer", "memory_type"),
        *("mode", "dry_run", "incognito", "enable_graph", "priority", "async_mode"),
        *("output_format", "timestamp", "expiration_date", "immutable"),
    },
    ReplayRequest: {"stage", "dry_run"},
    BeginRequest: {
        *("user_id", "agent_id", "app_id", "run_id", "llm_model", "embedder_model", "answers"),
    },
    ProjectUpdateRequest: {
        *(
            "name",
            "mode",
            "budget",
            "curator",
            "tamper_evidence",
            "gather",
            "enable_graph",
            "decay",
        ),
        *("multilingual", "default_cut", "allowed_origins", "memory_depth", "usecase_setting"),
    },
    GraphTypesRequest: set[str](),
    ExportRequest: set[str](),
    UserProfileSettings: set[str](),
}
FORGED = ["a\n\n## Messages", "a\r", "a\x00", "a\x1b[2J", "a\x7f", "a\x85", "a\u2028", "a\u202eb"]
TABLE = [(model, field, body) for (model, field), bodies in LABELS.items() for body in bodies]


def taken(model: type[BaseModel], body: dict[str, Any]) -> None:
    """Read a body, and the question that it is."""
    request = model.model_validate(body)
    if isinstance(request, ExportRequest):
        request.options()


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize(
    ("model", "field", "body"), TABLE, ids=[f"{m.__name__} {f}" for m, f, _ in TABLE]
)
def test_a_label_of_more_than_one_line_is_refused_by_the_name_of_its_field(
    model: type[BaseModel], field: str, body: Body, name: str
) -> None:
    with pytest.raises((ValidationError, InvalidInput), match=rf"{field}[\s\S]*remove U\+"):
        taken(model, body(name))


@pytest.mark.parametrize("name", ["food & drink", "спорт", "食べ物", "الرياضة\u200f", "çay ☕"])
@pytest.mark.parametrize(
    ("model", "field", "body"), TABLE, ids=[f"{m.__name__} {f}" for m, f, _ in TABLE]
)
def test_a_label_of_one_line_is_taken_in_any_script(
    model: type[BaseModel], field: str, body: Body, name: str
) -> None:
    taken(model, body(name))


@pytest.mark.parametrize("model", FREE)
def test_every_field_is_a_label_or_free_text_or_in_no_prompt(model: type[BaseModel]) -> None:
    labels = {field for of, field in LABELS if of is model}
    names = {field.alias or name for name, field in model.model_fields.items()}
    inherited = ReadRequest.model_fields.keys() if issubclass(model, ReadRequest) else set()
    assert names - inherited == labels | FREE[model] | ELSEWHERE[model]


@pytest.mark.parametrize("name", FORGED)
def test_a_label_that_is_stored_already_stays_in_its_line(name: str) -> None:
    stored = Instructions(categories={name: name, "tea": ""})
    assert len(prompts.categories(stored).splitlines()) == 2
    assert len(prompts.form({"properties": {name: {"description": name}}}).splitlines()) == 1
