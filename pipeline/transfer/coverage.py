"""Every table, and the lines of an export that have its rows, or the reason why none has."""

from __future__ import annotations

from collections.abc import Mapping

WITH_KEYS = "access: a server makes its own"
DERIVED = "derived: the import or the server makes it again"
OPERATION = "operation of this server, not content"
GENERATED = "generated from the memories: the new server does that again"
OPEN_WORK = "open work, which the next run finds again"

# Table -> type of the lines that have its rows.
EXPORTED: Mapping[str, str] = {
    "conflict_members": "conflict",
    "conflicts": "conflict",
    "entities": "entity",
    "events": "event",
    "feedback": "memory",
    "graph_receipts": "event",
    "memories": "memory",
    "memory_history": "memory",
    "messages": "event",
    "owners": "owner",
    "past_states": "memory",
    "receipts": "event",
    "relations": "relation",
    "summaries": "summary",
}
# Table -> reason why an export does not have its rows.
LEFT_OUT: Mapping[str, str] = {
    "answer_sources": "sources of answers, which are left out",
    "api_keys": WITH_KEYS,
    "audit_entries": "the log of this server's keys",
    "book_entries": DERIVED,
    "books": DERIVED,
    "cleared_lanes": "turns that a delete_all hid; they are left out",
    "console_sessions": WITH_KEYS,
    "compactions": OPERATION,
    "cooldowns": OPERATION,
    "curator_runs": OPEN_WORK,
    "curator_steps": OPEN_WORK,
    "erasures": "receipts of erasures, which have no content",
    "event_costs": "costs of this server's model calls",
    "failed_runs": "costs of this server's model calls",
    "graph_mirrors": OPERATION,
    "graph_outbox": OPERATION,
    "idempotency_keys": OPERATION,
    "kept_answers": "answers of models to dry runs, kept for an hour",
    "lanes": DERIVED,
    "members": WITH_KEYS,
    "memory_accesses": "numbers of this server's searches",
    "memory_reads": "a sample of this server's searches",
    "organizations": WITH_KEYS,
    "private_runs": "temporary and incognito runs are never exported",
    "profile_fields": GENERATED,
    "profile_jobs": GENERATED,
    "profiles": GENERATED,
    "projects": "settings of a project",
    "queue_samples": OPERATION,
    "rebuilt": OPERATION,
    "saved_views": "views of this server's console",
    "seal_buckets": "seals of this server: the new one seals the imported rows",
    "seal_checkpoints": "seals of this server: the new one seals the imported rows",
    "seal_heads": "seals of this server: the new one seals the imported rows",
    "seal_projects": "seals of this server: the new one seals the imported rows",
    "seal_queue": "seals of this server: the new one seals the imported rows",
    "seals": "seals of this server: the new one seals the imported rows",
    "shadows": "replays that are not switched to",
    "stage_runs": "outputs and costs of stages, deleted after the retention time",
    "suggestions": OPEN_WORK,
    "summary_states": DERIVED,
    "term_cuts": OPERATION,
    "own_collections": DERIVED,
    "turn_vectors": DERIVED,
    "usage_daily": "costs of this server's model calls",
    "user_tokens": WITH_KEYS,
    "vector_collections": DERIVED,
    "vector_indexes": DERIVED,
    "webhook_deliveries": OPERATION,
    "webhooks": "settings of a project",
}
