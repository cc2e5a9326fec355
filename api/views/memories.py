"""Answers as clients read them: domain values in, JSON-ready dicts out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any
from uuid import UUID, uuid5

from pipeline.accounting.balance import Accounts
from pipeline.accounting.costs import Paid, Spending, total
from pipeline.domain.events import Status
from pipeline.domain.memories import Memory
from pipeline.domain.passages import Turn
from pipeline.domain.scope import Scope
from pipeline.domain.tenants import ProjectId
from pipeline.events.store import EventView, Progress, ReceiptLine, StageRun
from pipeline.events.undo import Undone
from pipeline.graph.store import RelationView
from pipeline.memories.history import HistoryEntry
from pipeline.search.explain import MEANING, Explained
from pipeline.search.fusion import Score
from pipeline.search.prompt_context import assemble
from pipeline.search.service import Found, Hit
from pipeline.tenants.owners import Owner
from pipeline.tenants.projects import Project

# Characters of text in the results of a search.
LONGEST_ANSWER = 4_000_000
# Of what was spent each day.
DAYS_SHOWN = 31
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def memory(found: Memory) -> dict[str, Any]:
    # Both run_id and session_id: the clients' lines disagree on the name.
    return {
        "id": str(found.id),
        "memory": found.text,
        **scope_ids(found.scope),
        "session_id": found.scope.run_id,
        "metadata": found.metadata or None,
        "categories": list(found.categories),
        "structured_attributes": attributes(found.valid_from),
        "immutable": found.immutable,
        "expiration_date": found.expiration_date,
        "attributed_to": found.attributed_to,
        "event_id": str(found.event_id) if found.event_id else None,
        "version": found.version,
        "timestamp": found.valid_from,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        # A change keeps a memory's id, so whatever is read is the newest of its line.
        "lifecycle_state": "active",
        "replaced_by": None,
        "synthesized": False,
    }


def attributes(at: datetime) -> dict[str, Any]:
    """The parts of a memory's time (UTC), as the Mem0 Platform names them."""
    at = at.astimezone(UTC)
    _, week, weekday = at.isocalendar()
    return {
        "year": at.year,
        "month": at.month,
        "day": at.day,
        "hour": at.hour,
        "minute": at.minute,
        "quarter": (at.month + 2) // 3,
        "week_of_year": week,
        "day_of_year": at.timetuple().tm_yday,
        "day_of_week": DAYS[weekday - 1],
        "is_weekend": weekday > 5,
    }


def only(row: dict[str, Any], fields: list[str] | None) -> dict[str, Any]:
    """The fields asked for, and always the id; of metadata, the keys that are named after a dot."""
    if not fields:
        return row
    kept = {key: row[key] for key in row if key in ("id", *fields)}
    inside = [name.removeprefix("metadata.") for name in fields if name.startswith("metadata.")]
    if inside and "metadata" not in kept:
        held = row["metadata"] or {}
        kept["metadata"] = {key: held[key] for key in inside if key in held} or None
    return kept


def owner(found: Owner, project: Project) -> dict[str, Any]:
    """`name` is the id, for clients delete by it; what somebody is called is `display_name`."""
    return {
        "id": found.id,
        "name": found.id,
        "display_name": found.name,
        "type": found.kind,
        "owner": str(project.id),
        "metadata": found.metadata or None,
        "total_memories": found.memories,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def registered(found: Owner, project: Project) -> dict[str, Any]:
    """An entity as registering it answers: its id is a number there, its name what it is called."""
    return owner(found, project) | {
        "id": number(project.id, found.kind, found.id),
        f"{found.kind}_id": found.id,
        "name": found.name,
        "metadata": found.metadata,
        "project": number(project.id, "project", str(project.id)),
        "is_deleted": False,
        "graph_entities": None,
    }


def number(project_id: ProjectId, kind: str, owner_id: str) -> int:
    """A number that stands for an entity: 48 bits of a hash, exact in every JSON reader."""
    key = f"{project_id}:{kind}:{owner_id}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=6).digest(), "big")


def parameter(name: str) -> dict[str, Any]:
    """A filter as a form shows it."""
    label = name.removesuffix("_id").capitalize() + " ID"
    return {"name": name, "label": label, "type": "text", "placeholder": label, "options": []}


def turn(found: Turn) -> dict[str, Any]:
    """A message as it was said, in a memory's keys: every client can read it."""
    return {
        "id": str(found.id),
        "memory": found.text,
        **scope_ids(found.scope),
        "session_id": found.scope.run_id,
        "metadata": found.metadata or None,
        "categories": [],
        "structured_attributes": attributes(found.said_at),
        "immutable": True,
        "expiration_date": None,
        "attributed_to": found.role,
        "speaker": found.speaker,
        "event_id": str(found.event_id),
        "version": 1,
        "pending": found.pending,
        "timestamp": found.said_at,
        "created_at": found.created_at,
        "updated_at": found.created_at,
        "lifecycle_state": "active",
        "replaced_by": None,
        "synthesized": False,
    }


def hit(found: Hit) -> dict[str, Any]:
    match found.found:
        case Turn() as said:
            passage = {"type": "turn"} | turn(said)
        case stored:
            passage = {"type": "fact"} | memory(stored)
    if found.around:
        passage["context"] = [turn(one) for one in found.around]
    return passage | scored(found.score)


def search(
    found: Found, *, max_tokens: int | None = None, fields: list[str] | None = None
) -> dict[str, Any]:
    hits = _within(found.hits)
    answer: dict[str, Any] = {
        "results": [only(hit(one), fields) for one in hits],
        "relations": [relation(one) for one in found.relations],
        "degraded": found.degraded,
        "incomplete": found.incomplete,
        "pending": found.pending,
        "reranked": found.reranked,
    }
    if len(hits) < len(found.hits):
        answer["truncated"] = True
    if found.not_reranked:
        answer["not_reranked"] = found.not_reranked
    if found.explained:
        answer["explanation"] = [explained(one) for one in found.explained]
    if max_tokens is not None:
        told = assemble([hit.found for hit in found.hits], max_tokens=max_tokens)
        answer |= {
            "context": told.text,
            "context_sources": [str(one.id) for one in told.sources],
            "context_tokens": told.tokens,
        }
    return answer


def _within(hits: Sequence[Hit]) -> Sequence[Hit]:
    """The first hits whose texts, with the turns around them, fit an answer; at least one."""
    sizes = ((len(hit.found.text) + sum(len(turn.text) for turn in hit.around)) for hit in hits)
    fitting = sum(1 for size in accumulate(sizes) if size <= LONGEST_ANSWER)
    return hits[: max(fitting, 1)]


def explained(found: Explained) -> dict[str, Any]:
    return {
        "id": str(found.id),
        "verdict": found.verdict,
        "detail": MEANING[found.verdict],
        "rank": found.rank,
        **(scored(found.score) if found.score else {"score": None}),
    }


def scored(score: Score) -> dict[str, Any]:
    """A score; `terms` are what each part of the fusion adds to it, `rerank` stands beside it.

    `bm25` and `entity` are the names of the Mem0 Platform: the words, and who or what is named.
    """
    breakdown = {
        "semantic": round(score.semantic, 4),
        "bm25": round(score.lexical, 4),
        "entity": round(max(score.signals.speaker, score.signals.graph), 4),
        "lexical": round(score.lexical, 4),
        "terms": {name: round(share, 4) for name, share in score.shares.items()},
    }
    if score.reranked is not None:
        breakdown["rerank"] = round(score.reranked, 4)
    return {"score": round(score.total, 4), "score_breakdown": breakdown}


def relation(found: RelationView) -> dict[str, Any]:
    return {
        "source": found.source,
        "source_type": found.source_kind,
        "relationship": found.relation,
        "target": found.destination,
        "target_type": found.destination_kind,
        "valid_from": found.valid_from,
    }


def history(entry: HistoryEntry) -> dict[str, Any]:
    return {
        "id": str(uuid5(entry.memory_id, str(entry.version))),
        "memory_id": str(entry.memory_id),
        **scope_ids(entry.scope),
        "session_id": entry.scope.run_id,
        "input": [entry.said] if entry.said else [],
        "old_memory": entry.old_text,
        "new_memory": entry.new_text or "",  # documented as a string, after a DELETE too
        "event": entry.event,
        "reason": entry.reason,
        "event_id": str(entry.event_id) if entry.event_id else None,
        "metadata": entry.metadata or None,
        "categories": list(entry.categories),
        "created_at": entry.created_at,
        "updated_at": entry.created_at,
    }


def event(found: EventView) -> dict[str, Any]:
    """An event with its receipt."""
    status = shown(found.status)
    return {
        "id": str(found.id),
        "event_type": found.event_type,
        "status": status,
        "results": [receipt_line(line) for line in found.receipt],
        "note": found.note,
        "omitted": found.omitted,
        "error": found.failure_detail or found.failure_code if status is Status.FAILED else None,
        "code": found.failure_code,
        "graph_status": found.graph_status,
        "stage": found.stage,
        "waiting": waiting(found.wait_code, found.wait_cause, found.wait_until),
        "usage": usage(found),
        "stages": [stage(run) for run in found.stages],
        "truncated": found.truncated,
        "payload": {"messages": found.messages, **scope_ids(found.scope), "options": found.options},
        "metadata": found.options.get("metadata") or None,
        "created_at": found.created_at,
        "updated_at": found.completed_at or found.started_at or found.created_at,
        "started_at": found.started_at,
        "completed_at": found.completed_at,
        "replays": found.replays,
        "replayed_at": found.replayed_at,
        "undone_at": found.undone_at,
        "latency": _ms_between(found.created_at, found.completed_at),
    }


def shown(status: Status) -> Status:
    """CANCELLED is shown as FAILED: clients know no fifth status."""
    return Status.FAILED if status is Status.CANCELLED else status


def progress(found: Progress) -> dict[str, Any]:
    return {
        "status": shown(found.status),
        "stage": found.stage,
        "waiting": waiting(found.wait_code, found.wait_cause, found.wait_until),
    }


def waiting(code: str | None, cause: str | None, until: datetime | None) -> dict[str, Any] | None:
    """`until`: the next try at the latest; it comes earlier once the dependency answers a probe."""
    return {"code": code, "cause": cause, "until": until} if code else None


def undone(event_id: UUID, found: Undone) -> dict[str, Any]:
    return {
        "event_id": str(event_id),
        "undone_at": found.at,
        "removed": [str(one) for one in found.gone],
        "restored": [str(one) for one in found.back],
        "skipped": [{"id": str(one), "reason": why} for one, why in found.skipped.items()],
        "relations": {"removed": found.relations_gone, "restored": found.relations_back},
    }


def receipt_line(line: ReceiptLine) -> dict[str, Any]:
    """One fact's outcome; `memory` and `data.memory` both, for clients read one or the other."""
    return {
        "id": str(line.memory_id) if line.memory_id else None,
        "event": line.outcome,
        "memory": line.text,
        "data": {"memory": line.text},
        "old_memory": line.previous_text,
        "reason": line.reason,
        "message": line.message_ordinal,
    }


def usage(found: EventView) -> dict[str, Any]:
    """The event's own share of all that was paid for it, failed tries and replays too; the shares
    of all events add up to the bill. `batch`: what its newest batch cost, for all its events.
    """
    models = {run.model: None for run in found.stages if run.model}
    batch = {"id": str(found.batch_id), "events": found.batch_events}
    return {
        "models": list(models),
        **paid(found.paid),
        "batch": batch | paid(total(run.paid for run in found.stages)) if found.batch_id else None,
    }


def paid(amounts: Paid) -> dict[str, Any]:
    return {
        "calls": amounts.calls,
        "prompt_tokens": amounts.prompt_tokens,
        "completion_tokens": amounts.completion_tokens,
        "cost_usd": amounts.cost_usd,
    }


def spending(found: Spending) -> dict[str, Any]:
    """The sums, by model, and by day for the newest days."""
    days = list(found.days.items())[-DAYS_SHOWN:]
    return {
        **paid(found.total),
        "models": [{"model": model, **paid(amounts)} for model, amounts in found.models.items()],
        "days": [{"day": day, **paid(amounts)} for day, amounts in days],
    }


def stage(run: StageRun) -> dict[str, Any]:
    return {
        "stage": run.stage,
        "ms": round(run.ms, 1),
        "calls": run.calls,
        "tokens": run.prompt_tokens + run.completion_tokens,
        "code": run.code,
        "finished_at": run.finished_at,
    }


def stats(found: Accounts, owners: Mapping[str, int], spent: Spending) -> dict[str, Any]:
    """The names of the Mem0 clients, then the books: `identity` says that they balance."""
    kinds = ("user", "agent", "run")
    each = {kind: owners.get(kind, 0) for kind in kinds}
    return {
        "total_memories": found.memories,
        "total_add_events": found.adds,
        "total_retrieval_events": found.searches,
        "total_api_retrieval_events": found.searches,
        # No limit.
        "total_retrieval_events_limit": 0,
        **{f"total_{kind}s_with_memories": each[kind] for kind in kinds},
        # The mean, as a whole number.
        **{f"memories_per_{kind}": _mean(found.memories, each[kind]) for kind in kinds},
        "accepted": found.accepted,
        "succeeded": found.succeeded,
        "failed": found.failed,
        "cancelled": found.cancelled,
        "pending": found.pending,
        "running": found.running,
        "oldest_in_flight_s": round(found.oldest_in_flight_s, 3),
        "identity": found.balanced,
        "usage": spending(spent),
    }


def _mean(memories: int, owners: int) -> int:
    return round(memories / owners) if owners else 0


def scope_ids(scope: Scope) -> dict[str, str | None]:
    return {
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "app_id": scope.app_id,
        "run_id": scope.run_id,
    }


def _ms_between(start: datetime, end: datetime | None) -> float | None:
    return round((end - start).total_seconds() * 1000, 1) if end else None
