"""Readers of other systems' stores and files."""

from __future__ import annotations

import os
import pickle
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import orjson
import pytest

from api.adds.messages import MessageIn
from deploy.cli import transfer
from deploy.cli.connection import ApiConnection
from deploy.cli.transfer import ChatRun, ImportRun
from deploy.imports.chats import MOST_MESSAGES, ConversationTurn, read_turns
from deploy.imports.mem0 import Mem0Store, read_store
from deploy.imports.platform import platform_lines
from deploy.stack.failure import StackError
from pipeline.domain.limits import LONGEST_TEXT
from pipeline.settings import Settings
from pipeline.transfer.records import LINE, MemoryRecord

FIRST, SECOND = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
CREATED, UPDATED = "2026-01-02T03:04:05.000001+00:00", "2026-02-03T04:05:06+01:00"
PAYLOAD = {
    "data": "Lives in Porto", "hash": "h", "user_id": "maya", "agent_id": "helper",
    "created_at": CREATED, "updated_at": UPDATED, "role": "assistant", "room": 7, "open": True,
}  # fmt: skip


def written(path: Path, *statements: tuple[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        for statement, values in statements:
            connection.execute(statement, values)
        connection.commit()


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    columns = "id, memory_id, old_memory, new_memory, event, created_at, updated_at, actor_id"
    row = f"INSERT INTO history ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    written(
        path,
        (f"CREATE TABLE history ({columns})", ()),
        (row, ("b", FIRST, "Lives in Lisbon", "Lives in Porto", "UPDATE", CREATED, UPDATED, "Ana")),
        (row, ("a", FIRST, None, "Lives in Lisbon", "ADD", CREATED, None, None)),
        (row, ("c", SECOND, "Owns a Saab", None, "DELETE", CREATED, UPDATED, None)),
    )
    return path


@pytest.fixture
def chroma(tmp_path: Path) -> str:
    texts = [(name, value) for name, value in PAYLOAD.items() if not isinstance(value, bool | int)]
    meta = "INSERT INTO embedding_metadata VALUES (1, ?, ?, ?, NULL, ?)"
    written(
        tmp_path / "chroma" / "chroma.sqlite3",
        ("CREATE TABLE collections (id, name)", ()),
        ("CREATE TABLE segments (id, collection)", ()),
        ("CREATE TABLE embeddings (id, segment_id, embedding_id)", ()),
        (
            "CREATE TABLE embedding_metadata"
            " (id, key, string_value, int_value, float_value, bool_value)",
            (),
        ),
        ("INSERT INTO collections VALUES ('c', 'mem0'), ('d', 'other')", ()),
        ("INSERT INTO segments VALUES ('s', 'c'), ('t', 'd')", ()),
        ("INSERT INTO embeddings VALUES (1, 's', ?), (2, 't', 'another')", (FIRST,)),
        *((meta, (name, value, None, None)) for name, value in texts),
        (meta, ("room", None, 7, None)),
        (meta, ("open", None, None, 1)),
    )
    return f"chroma:{tmp_path / 'chroma'}"


def point(**fields: Any) -> bytes:
    """A pickled point, in the form in which Qdrant's client stores its pydantic models."""
    name = "qdrant_client.http.models.models"
    kind = type("PointStruct", (), {"__module__": name})
    parents = [name.rsplit(".", level)[0] for level in range(1, name.count(".") + 1)]
    modules = {module: ModuleType(module) for module in (name, *parents)}
    vars(modules[name])["PointStruct"] = kind
    made = kind()
    made.__dict__["__dict__"] = fields
    sys.modules |= modules
    try:
        return pickle.dumps(made)
    finally:
        for module in modules:
            del sys.modules[module]


def record(line: dict[str, Any]) -> MemoryRecord:
    parsed = LINE.validate_python(line)
    assert isinstance(parsed, MemoryRecord)
    return parsed


def check(store: Mem0Store) -> None:
    (memory,) = [record(line) for line in store.lines()]
    assert (str(memory.id), memory.text, memory.user_id) == (FIRST, "Lives in Porto", "maya")
    assert (memory.agent_id, memory.attributed_to) == ("helper", "assistant")
    assert memory.metadata == {"room": 7, "open": True}
    assert memory.created_at.isoformat() == CREATED
    assert memory.updated_at.isoformat() == UPDATED
    changes = [(entry.event, entry.old_text, entry.new_text) for entry in memory.history]
    assert changes == [
        ("ADD", None, "Lives in Lisbon"),
        ("UPDATE", "Lives in Lisbon", "Lives in Porto"),
    ]
    (past,) = memory.past_states
    assert (past.text, past.replaced_at) == ("Lives in Lisbon", memory.updated_at)
    assert "Ana" in (memory.history[1].reason or "")
    assert store.ownerless == 1


def test_a_store_in_chroma_is_read_with_its_history(chroma: str, history: Path) -> None:
    check(read_store(chroma, history))


def test_a_store_in_qdrant_is_read_with_its_history(tmp_path: Path, history: Path) -> None:
    path = tmp_path / "qdrant" / "collection" / "mem0" / "storage.sqlite"
    stored = point(id=FIRST, vector=[0.1], payload=dict(PAYLOAD))
    written(
        path,
        ("CREATE TABLE points (id, point)", ()),
        ("INSERT INTO points VALUES (1, ?)", (stored,)),
    )
    check(read_store(f"qdrant:{tmp_path / 'qdrant'}", history))


class Hostile:
    def __reduce__(self) -> Any:
        return os.mkdir, ("made-by-a-pickle",)


def test_a_pickle_of_another_class_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "collection" / "mem0" / "storage.sqlite"
    hostile = pickle.dumps(Hostile())
    written(
        path,
        ("CREATE TABLE points (id, point)", ()),
        ("INSERT INTO points VALUES (1, ?)", (hostile,)),
    )
    with pytest.raises(StackError, match="no class of a point"):
        read_store(f"qdrant:{tmp_path}", None)
    assert not Path("made-by-a-pickle").exists()


@pytest.mark.parametrize("store", ["chroma:/nowhere", "weaviate:here", "qdrant:/nowhere"])
def test_a_store_that_cannot_be_read_is_named(store: str) -> None:
    with pytest.raises(StackError):
        read_store(store, None)


def test_memories_of_the_platform_are_read(tmp_path: Path) -> None:
    file = tmp_path / "memories.json"
    row = {
        "id": FIRST, "memory": "Lives in Porto", "user_id": "maya", "categories": ["home"],
        "metadata": {"room": 7}, "created_at": CREATED, "updated_at": UPDATED,
    }  # fmt: skip
    file.write_bytes(orjson.dumps({"results": [row, row | {"id": "m2", "user_id": None}]}))
    first, second = [record(line) for line in platform_lines(file, "noah")]
    assert (first.categories, first.metadata, first.user_id) == (["home"], {"room": 7}, "maya")
    assert (second.user_id, len(second.history)) == ("noah", 1)
    file.write_bytes(orjson.dumps({"home": "Porto"}))
    with pytest.raises(StackError, match="should be"):
        list(platform_lines(file, None))


def test_metadata_of_the_platform_stays_metadata(tmp_path: Path) -> None:
    """Its keys may have the names of columns: they are the caller's own."""
    file = tmp_path / "memories.json"
    metadata = {
        "user_id": "noah", "role": "assistant", "hash": "h", "created_at": "soon", "data": "x",
        "categories": "work", "expiration_date": "2020-01-01", "actor_id": 7, "immutable": True,
    }  # fmt: skip
    row = {
        "id": FIRST, "memory": "Lives in Porto", "user_id": None, "agent_id": "helper",
        "metadata": metadata, "created_at": CREATED,
    }  # fmt: skip
    file.write_bytes(orjson.dumps([row]))
    [line] = map(record, platform_lines(file, None))
    assert line.metadata == metadata
    assert line.history[0].metadata == metadata
    assert (line.user_id, line.agent_id, line.attributed_to) == (None, "helper", "user")
    assert (line.text, line.categories, line.speaker) == ("Lives in Porto", [], None)
    assert (line.expiration_date, line.immutable) == (None, False)


def node(parent: str | None, role: str, text: str, at: float | None = None) -> dict[str, Any]:
    message = {"author": {"role": role}, "content": {"parts": [text]}, "create_time": at}
    return {"parent": parent, "message": message}


def test_the_shown_branch_of_a_chatgpt_conversation_is_read_in_order(tmp_path: Path) -> None:
    mapping = {
        "root": {"parent": None, "message": None},
        "a": node("root", "user", "I live in Porto.", 1_700_000_000.5),
        "b": node("a", "assistant", "Nice."),
        "c": node("a", "assistant", "An answer that was replaced."),
        "d": node("b", "tool", "a result"),
    }
    conversation = {"id": "x", "title": "Home", "mapping": mapping, "current_node": "d"}
    file = tmp_path / "conversations.json"
    file.write_bytes(orjson.dumps([conversation]))
    (turn,) = read_turns(file)
    assert [m["content"] for m in turn.messages] == ["I live in Porto.", "Nice."]
    assert turn.said_at is not None
    assert turn.said_at.timestamp() == 1_700_000_000.5
    assert [turn.key] == [again.key for again in read_turns(file)]


@pytest.mark.parametrize("at", [1e20, -1e18])
def test_a_message_at_no_time_of_the_calendar_has_none(tmp_path: Path, at: float) -> None:
    mapping = {"a": node(None, "user", "I live in Porto.", at)}
    file = tmp_path / "conversations.json"
    file.write_bytes(orjson.dumps([{"id": "x", "mapping": mapping, "current_node": "a"}]))
    (turn,) = read_turns(file)
    assert turn.said_at is None


def test_a_conversation_in_a_circle_ends(tmp_path: Path) -> None:
    mapping = {"a": node("b", "user", "One."), "b": node("a", "user", "Two.")}
    file = tmp_path / "conversations.json"
    file.write_bytes(orjson.dumps([{"id": "x", "mapping": mapping, "current_node": "a"}]))
    (turn,) = read_turns(file)
    assert len(turn.messages) == 2


def test_long_messages_are_split_into_what_an_add_may_have(tmp_path: Path) -> None:
    long, odd = "家" * (2 * LONGEST_TEXT + 1), "a\0b"
    rows = [{"role": "user", "content": text} for text in (long, odd, " \n", long, long, long)]
    nodes = [node(str(n - 1) if n else None, "user", row["content"]) for n, row in enumerate(rows)]
    mapping = {str(n): of for n, of in enumerate(nodes)}
    chat = {"id": "x", "mapping": mapping, "current_node": str(len(rows) - 1)}
    for name, content in {"chatgpt": [chat], "lines": {"messages": rows}}.items():
        file = tmp_path / name
        file.write_bytes(orjson.dumps(content))
        turns = list(read_turns(file))
        messages = [MessageIn.model_validate(part) for turn in turns for part in turn.messages]
        assert "".join(message.turn().content for message in messages) == long + "ab" + 3 * long
        sizes = [len(orjson.dumps(turn.messages)) for turn in turns]
        assert max(sizes) < Settings.model_fields["max_body_bytes"].default
        assert len({turn.key for turn in turns}) == len(turns) > 1


def test_an_import_says_how_many_versions_it_leaves_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sent: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.extend(orjson.loads(request.content)["records"])
        return httpx.Response(200, json={"events": []})

    history = [{"version": n, "event": "UPDATE", "new_text": "x" * 1_000} for n in range(1, 1_001)]
    lines = [{"type": "memory", "version": 1_000, "history": history}, {"type": "event"}]
    run = ImportRun(ApiConnection("http://api", "key", transport=httpx.MockTransport(answer)))
    run.send(map(orjson.dumps, lines))
    memory, event = sent
    assert event == lines[1]
    left_out = 1_000 - len(memory["history"])
    assert memory["history"] == history[left_out:]
    assert run.summary()["versions_left_out"] == left_out > 0
    run.show()
    assert f"{left_out} old versions of memories are left out" in capsys.readouterr().err


@dataclass
class Unattended:
    """A server that accepts an event, which ends at look `last`, if ever.

    `ended`: the number of ended events of the project at each look.
    """

    ended: Iterator[int]
    waiting: dict[str, Any] | None = None
    last: int | None = None
    looks: int = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/stats/":
            return httpx.Response(200, json={"succeeded": next(self.ended), "failed": 0})
        if request.method == "POST":
            body = {"event_id": FIRST, "events": [{"event_id": FIRST}]}
            return httpx.Response(200, json=body)
        self.looks += 1
        status = "SUCCEEDED" if self.looks == self.last else "PENDING"
        event: dict[str, Any] = {
            "id": FIRST,
            "status": status,
            "waiting": self.waiting,
            "results": [],
        }
        return httpx.Response(200, json=event | {"stage": None})

    def connection(self) -> ApiConnection:
        return ApiConnection("http://api", "key", transport=httpx.MockTransport(self))


def test_an_import_that_no_worker_processes_stops_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfer, "STUCK_S", 0.0)
    lines = ImportRun(Unattended(repeat(0)).connection())
    with pytest.raises(StackError, match=r"worker.*run the same command again"):
        lines.send([b'{"type": "event"}'])
    chats = ChatRun(Unattended(repeat(0)).connection(), user="maya")
    with pytest.raises(StackError, match=r"worker.*run the same command again"):
        chats.send([ConversationTurn([{"role": "user"}], "chat", "key")])


def test_an_import_goes_on_waiting_while_other_events_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "STUCK_S", 0.0)
    server = Unattended(chain(range(20), repeat(20)))
    with pytest.raises(StackError):
        ImportRun(server.connection()).send([b'{"type": "event"}'])
    assert server.looks == 22


def test_an_import_waits_longer_for_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "STUCK_S", 0.0)
    wait = {"code": "LLM_UNAVAILABLE", "until": "2026-01-02T03:04:05Z"}
    run = ImportRun(Unattended(repeat(0), wait, last=9).connection())
    run.send([b'{"type": "event"}'])
    assert run.failures == []
    monkeypatch.setattr(transfer, "STUCK_WAITING_S", 0.0)
    with pytest.raises(StackError, match="LLM_UNAVAILABLE"):
        ImportRun(Unattended(repeat(0), wait).connection()).send([b'{"type": "event"}'])


def test_lines_of_messages_become_turns_of_limited_length(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": f"Message {n}"} for n in range(MOST_MESSAGES + 1)]
    file = tmp_path / "chats.jsonl"
    file.write_bytes(orjson.dumps({"messages": messages}) + b"\n" + orjson.dumps({"messages": []}))
    assert [len(turn.messages) for turn in read_turns(file)] == [MOST_MESSAGES, 1]
    file.write_text("nothing of this kind\n")
    with pytest.raises(StackError, match="line 1"):
        list(read_turns(file))
