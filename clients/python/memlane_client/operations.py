"""Operations of the API as flows (calls.py): paths, parameters, and answers as types."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from memlane_client.calls import Call, Circuit, Flow, Retries, send
from memlane_client.errors import EventFailed, NotEnded, Rejected, Unavailable, Unreachable
from memlane_client.receipts import (
    Accepted,
    Answer,
    MemoryPage,
    MemoryRow,
    Progress,
    Receipt,
    SearchAnswer,
)

# Maximum number of seconds that one request may wait for the end of an event.
LONGEST_WAIT_S = 25.0
# Name of the last frame of an event's stream.
END = "end"
SCOPE = ("user_id", "agent_id", "app_id", "run_id")
# Matches any id in a filter.
ANY = "*"

AnswerT = TypeVar("AnswerT", bound=Answer)
Messages = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Ids(TypedDict, total=False):
    """The ids that a memory belongs to; at least one."""

    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None


class AddFields(Ids):
    """Ids and options of an add, as `POST /v3/memories/add/` documents them."""

    metadata: NotRequired[Mapping[str, Any]]
    infer: NotRequired[bool]
    mode: NotRequired[str]
    priority: NotRequired[Literal["normal", "low"]]
    timestamp: NotRequired[int | float | str]
    expiration_date: NotRequired[str]
    immutable: NotRequired[bool]
    incognito: NotRequired[bool]
    enable_graph: NotRequired[bool]
    custom_instructions: NotRequired[str]


class SearchFields(Ids):
    """Ids and options of a search, as `POST /v3/memories/search/` documents them."""

    filters: NotRequired[Mapping[str, Any]]
    top_k: NotRequired[int]
    threshold: NotRequired[float]
    include: NotRequired[Sequence[str]]
    max_tokens: NotRequired[int]
    rerank: NotRequired[bool]
    filter_memories: NotRequired[bool]
    as_of: NotRequired[str]
    after_event: NotRequired[str]
    wait: NotRequired[float]


@dataclass(frozen=True, slots=True)
class Add:
    """An add with the Idempotency-Key it is sent with, however often that is."""

    body: Mapping[str, Any]
    key: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def lane(self) -> str:
        """The scope, as text. Adds of one scope are sent in order."""
        return "\x1f".join(str(self.body.get(name) or "") for name in SCOPE)

    def call(self) -> Call:
        """The request of this add."""
        return Call(
            "POST",
            "/v3/memories/add/",
            body=self.body,
            headers={"Idempotency-Key": self.key},
            wait_s=0.0 if self.body.get("infer", True) else LONGEST_WAIT_S,
        )


def new_add(messages: Messages, fields: Mapping[str, Any], *, key: str | None = None) -> Add:
    """An add of these messages. Errors: ValueError without an id or a message."""
    if not any(fields.get(name) for name in SCOPE):
        raise ValueError("give at least one of user_id, agent_id, app_id, run_id")
    if not messages:
        raise ValueError("an add needs at least one message")
    body = {"messages": as_list(messages), **_given(fields)}
    return Add(body, key) if key else Add(body)


def as_list(messages: Messages) -> list[Mapping[str, Any]]:
    """A text as one user message, and one message as a list."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return [messages] if isinstance(messages, Mapping) else list(messages)


@dataclass(slots=True)
class Api:
    """The operations. All flows share one circuit breaker."""

    retries: Retries = field(default_factory=Retries)
    circuit: Circuit = field(default_factory=Circuit)
    clock: Callable[[], float] = time.monotonic

    def add(self, add: Add) -> Flow[str]:
        """Send an add. Returns the event's id."""
        return (yield from self._send(add.call(), Accepted)).event_id

    def event(self, event_id: str, *, wait_s: float = 0.0) -> Flow[Receipt]:
        """Read an event; the server waits up to `wait_s` seconds for its end."""
        params = {"wait": round(wait_s, 3)}
        call = Call("GET", event_path(event_id), params=params, wait_s=wait_s)
        return (yield from self._send(call, Receipt))

    def receipt(self, event_id: str, *, timeout_s: float) -> Flow[Receipt]:
        """Wait for the end of an event. Errors: EventFailed, NotEnded."""
        deadline = self.clock() + timeout_s
        while True:
            left_s = max(0.0, deadline - self.clock())
            receipt = yield from self.event(event_id, wait_s=min(left_s, LONGEST_WAIT_S))
            if receipt.status == "FAILED":
                raise EventFailed(receipt)
            if receipt.ended:
                return receipt
            if left_s <= 0:
                raise NotEnded(f"{event_id} is {receipt.status} after {timeout_s:g} s")

    def search(self, query: str | Sequence[Mapping[str, Any]], fields: Any) -> Flow[SearchAnswer]:
        """Search with a question, or with a conversation whose last message is the question."""
        asks = {"query": query} if isinstance(query, str) else {"messages": list(query)}
        body = asks | _filtered(fields)
        call = Call("POST", "/v3/memories/search/", body=body, wait_s=fields.get("wait") or 0.0)
        return (yield from self._send(call, SearchAnswer))

    def page(self, filters: Mapping[str, Any], *, page: int, size: int) -> Flow[MemoryPage]:
        """A page of the memories that match, newest first."""
        params = {"page": page, "page_size": size}
        call = Call("POST", "/v3/memories/", body={"filters": filters}, params=params)
        return (yield from self._send(call, MemoryPage))

    def memory(self, memory_id: str) -> Flow[MemoryRow]:
        """One memory. Errors: Missing."""
        return (yield from self._send(Call("GET", _memory_path(memory_id)), MemoryRow))

    def update(self, memory_id: str, fields: Mapping[str, Any]) -> Flow[None]:
        """Change text, metadata or expiration date of a memory."""
        yield from self._send(Call("PUT", _memory_path(memory_id), body=fields), Answer)

    def delete(self, memory_id: str) -> Flow[None]:
        """Delete one memory."""
        call = Call("DELETE", _memory_path(memory_id), repeatable=False)
        yield from self._send(call, Answer)

    def _send(self, call: Call, kind: type[AnswerT]) -> Flow[AnswerT]:
        """Send a call and read its response. Errors: those of `send`; Unavailable."""
        response = yield from send(call, retries=self.retries, circuit=self.circuit)
        return _read(kind, response.content, status=response.status_code)


def event_path(event_id: str) -> str:
    """The path of an event. The id is encoded, so that it cannot lead to another route."""
    return f"/v1/event/{quote(str(event_id), safe='')}/"


def _read(kind: type[AnswerT], content: str | bytes, *, status: int = 200) -> AnswerT:
    """A response as a type. Errors: Unavailable if another server, such as a proxy, answered."""
    try:
        return kind.model_validate_json(content)
    except ValidationError:
        reason = "this is not a response of Memlane; check the URL, and the proxies before it"
        raise Unavailable(f"{status}: {reason}", status=status) from None


def _memory_path(memory_id: str) -> str:
    return f"/v1/memories/{quote(str(memory_id), safe='')}/"


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _filtered(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a search, with its ids among the filters, where the API expects them.

    Errors: Rejected for the id `*`. In a filter it matches any id, so a user with this id would
    read the memories of all users.
    """
    given = _given(fields)
    ids = {name: given.pop(name) for name in SCOPE if name in given}
    if wildcards := [name for name, value in ids.items() if value == ANY]:
        reason = f"400: {wildcards[0]}: '*' is no id. To match any id, write it in `filters`."
        raise Rejected(reason, status=400)
    filters = given.pop("filters", None)
    parts = [part for part in (ids, filters) if part]
    return given | {"filters": parts[0] if len(parts) == 1 else {"AND": parts}}


class Frames:
    """Parser of Server-Sent Events: bytes in, `(name, data)` out at each empty line.

    A line ends at a line feed only: httpx would also split at U+2028 and others within texts.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []
        self._is_complete = False

    def require_end(self) -> None:
        """Check that the frame with the receipt has come. Errors: Unreachable."""
        if not self._is_complete:
            raise Unreachable("the stream broke: it ended before the event")

    def feed(self, piece: bytes) -> Iterator[tuple[str, str]]:
        """The frames that these bytes end."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            yield from self._line(line.decode().removesuffix("\r"))

    def _line(self, line: str) -> Iterator[tuple[str, str]]:
        """The frame that this line ends, if it does."""
        if not line:
            if self._data:
                self._is_complete = self._name == END
                yield self._name, "\n".join(self._data)
            self._name, self._data = "", []
        elif line.startswith("event:"):
            self._name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            self._data.append(line.removeprefix("data:").removeprefix(" "))


def parsed(name: str, data: str) -> Progress | Receipt:
    """A frame of an event's stream as a type; the last one is the receipt."""
    return _read(Receipt, data) if name == END else _read(Progress, data)
