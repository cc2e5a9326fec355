"""A server for the tests of your own code: in the process, without a database and without a model.

    fake = FakeMemlane()
    memlane = Memlane("any key", transport=fake.transport)
    memlane.add("I live in Porto.", user_id="maya").receipt()
    assert fake.adds[0]["user_id"] == "maya"

It answers adds, events, searches, lists, and reads, changes and deletes of one memory, in the
format of the server. It understands nothing: each message of a user is stored word for word, and a
search ranks by the words that it shares with the question. Filters compare ids and metadata with
`eq`, `ne` and `in`; another condition is refused. `transport` serves every httpx client.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx

IDS = ("user_id", "agent_id", "app_id", "run_id")
# Conditions beside the filters that only the server knows.
UNKNOWN = ("categories", "keywords", "start_date", "end_date")
NO_ID = f"filters must name at least one of {', '.join(IDS)}."
# Defaults of the server.
PAGES = {"page": 1, "page_size": 100}
LARGEST_PAGE, TOP_K = 200, 10
MISSING = object()
Body = dict[str, Any]
Answer = tuple[int, Any]
Predicate = Callable[[Body], bool]


class _Refused(Exception):
    """A request that gets 400; the text is the reason."""


@dataclass(slots=True)
class _Event:
    """An accepted add, and its lines once it has ended."""

    id: str
    body: Body
    status: str = "PENDING"
    code: str | None = None
    lines: list[Body] = field(default_factory=list)

    def shown(self) -> Body:
        return {
            "id": self.id,
            "status": self.status,
            "priority": self.body.get("priority", "normal"),
            "results": self.lines,
            "code": self.code,
            "error": self.code and "The test has asked for this failure.",
            "note": None if self.lines or self.status != "SUCCEEDED" else "Nothing to remember.",
        }


class FakeMemlane:
    """The server. `adds`: the bodies of all accepted adds. `memories`: what is stored now."""

    def __init__(self) -> None:
        """Start without memories."""
        self.adds: list[Body] = []
        self.memories: dict[str, Body] = {}
        self.transport = httpx.MockTransport(self._answer)
        self._events: dict[str, _Event] = {}
        self._keys: dict[str, _Event] = {}
        self._held: deque[_Event] | None = None
        self._failures: deque[str] = deque()
        self._refusals: deque[int] = deque()

    def hold(self) -> None:
        """Leave the events of the next adds PENDING, until `release`."""
        self._held = deque()

    def release(self) -> None:
        """End the events that are held, in their order, and hold no more."""
        waiting, self._held = self._held or deque(), None
        for event in waiting:
            self._end(event)

    def fail_next(self, code: str = "LLM_UNAVAILABLE") -> None:
        """Let the next event end as FAILED with this code."""
        self._failures.append(code)

    def refuse_next(self, status: int = 503) -> None:
        """Answer the next request with this status, and do nothing."""
        self._refusals.append(status)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        """Answer a request by its route; 501 without one, 400 for a filter that is not known."""
        if self._refusals:
            status = self._refusals.popleft()
            return httpx.Response(status, json=_error("The test has asked for this refusal."))
        body = json.loads(request.content) if request.content else {}
        path = request.url.path.rstrip("/")
        for method, pattern, handle in self._routes():
            if method == request.method and (match := re.fullmatch(pattern, path)):
                key = request.headers.get("Idempotency-Key")
                try:
                    fields = {**dict(request.url.params), **body, "idempotency_key": key}
                    status, answer = handle(fields, *match.groups())
                except _Refused as refused:
                    status, answer = 400, _error(str(refused))
                return httpx.Response(status, json=answer)
        return httpx.Response(501, json=_error(f"FakeMemlane has no {request.method} {path}/."))

    def _routes(self) -> Iterator[tuple[str, str, Callable[..., Answer]]]:
        yield "POST", r"/v3/memories/add", self._add
        yield "GET", r"/v1/event/([^/]+)", self._event
        yield "POST", r"/v[123]/memories/search", self._search
        yield "POST", r"/v[23]/memories", self._list
        yield "GET", r"/v1/memories/([^/]+)", self._get
        yield "PUT", r"/v1/memories/([^/]+)", self._update
        yield "DELETE", r"/v1/memories/([^/]+)", self._delete
        yield "GET", r"/v1/ping", self._ping

    def _add(self, body: Body) -> Answer:
        """Accept an add. Its event ends at once, unless events are held."""
        key = body.pop("idempotency_key")
        if not any(body.get(name) for name in IDS):
            return 400, _error("An add needs one of user_id, agent_id, app_id and run_id.")
        event = self._keys.get(key)
        if event is None:
            event = _Event(str(uuid4()), body)
            self._events[event.id] = event
            self.adds.append(body)
            if key:
                self._keys[key] = event
            if self._held is None:
                self._end(event)
            else:
                self._held.append(event)
        elif event.body != body:
            return 409, _error("This idempotency key was used for another add.")
        return 200, {"event_id": event.id, "status": "PENDING"}

    def _end(self, event: _Event) -> None:
        """End an event, and store the messages of its users."""
        if self._failures:
            event.status, event.code = "FAILED", self._failures.popleft()
            return
        messages = event.body["messages"]
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        for place, message in enumerate(messages):
            if message.get("role") == "user":
                memory = self._store(message["content"], event.body)
                event.lines.append(_line("ADD", memory, place))
        event.status = "SUCCEEDED"

    def _store(self, text: str, body: Mapping[str, Any]) -> Body:
        """Store a memory with the ids and metadata of an add."""
        now = datetime.now(UTC).isoformat()
        memory: Body = {
            "id": str(uuid4()),
            "memory": text,
            **{name: body.get(name) for name in IDS},
            "metadata": body.get("metadata"),
            "categories": [],
            "created_at": now,
            "updated_at": now,
        }
        self.memories[memory["id"]] = memory
        return memory

    def _event(self, _: Body, event_id: str) -> Answer:
        event = self._events.get(event_id)
        return (200, event.shown()) if event else (404, _error("There is no such event."))

    def _search(self, body: Body) -> Answer:
        """The memories that share a word with the question, most shared words first."""
        query = body.get("query")
        if query is None:
            query = body["messages"][-1]["content"]
        query_words = _words(query)
        hits = [
            {
                **memory,
                "type": "fact",
                "score": round(len(query_words & words) / len(query_words), 3),
            }
            for memory in self._matching(body)
            if query_words & (words := _words(memory["memory"]))
        ]
        hits.sort(key=lambda hit: -hit["score"])
        hits = hits[: _whole(body.get("top_k"), TOP_K)]
        return 200, {"results": hits, "relations": [], "pending": len(self._held or ())}

    def _list(self, body: Body) -> Answer:
        """A page of the memories that match, newest first. Errors: _Refused."""
        rows = list(reversed(self._matching(body)))
        page, size = (_whole(body.get(name), usual) for name, usual in PAGES.items())
        if not (page >= 1 and 1 <= size <= LARGEST_PAGE):
            raise _Refused(f"page starts at 1, page_size is 1 to {LARGEST_PAGE}.")
        start, end = (page - 1) * size, page * size
        if start >= len(rows) and page > 1:
            return 404, _error("Invalid page.")
        return 200, {
            "count": len(rows),
            "next": _page_url(page + 1, size) if end < len(rows) else None,
            "previous": _page_url(page - 1, size) if page > 1 else None,
            "results": rows[start:end],
        }

    def _matching(self, body: Body) -> list[Body]:
        """The memories that match the filters, oldest first. Errors: _Refused."""
        beside = {name: body[name] for name in (*IDS, "metadata", *UNKNOWN) if body.get(name)}
        parts = [part for part in (body.get("filters"), beside) if part]
        if not parts:
            raise _Refused(NO_ID)
        matches = _predicate({"AND": parts})
        return [memory for memory in self.memories.values() if matches(memory)]

    def _get(self, _: Body, memory_id: str) -> Answer:
        memory = self.memories.get(memory_id)
        return (200, memory) if memory else (404, _error("There is no such memory."))

    def _update(self, body: Body, memory_id: str) -> Answer:
        memory = self.memories.get(memory_id)
        if memory is None:
            return 404, _error("There is no such memory.")
        changed = {"memory": body.get("text"), "metadata": body.get("metadata")}
        memory |= {name: value for name, value in changed.items() if value is not None}
        memory["updated_at"] = datetime.now(UTC).isoformat()
        return 200, memory

    def _delete(self, _: Body, memory_id: str) -> Answer:
        if self.memories.pop(memory_id, None) is None:
            return 404, _error("There is no such memory.")
        return 200, {"message": "Memory deleted successfully!"}

    def _ping(self, _: Body) -> Answer:
        return 200, {"status": "ok", "org_id": "fake", "project_id": "fake", "user_email": ""}


def _predicate(filters: Any) -> Predicate:
    """A filter as a function of a memory. Errors: _Refused for an unknown condition."""
    if not isinstance(filters, dict) or not filters:
        raise _Refused(f"A filter is an object: {NO_ID}")
    parts = [_condition(name, wanted) for name, wanted in filters.items()]
    return lambda memory: all(part(memory) for part in parts)


def _condition(name: str, wanted: Any) -> Predicate:
    """One condition of a filter. Errors: _Refused."""
    if name == "NOT" or (name in ("AND", "OR") and isinstance(wanted, list) and wanted):
        parts = [_predicate(part) for part in (wanted if isinstance(wanted, list) else [wanted])]
        if name == "NOT":
            return lambda memory: not any(part(memory) for part in parts)
        every = all if name == "AND" else any
        return lambda memory: every(part(memory) for part in parts)
    if name in IDS:
        return _comparison(name, lambda memory: memory[name], wanted)
    if name == "metadata" and isinstance(wanted, dict):
        parts = [_condition(f"metadata.{key}", value) for key, value in wanted.items()]
        return lambda memory: all(part(memory) for part in parts)
    key = name.removeprefix("metadata.")
    if key == name or isinstance(wanted, list):
        raise _Refused(f"FakeMemlane knows no condition {name} with {wanted!r}.")
    return _comparison(name, lambda memory: (memory["metadata"] or {}).get(key, MISSING), wanted)


def _comparison(name: str, read: Callable[[Body], Any], wanted: Any) -> Predicate:
    """A comparison of a value of a memory. Errors: _Refused for an unknown operator."""
    tests = wanted
    if not isinstance(wanted, dict):
        tests = {"in" if isinstance(wanted, list) else "eq": wanted}
    if unknown := tests.keys() - {"eq", "ne", "in"}:
        raise _Refused(f"FakeMemlane knows no operator {', '.join(sorted(unknown))} of {name}.")

    def holds(memory: Body) -> bool:
        value = read(memory)
        return all(
            any(_equal(value, each) for each in operand)
            if operator == "in"
            else _equal(value, operand) == (operator == "eq")
            for operator, operand in tests.items()
        )

    return holds


def _equal(value: Any, wanted: Any) -> bool:
    """Tell if a value is the one of a filter; `*` stands for any but null."""
    return value is not None and value is not MISSING if wanted == "*" else bool(value == wanted)


def _line(event: str, memory: Mapping[str, Any], place: int) -> Body:
    """A line of a receipt."""
    return {
        "id": memory["id"],
        "event": event,
        "memory": memory["memory"],
        "old_memory": None,
        "reason": "Stored word for word.",
        "message": place,
    }


def _whole(value: Any, usual: int) -> int:
    """A number of a request; `usual` if it is left out. Errors: _Refused."""
    try:
        return usual if value is None else int(value)
    except (TypeError, ValueError):
        raise _Refused(f"{value!r} is not a whole number.") from None


def _page_url(page: int, size: int) -> str:
    return f"/v3/memories/?page={page}&page_size={size}"


def _error(text: str) -> Body:
    return {"error": text, "detail": text, "message": text}


def _words(text: str) -> set[str]:
    """The words of a text, in small letters; at least one."""
    return set(re.findall(r"\w+", text.lower())) or {text}
