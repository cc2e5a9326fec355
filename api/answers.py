"""JSON Schemas of all responses, for the OpenAPI description.

They are documentation only: responses are not validated when they are sent, but the integration
tests validate every response. An object may have more fields than its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
ID: Schema = {"type": "string", "format": "uuid"}
TIME: Schema = {"type": "string", "format": "date-time"}
DATE: Schema = {"type": "string", "format": "date"}


def maybe(schema: Schema) -> Schema:
    """The schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def either(*schemas: Schema) -> Schema:
    """Any of these schemas."""
    return {"anyOf": list(schemas)}


def one_of(*words: str) -> Schema:
    """One of these strings."""
    return {"type": "string", "enum": list(words)}


def many(row: Schema) -> Schema:
    """An array of `row`."""
    return {"type": "array", "items": row}


def fields(**properties: Schema) -> Schema:
    """An object with all of these fields."""
    return {"type": "object", "required": list(properties), "properties": properties}


def some(always: Schema, **properties: Schema) -> Schema:
    """An object with all fields of `always`; the others are optional."""
    return dict(always) | {"properties": always["properties"] | properties}


def ref(name: str) -> Schema:
    """A reference to a schema of COMPONENTS."""
    return {"$ref": f"#/components/schemas/{name}"}


def page(row: str, **more: Schema) -> Schema:
    """One page of rows in the envelope of the Mem0 Platform."""
    return fields(
        count=WHOLE, next=maybe(TEXT), previous=maybe(TEXT), results=many(ref(row)), **more
    )


IDS = dict.fromkeys(("user_id", "agent_id", "app_id", "run_id"), maybe(TEXT))
DATES = {"created_at": TIME, "updated_at": TIME}
JOB_STATUS = one_of("pending", "running", "succeeded", "failed")
STATUS = one_of("PENDING", "RUNNING", "SUCCEEDED", "FAILED")
PAID = {
    "calls": WHOLE, "prompt_tokens": WHOLE, "completion_tokens": WHOLE, "cost_usd": maybe(NUMBER),
}  # fmt: skip
STATED = {
    "id": ID, "memory": TEXT, **IDS, "session_id": maybe(TEXT), "metadata": maybe(OBJECT),
    "categories": many(TEXT), "structured_attributes": OBJECT, "immutable": FLAG,
    "pinned": FLAG, "edited_at": maybe(TIME),
    "expiration_date": maybe(DATE), "attributed_to": maybe(TEXT), "event_id": maybe(ID),
    "version": WHOLE, "timestamp": TIME, "said_at": TIME, "valid_from": TIME, "kind": maybe(TEXT),
    "memory_type": maybe(TEXT), "subject": maybe(TEXT), "attribute": maybe(TEXT),
    "slot": maybe(TEXT), "speaker": maybe(TEXT), "confidence": maybe(NUMBER), **DATES,
    "lifecycle_state": TEXT, "replaced_by": maybe(TEXT), "synthesized": FLAG,
    "conflict_id": maybe(ID), "suggestion_id": maybe(ID),
}  # fmt: skip
TURN = STATED | {"pending": FLAG}
SCORED = {"score": NUMBER, "score_breakdown": OBJECT}
OWNER = {
    "id": TEXT, "name": TEXT, "display_name": TEXT, "type": one_of("user", "agent", "app", "run"),
    "owner": ID, "metadata": maybe(OBJECT), "total_memories": WHOLE, **DATES,
}  # fmt: skip
REPLAY = {
    "id": ID, "status": one_of("RUNNING", "READY", "SWITCHED"), **IDS,
    "custom_instructions": maybe(TEXT), "llm_model": maybe(TEXT), "embedder_model": maybe(TEXT),
    "answers": one_of("recorded", "fresh"), "accepted": WHOLE, "succeeded": WHOLE, "failed": WHOLE,
    "failures": OBJECT, "in_flight": WHOLE, "behind": WHOLE, "created_at": TIME,
    "switched_at": maybe(TIME),
}  # fmt: skip
REMEMBERED = {"id": ID, "memory": TEXT, "event_id": maybe(ID), "message": maybe(WHOLE)}
KEY = {
    "id": ID, "project_id": ID, "name": TEXT, "prefix": TEXT, "scope": TEXT, "member": maybe(TEXT),
    "created_by": maybe(ID), "created_at": TIME, "expires_at": maybe(TIME),
    "revoked_at": maybe(TIME),
}  # fmt: skip
USER_TOKEN = {
    "id": ID, "user_id": TEXT, "rights": many(TEXT), "created_at": TIME, "expires_at": TIME,
}  # fmt: skip
WEBHOOK = {
    "webhook_id": ID, "name": TEXT, "url": TEXT, "event_types": many(TEXT), "owner": ID,
    "project": ID, "is_active": FLAG, "disabled_reason": maybe(TEXT), **DATES,
}  # fmt: skip
RELATION = {
    "id": ID, "source": TEXT, "source_id": ID, "source_type": TEXT, "relationship": TEXT,
    "target": TEXT, "target_id": ID, "target_type": TEXT, "valid_from": TIME,
    "valid_to": maybe(TIME), "created_at": TIME, "expired_at": maybe(TIME), "memory_id": maybe(ID),
    "conflict_id": maybe(ID), "event_id": ID,
}  # fmt: skip
OSS_RESULT = some(
    fields(id=ID, memory=TEXT, event=one_of("ADD", "UPDATE", "DELETE")), previous_memory=maybe(TEXT)
)
OSS_DELETED = fields(message=TEXT, event_id=ID)
# Of a memory only the ids that it has, as the open-source server answers.
OSS_MEMORY = some(
    fields(id=ID, memory=TEXT, hash=TEXT, metadata=maybe(OBJECT), **DATES),
    user_id=TEXT, agent_id=TEXT, app_id=TEXT, run_id=TEXT, role=TEXT, expiration_date=DATE,
)  # fmt: skip
COUNTERS = (
    "total_memories", "total_add_events", "total_retrieval_events", "total_api_retrieval_events",
    "total_retrieval_events_limit", "total_users_with_memories", "total_agents_with_memories",
    "total_runs_with_memories", "memories_per_user", "memories_per_agent", "memories_per_run",
    "accepted", "succeeded", "failed", "cancelled", "pending", "running",
)  # fmt: skip

COMPONENTS: Mapping[str, Schema] = {
    "Memory": fields(**STATED),
    "OssMemory": OSS_MEMORY,
    "OssHit": some(OSS_MEMORY, score=NUMBER, score_details=OBJECT),
    "OssHistory": fields(
        id=ID, memory_id=ID, old_memory=maybe(TEXT), new_memory=maybe(TEXT), event=TEXT, **DATES,
        is_deleted=FLAG, actor_id=maybe(TEXT), role=maybe(TEXT),
    ),
    "OssEntity": fields(
        id=TEXT, type=one_of("user", "agent", "run"), total_memories=WHOLE, **DATES
    ),
    # With `fields` in the request, all other fields are left out.
    "MemoryRow": some(fields(id=ID), **STATED),
    "MemoryOfOwner": fields(**STATED, input=many(ref("Message")), is_updated=FLAG),
    "Turn": fields(**TURN),
    "Hit": some(
        fields(id=ID), type=one_of("fact", "turn"), **TURN, context=many(ref("Turn")), **SCORED
    ),
    "Message": some(fields(role=TEXT, content=TEXT), name=maybe(TEXT)),
    "Relation": fields(**RELATION, path=many(fields(**RELATION))),
    "SearchAnswer": some(
        fields(
            results=many(ref("Hit")), relations=many(ref("Relation")), degraded=FLAG,
            degraded_parts=many(one_of("meaning", "words", "relations", "rerank")), incomplete=FLAG,
            pending=maybe(WHOLE), reranked=FLAG,
        ),
        bounded_parts=many(one_of("words")), truncated=FLAG,
        cut=fields(left_out=WHOLE, first_rank=WHOLE, reason=TEXT),
        not_reranked=TEXT, explanation=many(ref("Explanation")), context=TEXT,
        context_sources=many(ID), context_tokens=WHOLE, after_event_status=STATUS,
        after_event_ended=FLAG,
    ),
    "Explanation": some(
        fields(id=ID, verdict=TEXT, detail=TEXT, rank=maybe(WHOLE), score=maybe(NUMBER)),
        score_breakdown=OBJECT,
    ),
    "ReceiptLine": some(
        fields(
            id=maybe(ID), event=one_of("ADD", "UPDATE", "DELETE", "NOOP"), memory=maybe(TEXT),
            data=fields(memory=maybe(TEXT)), old_memory=maybe(TEXT), reason=maybe(TEXT),
            message=maybe(WHOLE),
        ),
        suggestion_id=ID, conflict_id=ID, profile_fields=many(TEXT),
    ),
    "Suggestion": fields(
        id=ID, kind=one_of("UPDATE", "DELETE", "COMBINE", "RESOLVE"),
        state=one_of("OPEN", "ACCEPTED", "REJECTED", "DISMISSED", "INVALID"), origin=TEXT,
        event_id=maybe(ID), fact=maybe(TEXT), targets=many(fields(memory_id=ID, version=WHOLE)),
        changes=many(fields(
            memory_id=ID, before=maybe(TEXT), after=maybe(TEXT), merged_into=maybe(ID),
            lost=many(TEXT),
        )),
        sources=many(fields(
            memory_id=ID, said_at=maybe(TIME), speaker=maybe(TEXT), quote=maybe(TEXT)
        )),
        proposed_text=maybe(TEXT), reason=TEXT, created_at=TIME, decided_at=maybe(TIME),
        decided_by=maybe(TEXT), decision_event_id=maybe(ID),
    ),
    "Conflict": fields(
        id=ID, state=one_of("OPEN", "RESOLVED"), slot=TEXT, question=maybe(TEXT),
        memories=many(fields(
            memory_id=ID, memory=maybe(TEXT), speaker=maybe(TEXT), said_at=TIME, standing=FLAG
        )),
        event_id=ID, resolution=maybe(one_of("ONE", "BOTH", "TEXT")),
        resolution_event_id=maybe(ID), created_at=TIME, resolved_at=maybe(TIME),
    ),
    "CuratorRun": fields(
        id=ID, status=one_of("QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"),
        origin=one_of("request", "schedule"), steps=WHOLE, suggested=WHOLE, dropped=WHOLE,
        malformed=WHOLE, limits=fields(suggestions=WHOLE, tokens=WHOLE),
        usage=fields(model=maybe(TEXT), **PAID), code=maybe(TEXT), note=maybe(TEXT),
        created_at=TIME, completed_at=maybe(TIME),
    ),
    "Decided": fields(
        decided=WHOLE, results=many(fields(id=ID, event_id=maybe(ID), error=maybe(TEXT)))
    ),
    "GraphEntity": fields(
        id=ID, name=TEXT, type=TEXT, qualifier=maybe(TEXT), mentions=WHOLE, merged_into=maybe(ID),
        merge_reason=maybe(TEXT), merged_at=maybe(TIME), members=many(fields(id=ID, name=TEXT)),
        created_at=TIME,
    ),
    "GraphRow": either(
        fields(
            kind=one_of("entity"), id=ID, name=TEXT, type=TEXT, qualifier=maybe(TEXT),
            mentions=WHOLE, created_at=TIME, merged_into=maybe(ID), merge_reason=maybe(TEXT),
            merged_at=maybe(TIME),
        ),
        fields(
            kind=one_of("relation"), id=ID, source_id=ID, relationship=TEXT, target_id=ID,
            valid_from=TIME, valid_to=maybe(TIME), created_at=TIME, expired_at=maybe(TIME),
            memory_id=maybe(ID), event_id=ID, ended_by=maybe(ID),
        ),
    ),
    "GraphLine": fields(
        event=one_of("ADD", "UPDATE", "INVALIDATE", "NOOP"), source=TEXT, relationship=TEXT,
        target=TEXT, reason=TEXT, relation_id=maybe(ID), memory_id=maybe(ID), message=WHOLE,
    ),
    "Omitted": OBJECT,
    "Queued": some(fields(event_id=ID, status=STATUS), ignored=many(TEXT), warning=TEXT),
    "QueuedLine": some(
        fields(message=TEXT, event_id=ID, status=STATUS), ignored=many(TEXT), warning=TEXT
    ),
    "Stored": some(
        fields(event_id=ID, status=STATUS, results=many(ref("ReceiptLine"))),
        message=TEXT, omitted=many(ref("Omitted")), ignored=many(TEXT), warning=TEXT,
    ),
    "Event": fields(
        id=ID, event_type=TEXT, status=STATUS, results=many(ref("ReceiptLine")), note=maybe(TEXT),
        omitted=many(ref("Omitted")), error=maybe(TEXT), code=maybe(TEXT),
        graph_status=maybe(one_of("SUCCEEDED", "PARTIAL", "FAILED")), graph_detail=maybe(TEXT),
        graph=maybe(many(ref("GraphLine"))), stage=maybe(TEXT),
        waiting=maybe(ref("Waiting")),
        usage=ref("Usage"), stages=many(ref("StageRun")), prompts=OBJECT,
        mode=maybe(TEXT), mode_reason=maybe(TEXT), truncated=FLAG,
        payload=fields(messages=many(OBJECT), **IDS, options=OBJECT), metadata=maybe(OBJECT),
        **DATES, started_at=maybe(TIME), completed_at=maybe(TIME), replays=WHOLE,
        replayed_at=maybe(TIME), undone_at=maybe(TIME), latency=maybe(NUMBER),
    ),
    "Waiting": fields(code=TEXT, cause=maybe(TEXT), until=maybe(TIME)),
    "Usage": fields(
        models=many(TEXT), **PAID, batch=maybe(fields(id=ID, events=WHOLE, **PAID))
    ),
    "StageRun": fields(
        stage=TEXT, model=maybe(TEXT), prompt=maybe(TEXT), ms=NUMBER, calls=WHOLE, tokens=WHOLE,
        code=maybe(TEXT), finished_at=TIME,
    ),
    "Undone": fields(
        event_id=ID, undone_at=maybe(TIME), removed=many(ID), restored=many(ID),
        skipped=many(fields(id=ID, reason=TEXT)), relations=fields(removed=WHOLE, restored=WHOLE),
    ),
    "History": fields(
        id=ID, memory_id=ID, **IDS, session_id=maybe(TEXT), input=many(ref("Message")),
        old_memory=maybe(TEXT), new_memory=TEXT, event=TEXT, reason=maybe(TEXT),
        event_id=maybe(ID), metadata=maybe(OBJECT), categories=many(TEXT), version=WHOLE,
        who=some(
            fields(type=one_of("event", "api", "undo", "replay", "suggestion")),
            event_id=ID, key=maybe(TEXT), suggestion_id=ID, replay_id=ID,
        ),
        said_at=TIME, valid_from=TIME, stored_at=TIME, **DATES,
    ),
    "ChangeBetween": fields(
        id=ID, change=one_of("added", "changed", "gone"), before=maybe(ref("Memory")),
        after=maybe(ref("Memory")), diff=maybe(TEXT),
    ),
    "Feedback": fields(id=ID, feedback=maybe(TEXT), feedback_reason=maybe(TEXT)),
    "Entity": fields(**OWNER),
    "Registered": some(
        fields(**OWNER | {"id": WHOLE}, project=WHOLE, is_deleted=FLAG, graph_entities=ANY),
        **IDS,
    ),
    "Done": fields(message=TEXT),
    "Deleted": some(fields(message=TEXT), cascade_count=WHOLE),
    "Started": fields(message=TEXT, event_id=ID),
    "WouldDelete": fields(
        dry_run=FLAG, note=TEXT, cancelled=WHOLE, results=many(ref("ReceiptLine"))
    ),
    "WouldAccept": fields(dry_run=FLAG, note=TEXT, results=many(ref("ReceiptLine"))),
    "PrivateRun": fields(
        run_id=TEXT, privacy=one_of("temporary", "incognito"), expires_at=maybe(TIME),
        erasure_event_id=ID, created_at=TIME,
    ),
    "Erasing": fields(message=TEXT, event_id=ID, status=STATUS),
    "Profile": fields(
        profile=OBJECT,
        status=one_of("succeeded", "pending", "failed", "not_enabled", "insufficient_data"),
        entity_type=one_of("user"), entity_id=TEXT, updated_at=maybe(TIME), generation_count=WHOLE,
        stale=FLAG, event_id=maybe(ID), error=maybe(TEXT),
        fields=many(fields(name=TEXT, memory_ids=many(ID), stored_at=TIME)),
    ),
    "ProfileSettings": fields(
        enabled=FLAG, capabilities=OBJECT,
        entities=fields(user=fields(schema=maybe(OBJECT), custom_instructions=maybe(TEXT))),
    ),
    "ProfileJobStarted": some(
        fields(
            job_id=ID, status=JOB_STATUS, status_url=TEXT, operation=one_of("trigger", "sample"),
            entity_type=one_of("user"), entity_count_reserved=WHOLE, event_id=maybe(ID),
            replayed=FLAG,
        ),
        sampled=WHOLE, entity_ids=many(TEXT),
    ),
    "ProfileJob": fields(
        id=ID, operation=one_of("trigger", "sample"), entity_type=one_of("user"),
        status=JOB_STATUS, total=WHOLE, enumeration_complete=FLAG, completed=WHOLE,
        succeeded=WHOLE, failed=WHOLE, skipped=WHOLE, event_ids=many(ID),
    ),
    "ErasureReceipt": fields(
        event_id=ID, entity_type=TEXT, status=STATUS, erased=OBJECT, created_at=TIME,
        completed_at=maybe(TIME),
    ),
    "Exported": fields(message=TEXT, id=ID),
    "NotReady": fields(message=TEXT, id=ID, status=STATUS),
    "Replay": fields(**REPLAY),
    "Switched": fields(**REPLAY, removed=WHOLE, adopted=WHOLE, kept=WHOLE),
    "Remembered": fields(**REMEMBERED),
    "Edge": fields(source=TEXT, relationship=TEXT, target=TEXT),
    "Difference": fields(
        counts=OBJECT, changed=many(fields(**REMEMBERED, becomes=ref("Remembered"))),
        only_live=many(ref("Remembered")), only_replay=many(ref("Remembered")),
        relations_added=many(ref("Edge")), relations_removed=many(ref("Edge")),
        edits_lost=many(fields(**REMEMBERED, edit=one_of("UPDATE", "DELETE"))),
    ),
    "Member": fields(user_id=TEXT, username=TEXT, email=TEXT, role=TEXT, created_at=TIME),
    "Members": fields(members=many(ref("Member"))),
    "Organization": fields(
        org_id=ID, name=TEXT, members=many(ref("Member")), is_default=FLAG, is_owner=FLAG,
        user_role=TEXT, byok_enabled=FLAG, invitations=many(ANY), owner_pricing_plan=TEXT, **DATES,
    ),
    "Project": fields(
        project_id=ID, org_id=ID, name=TEXT, description=TEXT, custom_instructions=TEXT,
        agent_custom_instructions=maybe(TEXT), custom_categories=many(OBJECT),
        inclusion_prompt=maybe(TEXT), exclusion_prompt=maybe(TEXT), multilingual=FLAG, decay=FLAG,
        default_cut=FLAG,
        memory_depth=TEXT, usecase=maybe(TEXT), user_role=TEXT, enable_graph=FLAG, version=TEXT,
        is_default=FLAG, members=many(ref("Member")), mode=TEXT, budget=maybe(OBJECT),
        curator=maybe(OBJECT), gather=maybe(OBJECT), graph_types=maybe(OBJECT),
        custom_attributes=maybe(OBJECT),
        tamper_evidence=FLAG, **DATES,
    ),
    "Key": fields(**KEY),
    "NewKey": fields(**KEY, key=TEXT),
    "AuditEntry": fields(
        id=WHOLE, at=TIME, key_id=ID, key=maybe(TEXT), member=maybe(TEXT), user_token_id=maybe(ID),
        action=TEXT, target=maybe(ID), status=maybe(WHOLE),
    ),
    "UserToken": fields(**USER_TOKEN),
    "NewUserToken": fields(**USER_TOKEN, token=TEXT),
    "UserDownload": fields(user_id=TEXT, memories=many(ref("Memory")), messages=many(OBJECT)),
    "Webhook": fields(**WEBHOOK),
    "NewWebhook": fields(**WEBHOOK, secret=TEXT),
    "Delivery": fields(
        id=ID, event_type=TEXT, state=TEXT, attempts=WHOLE, next_try_at=maybe(TIME),
        status_code=maybe(WHOLE), error=maybe(TEXT), created_at=TIME, ended_at=maybe(TIME),
    ),
    "SummaryVersion": fields(
        version=WHOLE, summary=TEXT, current=FLAG, messages=WHOLE, model=TEXT, prompt=TEXT,
        created_at=TIME,
    ),
    "SummaryState": fields(
        messages=WHOLE, tokens=WHOLE, due_at=maybe(TIME), reason=maybe(TEXT)
    ),
    "Stats": fields(
        **dict.fromkeys(COUNTERS, WHOLE), oldest_in_flight_s=NUMBER, identity=FLAG,
        usage=fields(
            **PAID, models=many(fields(model=TEXT, **PAID)), days=many(fields(day=DATE, **PAID))
        ),
    ),
}  # fmt: skip

ORGS = "/api/v1/orgs/organizations/"
ORG = ORGS + "{org_id}/"
PROJECT = ORG + "projects/{project_id}/"
HOOKS = "/api/v1/webhooks/"
EVENT = "/v1/event/{event_id}/"
NODE = "/v1/graph/entities/{node_id}/"
OF_ENTITY = "{entity_type}/{entity_id}/"
REPLAYS = "/v1/replays/{replay_id}/"
MEMORIES = many(ref("MemoryRow"))
SEARCH_ROWS = either(many(ref("Hit")), ref("SearchAnswer"))

# Schema of the 2xx response, by method and path.
ANSWERS: Mapping[str, Schema] = {
    "POST /v3/memories/add/": either(ref("Stored"), ref("Queued")),
    "POST /v1/memories/": either(
        many(either(ref("ReceiptLine"), ref("QueuedLine"))),
        fields(results=many(either(ref("ReceiptLine"), ref("QueuedLine"))), relations=many(ANY)),
    ),
    "GET /v1/memories/": either(MEMORIES, page("MemoryRow")),
    "PUT /v1/runs/{run_id}/": ref("PrivateRun"),
    "GET /v1/runs/{run_id}/": ref("PrivateRun"),
    "GET /v1/verify/": fields(
        ok=FLAG,
        enabled=FLAG,
        state=TEXT,
        counter=WHOLE,
        sealed=WHOLE,
        waiting=WHOLE,
        faults=many(
            fields(
                problem=TEXT,
                kind=TEXT,
                id=maybe(ID),
                number=maybe(WHOLE),
                lane_id=maybe(ID),
            )
        ),
        next=maybe(TEXT),
    ),
    "GET /v1/verify/heads/": fields(
        project_id=ID,
        results=many(
            fields(
                number=WHOLE,
                counter=WHOLE,
                lanes=WHOLE,
                root=TEXT,
                sealed_until=maybe(TIME),
                created_at=TIME,
                valid=FLAG,
            )
        ),
    ),
    "DELETE /v1/memories/": either(ref("Started"), ref("WouldDelete")),
    "POST /v2/memories/": either(MEMORIES, page("MemoryRow")),
    "POST /v3/memories/": some(
        page("MemoryRow"), after_event_status=STATUS, after_event_ended=FLAG
    ),
    "POST /v1/memories/search/": SEARCH_ROWS,
    "POST /v2/memories/search/": SEARCH_ROWS,
    "POST /v3/memories/search/": ref("SearchAnswer"),
    "GET /v1/memories/events/": page("History"),
    "GET /v1/memories/{memory_id}/": ref("Memory"),
    "PUT /v1/memories/{memory_id}/": ref("Memory"),
    "DELETE /v1/memories/{memory_id}/": ref("Deleted"),
    "GET /v1/memories/{memory_id}/history/": many(ref("History")),
    "POST /memories/": fields(results=many(OSS_RESULT), event_id=ID, status=STATUS),
    "GET /memories/": fields(results=many(ref("OssMemory"))),
    "POST /search/": fields(results=many(ref("OssHit"))),
    "GET /memories/{memory_id}/": maybe(ref("OssMemory")),
    "PUT /memories/{memory_id}/": fields(message=TEXT),
    "DELETE /memories/{memory_id}/": fields(message=TEXT),
    "GET /memories/{memory_id}/history/": many(ref("OssHistory")),
    "DELETE /memories/": OSS_DELETED,
    "GET /entities/": many(ref("OssEntity")),
    "DELETE /entities/{entity_type}/{entity_id}/": OSS_DELETED,
    "POST /reset/": OSS_DELETED,
    "POST /v1/memories/{memory_id}/restore/": ref("Memory"),
    "GET /v1/changes/": page(
        "ChangeBetween", counts=fields(added=WHOLE, changed=WHOLE, gone=WHOLE), incomplete=FLAG
    ),
    "GET /v1/memories/" + OF_ENTITY: page("MemoryOfOwner"),
    "POST /v1/feedback/": ref("Feedback"),
    "PUT /v1/batch/": ref("Done"),
    "DELETE /v1/batch/": ref("Done"),
    "GET /v1/graph/": page("Relation", incomplete=FLAG),
    "GET /v1/graph/export/": page("GraphRow"),
    "GET " + NODE: ref("GraphEntity"),
    "PUT " + NODE: ref("GraphEntity"),
    "DELETE " + NODE: fields(message=TEXT, relations=WHOLE),
    "POST " + NODE + "merge/": ref("GraphEntity"),
    "POST " + NODE + "split/": ref("GraphEntity"),
    "GET /v1/entities/": page(
        "Entity",
        **dict.fromkeys(("total_users", "total_agents", "total_apps", "total_runs"), WHOLE),
    ),
    "GET /v1/entities/filters/": fields(
        event_type=many(TEXT), categories=many(TEXT), users=many(TEXT), parameters=many(OBJECT)
    ),
    "GET /v2/entities/" + OF_ENTITY: many(ref("Entity")),
    "DELETE /v1/entities/" + OF_ENTITY: ref("Started"),
    "DELETE /v2/entities/" + OF_ENTITY: ref("Started"),
    "POST /v1/users/": ref("Registered"),
    "POST /v1/agents/": ref("Registered"),
    "POST /v1/apps/": ref("Registered"),
    "POST /v1/runs/": ref("Registered"),
    "POST /v1/exports/": ref("Exported"),
    "POST /v1/exports/get/": OBJECT,
    "POST /v1/summary/": either(fields(summary=maybe(TEXT)), ref("NotReady")),
    "GET /v2/entities/user/{entity_id}/profile/": ref("Profile"),
    "POST /v2/profiles/jobs/": ref("ProfileJobStarted"),
    "GET /v2/profiles/jobs/{job_id}/": fields(job=ref("ProfileJob")),
    "GET /v2/profiles/settings/": ref("ProfileSettings"),
    "POST /v2/profiles/settings/": ref("ProfileSettings"),
    "POST /v1/erasures/": ref("Erasing"),
    "GET /v1/erasures/{event_id}/": ref("ErasureReceipt"),
    "GET " + EVENT: ref("Event"),
    "GET /v1/events/": page("Event"),
    f"POST {EVENT}cancel/": ref("Event"),
    f"POST {EVENT}replay/": ref("Event"),
    f"POST {EVENT}undo/": ref("Undone"),
    "POST /v1/events/replay/": fields(replayed=WHOLE, event_ids=many(ID)),
    "GET /v1/summaries/": page("SummaryVersion", pending=ref("SummaryState")),
    "GET /v1/suggestions/": page("Suggestion"),
    "GET /v1/suggestions/{suggestion_id}/": ref("Suggestion"),
    "POST /v1/suggestions/{suggestion_id}/accept/": either(ref("Suggestion"), ref("WouldAccept")),
    "POST /v1/suggestions/{suggestion_id}/reject/": ref("Suggestion"),
    "POST /v1/suggestions/{suggestion_id}/dismiss/": ref("Suggestion"),
    "POST /v1/suggestions/decide/": ref("Decided"),
    "GET /v1/conflicts/": page("Conflict"),
    "GET /v1/conflicts/{conflict_id}/": ref("Conflict"),
    "POST /v1/conflicts/{conflict_id}/resolve/": ref("Conflict"),
    "GET /v1/curator/runs/": page("CuratorRun"),
    "POST /v1/curator/runs/": ref("CuratorRun"),
    "GET /v1/curator/runs/{curator_run_id}/": ref("CuratorRun"),
    "POST /v1/curator/runs/{curator_run_id}/cancel/": ref("CuratorRun"),
    "GET /v1/replays/": page("Replay"),
    "POST /v1/replays/": ref("Replay"),
    "GET " + REPLAYS: ref("Replay"),
    "DELETE " + REPLAYS: ref("Done"),
    f"GET {REPLAYS}diff/": ref("Difference"),
    f"POST {REPLAYS}switch/": ref("Switched"),
    "GET " + ORGS: many(ref("Organization")),
    "POST " + ORGS: fields(message=TEXT, key=TEXT, org_id=ID, project_id=ID),
    "GET " + ORG: ref("Organization"),
    "DELETE " + ORG: ref("Done"),
    f"GET {ORG}members/": ref("Members"),
    f"POST {ORG}members/": ref("Done"),
    f"PUT {ORG}members/": ref("Done"),
    f"DELETE {ORG}members/": ref("Done"),
    f"GET {ORG}projects/": many(ref("Project")),
    f"POST {ORG}projects/": fields(message=TEXT, project_id=ID),
    "GET " + PROJECT: ref("Project"),
    "PATCH " + PROJECT: ref("Done"),
    "DELETE " + PROJECT: ref("Done"),
    f"GET {PROJECT}members/": ref("Members"),
    f"POST {PROJECT}members/": ref("Done"),
    f"PUT {PROJECT}members/": ref("Done"),
    f"DELETE {PROJECT}members/": ref("Done"),
    "GET /v1/keys/": fields(results=many(ref("Key"))),
    "POST /v1/keys/": ref("NewKey"),
    "GET /v1/audit/": fields(next=maybe(WHOLE), results=many(ref("AuditEntry"))),
    "POST /v1/user-tokens/": ref("NewUserToken"),
    "GET /v1/user-tokens/": fields(results=many(ref("UserToken"))),
    "DELETE /v1/user-tokens/": fields(message=TEXT, revoked=WHOLE),
    "DELETE /v1/user-tokens/{token_id}/": ref("Done"),
    "GET /v1/users/{user_id}/download/": ref("UserDownload"),
    "GET /v1/transfer/export/": TEXT,
    "POST /v1/transfer/import/": either(
        fields(events=many(fields(event_id=ID, lines=WHOLE))),
        fields(dry_run=FLAG, new=OBJECT, stored=OBJECT),
    ),
    "DELETE /v1/keys/{key_id}/": ref("Done"),
    f"GET {HOOKS}projects/{{project_id}}/": many(ref("Webhook")),
    f"POST {HOOKS}projects/{{project_id}}/": ref("NewWebhook"),
    f"PUT {HOOKS}{{webhook_id}}/": ref("Done"),
    f"DELETE {HOOKS}{{webhook_id}}/": ref("Done"),
    f"GET {HOOKS}{{webhook_id}}/deliveries/": page("Delivery"),
    f"POST {HOOKS}{{webhook_id}}/deliveries/{{delivery_id}}/redeliver/": ref("Done"),
    "POST /v1/console/links/": fields(url=TEXT, expires_in_s=WHOLE),
    "GET /v1/ping/": fields(status=TEXT, org_id=ID, project_id=ID, user_email=TEXT),
    "GET /v1/stats/": ref("Stats"),
    "GET /livez": fields(status=TEXT),
    "GET /healthz": fields(status=TEXT),
    "GET /readyz": fields(status=TEXT, ledger=TEXT, vectors=TEXT, model=TEXT),
}
# Operations that answer 202 if the result is not ready in time.
LATER = ("POST /v1/exports/get/", "POST /v1/summary/")
# Media types of responses that are not JSON.
TEXTS = {
    f"GET {EVENT}stream/": "text/event-stream",
    "GET /metrics": "text/plain",
    "GET /v1/transfer/export/": "application/x-ndjson",
}
