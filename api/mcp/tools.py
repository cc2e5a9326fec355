"""The MCP tools: names, arguments and REST calls. The names are those of Mem0's hosted server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from api.http.ids import uuid
from pipeline.domain.errors import InvalidInput

Arguments = Mapping[str, Any]
Schema = dict[str, Any]


# Unknown arguments that an error names, and characters of their names.
MOST_NAMED, LONGEST_NAMES = 5, 200


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to the REST API."""

    method: str
    path: str
    query: Arguments = field(default_factory=dict)
    body: Arguments | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """An MCP tool: name, description, arguments, and the REST call it makes."""

    name: str
    about: str
    properties: Mapping[str, Schema]
    asks: Callable[[Arguments], ApiRequest]
    required: tuple[str, ...] = ()
    reads: bool = False
    destroys: bool = False

    @property
    def schema(self) -> Schema:
        """JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
        }

    def request(self, arguments: Arguments) -> ApiRequest:
        """The request of a call. Errors: InvalidInput, also for an unknown argument.

        A misspelt id that is ignored would widen what is read or deleted, and an ignored dry_run
        would delete.
        """
        if unknown := [name for name in arguments if name not in self.properties]:
            names = ", ".join(sorted(unknown)[:MOST_NAMED])[:LONGEST_NAMES]
            known = ", ".join(self.properties)
            raise InvalidInput(f"{self.name} has no argument {names}. It has {known}.")
        for name, value in arguments.items():
            _require_kind(name, value, self.properties[name]["type"])
        return self.asks(arguments)


def _require_kind(name: str, value: Any, kind: str) -> None:
    """Refuse a value that a query string would change: ["maya"] or true for an id.

    The rest is checked by the route: clients write numbers as strings, and models write null.
    Errors: InvalidInput.
    """
    if kind in {"array", "object"}:
        return
    if isinstance(value, list | dict) or (kind == "string" and isinstance(value, bool)):
        raise InvalidInput(f"{name}: expected a value of type {kind}.")


def _is(kind: str, about: str) -> Schema:
    return {"type": kind, "description": about}


def _list(items: Schema, about: str) -> Schema:
    return {"type": "array", "items": items, "description": about}


SCOPE_IDS = {
    "user_id": _is("string", "The user whose memories these are."),
    "agent_id": _is("string", "The agent."),
    "app_id": _is("string", "The application."),
    "run_id": _is("string", "The session or run."),
}
FILTERS = {
    "filters": _is(
        "object",
        'Conditions such as {"user_id": "maya"} or {"AND": [...]}; one id at least.',
    )
}
PAGES = {
    "page": _is("integer", "From 1."),
    "page_size": _is("integer", "1 to 200."),
}
TIMES = {
    "as_of": _is("string", "The memories as they were stored at this time, such as 2026-03-01."),
    "valid_at": _is("string", "The statements that held at this time in the world."),
    "include_superseded": _is("boolean", "Earlier texts and replaced statements too."),
}
OPTIONS = TIMES | {
    "rerank": _is("boolean", "Order the best by a reranker, where one is configured."),
    "keyword_search": _is(
        "boolean", "Also what holds a word of the question, below the threshold."
    ),
    "filter_memories": _is(
        "boolean", "Only memories that account for the question; possibly none."
    ),
    "fields": _list(
        {"type": "string"}, 'Keys to answer with, such as ["memory", "metadata.trip"].'
    ),
    "reference_date": _is("string", 'When the question is asked, for "last week"; default: now.'),
    "show_expired": _is("boolean", "Expired memories too."),
    "show_superseded": _is("boolean", "Also what a newer memory supersedes."),
    "include": _list(
        {"type": "string", "enum": ["facts", "turns"]},
        "turns: also messages as they were said. Default: facts.",
    ),
    "max_tokens": _is(
        "integer", "Also a context of at most this many tokens: the best results as dated lines."
    ),
}
MEMORY = {"memory_id": _is("string", "The memory's UUID.")}


def _present(arguments: Arguments, *names: str) -> dict[str, Any]:
    """The arguments with these names, by default all, that are not null."""
    return {name: arguments[name] for name in names or arguments if arguments.get(name) is not None}


def _filters(arguments: Arguments) -> dict[str, Any]:
    """The filters, restricted by the ids next to them."""
    ids, filters = _present(arguments, *SCOPE_IDS), arguments.get("filters") or {}
    if not isinstance(filters, dict):
        raise InvalidInput('filters is an object, such as {"user_id": "maya"}.')
    return {"AND": [filters, ids]} if ids and filters else {**filters, **ids}


def _memory(arguments: Arguments) -> str:
    return f"/v1/memories/{_uuid(arguments, 'memory_id')}/"


def _uuid(arguments: Arguments, name: str) -> UUID:
    """Parse an id, so that it cannot change the path of the request. Errors: InvalidInput."""
    return uuid(name, arguments.get(name))


def _add(arguments: Arguments) -> ApiRequest:
    if arguments.get("messages") and arguments.get("text"):
        raise InvalidInput("Give text or messages, not both: one of them would be lost.")
    messages = arguments.get("messages") or arguments.get("text")
    options = _present(arguments, *SCOPE_IDS, "metadata", "infer")
    return ApiRequest("POST", "/v3/memories/add/", body={"messages": messages, **options})


def _search(arguments: Arguments) -> ApiRequest:
    body = _present(arguments, "query", "top_k", "threshold", *OPTIONS)
    return ApiRequest("POST", "/v3/memories/search/", body=body | {"filters": _filters(arguments)})


def _page(arguments: Arguments) -> ApiRequest:
    pages = _present(arguments, *PAGES)
    body = _present(arguments, *TIMES) | {"filters": _filters(arguments)}
    return ApiRequest("POST", "/v3/memories/", pages, body)


TOOLS = (
    Tool(
        "add_memory",
        "Remember what was said. Returns an event_id at once; get_event_status reads "
        "the result. Give at least one id.",
        SCOPE_IDS
        | {
            "text": _is("string", "What to remember, in plain words."),
            "messages": _list(
                {"type": "object"}, 'Instead of text: [{"role": "user", "content": "..."}].'
            ),
            "metadata": _is("object", "Kept with each memory."),
            "infer": _is("boolean", "false: store the words as they are. Default true."),
        },
        _add,
    ),
    Tool(
        "search_memories",
        "Find memories that answer a question, best first.",
        SCOPE_IDS
        | FILTERS
        | {
            "query": _is("string", "The question, in plain words."),
            "top_k": _is("integer", "How many; default 10."),
            "threshold": _is("number", "Least similarity, 0 to 1."),
        }
        | OPTIONS,
        _search,
        ("query",),
        reads=True,
    ),
    Tool(
        "get_memories",
        "List memories, newest first.",
        SCOPE_IDS | FILTERS | PAGES | TIMES,
        _page,
        reads=True,
    ),
    Tool(
        "get_memory",
        "Read one memory.",
        MEMORY | TIMES,
        lambda arguments: ApiRequest("GET", _memory(arguments), _present(arguments, *TIMES)),
        ("memory_id",),
        reads=True,
    ),
    Tool(
        "update_memory",
        "Change a memory's text or metadata; its history keeps the old state.",
        MEMORY
        | {
            "text": _is("string", "The new text."),
            "metadata": _is("object", "In place of the old metadata."),
        },
        lambda arguments: ApiRequest(
            "PUT", _memory(arguments), body=_present(arguments, "text", "metadata")
        ),
        ("memory_id",),
        destroys=True,
    ),
    Tool(
        "delete_memory",
        "Delete one memory.",
        MEMORY,
        lambda arguments: ApiRequest("DELETE", _memory(arguments)),
        ("memory_id",),
        destroys=True,
    ),
    Tool(
        "delete_all_memories",
        "Delete every memory that has all of the given ids. Give at least one.",
        SCOPE_IDS,
        lambda arguments: ApiRequest("DELETE", "/v1/memories/", _present(arguments, *SCOPE_IDS)),
        destroys=True,
    ),
    Tool(
        "delete_entities",
        "Erase a user, agent, app or run for good: memories, history, all that was said. Give "
        "exactly one id. There is no undo.",
        SCOPE_IDS,
        lambda arguments: ApiRequest("POST", "/v1/erasures/", body=_present(arguments, *SCOPE_IDS)),
        destroys=True,
    ),
    Tool(
        "list_entities",
        "List users, agents, apps and runs that have memories.",
        PAGES,
        lambda arguments: ApiRequest("GET", "/v1/entities/", _present(arguments, *PAGES)),
        reads=True,
    ),
    Tool(
        "explore_graph",
        "Read the relations around a person, place or thing, nearest first, each with the path to "
        "it; without entity all of the ids. Give at least one id.",
        SCOPE_IDS
        | PAGES
        | {
            "entity": _is("string", "Its name; the user is User."),
            "entity_id": _is("string", "Instead of the name: source_id or target_id of a row."),
            "hops": _is("integer", "Longest path, 1 to 3; default 1."),
            "as_of": _is("string", "What was believed at this time, such as 2026-03-01."),
            "valid_at": _is("string", "What held in the world at this time."),
        },
        lambda arguments: ApiRequest("GET", "/v1/graph/", _present(arguments)),
        reads=True,
    ),
    Tool(
        "list_events",
        "List events and their status, newest first.",
        SCOPE_IDS
        | PAGES
        | {
            "event_type": _is("string", "Such as ADD."),
            "status": _is("string", "PENDING, RUNNING, SUCCEEDED or FAILED."),
        },
        lambda arguments: ApiRequest("GET", "/v1/events/", _present(arguments)),
        reads=True,
    ),
    Tool(
        "get_event_status",
        "Read an event: its status, and each fact with its outcome and the reason.",
        {"event_id": _is("string", "The event's UUID.")},
        lambda arguments: ApiRequest("GET", f"/v1/event/{_uuid(arguments, 'event_id')}/"),
        ("event_id",),
        reads=True,
    ),
)
