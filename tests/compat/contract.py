"""Documented operations of the Mem0 Platform, with JSON Schemas of their answers.

Only facts are recorded: method, path, status, and the names and types of fields. A recorded field
must be in the answer with this type; answers may have more fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
ANY: Schema = {}
OBJECT: Schema = {"type": "object"}
ID: Schema = {"type": "string", "format": "uuid"}
TIME: Schema = {"type": "string", "format": "date-time"}
EMAIL: Schema = {"type": "string", "format": "email"}


def one_of(*words: str) -> Schema:
    return {"enum": list(words)}


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema, "minItems": 1}


def each(schema: Schema) -> Schema:
    """Schema of a list that may be empty."""
    return {"type": "array", "items": schema}


def fields(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def page(row: Schema, **more: Schema) -> Schema:
    return fields(count=WHOLE, next=maybe(TEXT), previous=maybe(TEXT), results=many(row), **more)


MEMORY = {
    "id": ID,
    "memory": TEXT,
    "user_id": maybe(TEXT),
    "metadata": maybe(OBJECT),
    "categories": each(TEXT),
    "created_at": TIME,
    "updated_at": TIME,
    "expiration_date": maybe(TEXT),
    "structured_attributes": maybe(OBJECT),
    "replaced_by": maybe(TEXT),
    "synthesized": FLAG,
}
WHOLE_MEMORY = fields(
    **MEMORY,
    agent_id=maybe(TEXT),
    app_id=maybe(TEXT),
    session_id=maybe(TEXT),
    lifecycle_state=TEXT,
)
HIT = fields(
    id=ID, memory=TEXT, user_id=TEXT, score=NUMBER, metadata=maybe(OBJECT), categories=each(TEXT),
    expiration_date=maybe(TEXT), created_at=TIME, updated_at=TIME,
)  # fmt: skip
QUEUED = fields(message=TEXT, status=TEXT, event_id=ID)
STORED = fields(id=ID, data=fields(memory=TEXT), event=TEXT)
DONE = fields(message=TEXT)
STARTED = fields(message=TEXT, event_id=ID)
EVENT = fields(
    id=ID, event_type=TEXT, status=one_of("PENDING", "RUNNING", "FAILED", "SUCCEEDED"),
    payload=OBJECT, metadata=maybe(OBJECT), results=each(OBJECT), created_at=TIME, updated_at=TIME,
    started_at=TIME, completed_at=TIME, latency=NUMBER,
)  # fmt: skip
HISTORY = fields(
    id=ID, memory_id=ID, input=each(fields(role=TEXT, content=TEXT)), old_memory=maybe(TEXT),
    new_memory=TEXT, user_id=TEXT, agent_id=maybe(TEXT), app_id=maybe(TEXT), session_id=maybe(TEXT),
    categories=each(TEXT), event=one_of("ADD", "UPDATE", "DELETE"), metadata=maybe(OBJECT),
    created_at=TIME, updated_at=TIME,
)  # fmt: skip
ENTITY = fields(
    id=TEXT, name=TEXT, type=one_of("user", "agent", "app", "run"), created_at=TIME,
    updated_at=TIME, owner=TEXT, metadata=maybe(OBJECT),
)  # fmt: skip
MEMBER = fields(username=TEXT, role=TEXT, email=TEXT)
ORGANIZATION = fields(
    org_id=TEXT, name=TEXT, created_at=TIME, updated_at=TIME, members=each(MEMBER), is_default=FLAG,
    byok_enabled=FLAG, invitations=each(ANY), owner_pricing_plan=TEXT, is_owner=FLAG,
    user_role=TEXT,
)  # fmt: skip
PROJECT = fields(
    project_id=TEXT, name=TEXT, created_at=TIME, updated_at=TIME, members=each(MEMBER),
    usecase=maybe(TEXT), memory_depth=TEXT, inclusion_prompt=maybe(TEXT),
    exclusion_prompt=maybe(TEXT), custom_categories=each(OBJECT), custom_instructions=TEXT,
    update_custom_instructions=maybe(TEXT), summary_custom_instructions=maybe(TEXT),
    summary_batch_size=WHOLE, summary_max_tokens=maybe(WHOLE), expiration_date=maybe(TEXT),
    enable_graph=FLAG, multilingual=FLAG, version=TEXT, is_default=FLAG,
    active_prompt_profile=maybe(TEXT), decay=FLAG, user_role=TEXT,
)  # fmt: skip
WEBHOOK = fields(
    webhook_id=TEXT, name=TEXT, url=TEXT, event_types=many(TEXT), owner=TEXT, is_active=FLAG,
    project=TEXT, created_at=TIME, updated_at=TIME,
)  # fmt: skip
REGISTERED = {
    "id": WHOLE, "metadata": OBJECT, "created_at": TIME, "updated_at": TIME,
    "graph_entities": ANY, "is_deleted": FLAG, "project": WHOLE,
}  # fmt: skip
COUNTERS = (
    "total_memories", "total_retrieval_events", "total_add_events", "total_api_retrieval_events",
    "total_retrieval_events_limit", "total_users_with_memories", "total_agents_with_memories",
    "total_runs_with_memories", "memories_per_user", "memories_per_agent", "memories_per_run",
)  # fmt: skip

USER = {"user_id": "maya"}
SAID = [{"role": "user", "content": "I live in Porto."}]
ORGS = "/api/v1/orgs/organizations/"
ORG = ORGS + "{org_id}/"
PROJECTS = ORG + "projects/"
ONE_PROJECT = PROJECTS + "{project_id}/"
HOOKS = "/api/v1/webhooks/"
NOOR = {"email": "noor@example.org", "role": "READER"}


@dataclass(frozen=True)
class Operation:
    """One documented operation.

    In path, query and body, `{name}` is an id that the test has created.
    """

    method: str
    path: str
    answer: Schema
    status: int = 200
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)


Op = Operation
# Ordered so that each finds the rows it needs; deletes come last.
OPERATIONS = (
    Op("GET", "/v1/ping/", fields(status=TEXT, org_id=TEXT, project_id=TEXT, user_email=EMAIL)),
    Op("POST", "/v3/memories/add/", fields(status=TEXT, event_id=ID),
      body={"messages": SAID} | USER),
    Op("POST", "/v3/memories/add/", fields(message=TEXT, status=TEXT, event_id=ID,
      results=many(STORED)), body={"messages": SAID, "infer": False, "user_id": "jon"}),
    Op("POST", "/v1/memories/", many(QUEUED), body={"messages": SAID} | USER),
    Op("POST", "/v1/memories/", fields(results=many(QUEUED), relations=each(ANY)),
      body={"messages": SAID, "output_format": "v1.1", "version": "v2"} | USER),
    Op("GET", "/v1/memories/", many(fields(**MEMORY, lifecycle_state=TEXT)), query=USER),
    Op("GET", "/v1/memories/", page(fields(**MEMORY, lifecycle_state=TEXT)),
      query=USER | {"page": "1", "page_size": "5"}),
    Op("POST", "/v2/memories/", many(WHOLE_MEMORY), body={"filters": USER}),
    Op("POST", "/v3/memories/", page(WHOLE_MEMORY), body={"filters": USER}),
    Op("POST", "/v1/memories/search/", many(HIT), body={"query": "Porto"} | USER),
    Op("POST", "/v1/memories/search/", fields(results=many(HIT), relations=each(ANY)),
      body={"query": "Porto", "output_format": "v1.1"} | USER),
    Op("POST", "/v2/memories/search/", many(HIT), body={"query": "Porto", "filters": USER}),
    Op("POST", "/v3/memories/search/", fields(results=many(fields(
        id=ID, memory=TEXT, score=NUMBER, run_id=maybe(TEXT), created_at=TIME,
        score_breakdown=fields(semantic=NUMBER, bm25=NUMBER, entity=NUMBER)))),
      body={"query": "Porto", "filters": USER}),
    Op("GET", "/v1/memories/{memory_id}/", WHOLE_MEMORY),
    Op("PUT", "/v1/memories/{memory_id}/", WHOLE_MEMORY, body={"text": "Lives in Porto"}),
    Op("GET", "/v1/memories/{memory_id}/history/", many(HISTORY)),
    Op("GET", "/v1/memories/events/", page(HISTORY)),
    Op("GET", "/v1/memories/user/maya/", page(fields(
        id=TEXT, memory=TEXT, metadata=maybe(OBJECT), categories=each(TEXT), created_at=TIME,
        updated_at=TIME, input=each(fields(role=TEXT, content=TEXT)), is_updated=FLAG))),
    Op("POST", "/v1/feedback/", fields(id=ID, feedback=one_of("POSITIVE"),
      feedback_reason=maybe(TEXT)), body={"memory_id": "{memory_id}", "feedback": "POSITIVE"}),
    Op("PUT", "/v1/batch/", DONE, body={"memories": [{"memory_id": "{memory_id}", "text": "Tea"}]}),
    Op("GET", "/v1/events/", page(OBJECT)),
    Op("GET", "/v1/event/{event_id}/", EVENT),
    Op("POST", "/v1/exports/", fields(message=TEXT, id=ID), 201,
      body={"schema": {"home": "string"}, "filters": USER}),
    Op("POST", "/v1/exports/get/", OBJECT, body={"filters": USER}),
    Op("POST", "/v1/summary/", each(ANY), body={"filters": USER}),
    Op("GET", "/v1/stats/", fields(**dict.fromkeys(COUNTERS, NUMBER))),
    Op("GET", "/v1/entities/", page(ENTITY, total_users=WHOLE, total_agents=WHOLE, total_apps=WHOLE,
      total_runs=WHOLE)),
    Op("GET", "/v1/entities/filters/", fields(
        event_type=many(TEXT), categories=each(ANY), users=many(TEXT),
        parameters=many(fields(name=TEXT, label=TEXT, type=TEXT, placeholder=TEXT,
                               options=each(fields(value=TEXT, label=TEXT)))))),
    Op("GET", "/v2/entities/user/maya/", many(ENTITY)),
    Op("POST", "/v1/users/", fields(**REGISTERED, user_id=TEXT), 201, body={"user_id": "ada"}),
    *(Op("POST", f"/v1/{kind}s/", fields(**REGISTERED, **{f"{kind}_id": TEXT, "name": TEXT}), 201,
        body={f"{kind}_id": "x", "name": "X"}) for kind in ("agent", "app", "run")),
    Op("GET", ORGS, many(ORGANIZATION)),
    Op("POST", ORGS, fields(message=TEXT, org_id=ID), 201, body={"name": "Harbour"}),
    Op("GET", ORG, ORGANIZATION),
    Op("POST", ORG + "members/", DONE, 201, body=NOOR),
    Op("PUT", ORG + "members/", DONE, body=NOOR | {"role": "OWNER"}),
    Op("GET", ORG + "members/", fields(members=many(fields(user_id=TEXT, role=TEXT)))),
    Op("DELETE", ORG + "members/", DONE, body={"email": NOOR["email"]}),
    Op("GET", PROJECTS, many(PROJECT)),
    Op("POST", PROJECTS, fields(message=TEXT, project_id=ID), body={"name": "second"}),
    Op("GET", ONE_PROJECT, PROJECT),
    Op("PATCH", ONE_PROJECT, DONE, body={"custom_instructions": ["Be brief.", "Be kind."]}),
    Op("POST", ONE_PROJECT + "members/", DONE, body=NOOR),
    Op("PUT", ONE_PROJECT + "members/", DONE, body=NOOR | {"role": "OWNER"}),
    Op("GET", ONE_PROJECT + "members/", fields(members=many(fields(username=TEXT, role=TEXT)))),
    Op("DELETE", ONE_PROJECT + "members/", DONE, query={"email": NOOR["email"]}),
    Op("POST", HOOKS + "projects/{project_id}/", WEBHOOK, 201, body={
        "name": "audit", "url": "https://example.org/hook", "event_types": ["memory_add"]}),
    Op("GET", HOOKS + "projects/{project_id}/", many(WEBHOOK)),
    Op("PUT", HOOKS + "{webhook_id}/", DONE, body={"name": "renamed"}),
    Op("DELETE", HOOKS + "{webhook_id}/", DONE),
    Op("DELETE", "/v1/memories/{memory_id}/", DONE),
    Op("DELETE", "/v1/batch/", DONE, body={"memories": [{"memory_id": "{other_memory_id}"}]}),
    Op("DELETE", "/v1/memories/", STARTED, query=USER),
    Op("DELETE", "/v2/entities/user/jon/", STARTED),
    Op("DELETE", "/v1/entities/user/{number}/", STARTED),
    Op("DELETE", PROJECTS + "{new_project_id}/", DONE),
    Op("DELETE", ORGS + "{new_org_id}/", DONE),
)  # fmt: skip
