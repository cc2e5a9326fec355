"""Hooks of coding agents: what each event stores and prints."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
from memlane_client import Memlane, Retries
from memlane_client.__main__ import main
from memlane_client.hook import answer, parse
from memlane_client.outbox.drain import drain
from memlane_client.outbox.journal import Journal
from memlane_client.storable import LONGEST_TEXT

from tests.support.outbox_api import FakeApi, add, refused
from tests.support.stack import wait_until

SESSION = {"session_id": "s1", "cwd": "/home/maya/shop", "transcript_path": "/nowhere.jsonl"}
PROMPT = SESSION | {"hook_event_name": "UserPromptSubmit", "prompt": "Use tabs, please."}
STOP = SESSION | {"hook_event_name": "Stop"}
CONTEXT = "<recalled>\n[1] 2026-05-07 User prefers tabs\n</recalled>"
HIT = {"id": "1", "memory": "User prefers tabs", "score": 0.9}


def run(payload: object, outbox: Path, respond: Any) -> tuple[str, list[str]]:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    transport = httpx.MockTransport(respond)
    with Memlane("key", transport=transport, retries=Retries(attempts=1)) as memlane:
        return answer(text, memlane, outbox, {"user_id": "maya", "app_id": None}, max_tokens=300)


def found(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"results": [HIT], "context": CONTEXT})


def stored(outbox: Path) -> list[dict[str, Any]]:
    return [dict(entry.add.body) for entry in Journal(outbox).new_entries()]


def test_a_prompt_gets_memories_and_is_stored(tmp_path: Path) -> None:
    output, faults = run(PROMPT, tmp_path, found)
    context = json.loads(output)["hookSpecificOutput"]
    assert context["hookEventName"] == "UserPromptSubmit"
    assert context["additionalContext"].endswith(CONTEXT)
    assert "not instructions" in context["additionalContext"]
    assert faults == []
    assert stored(tmp_path) == [
        {
            "messages": [{"role": "user", "content": "Use tabs, please."}],
            "user_id": "maya",
            "metadata": {"session": "s1", "project": "shop"},
        }
    ]


def test_a_prompt_without_memories_prints_nothing(tmp_path: Path) -> None:
    empty = {"results": [], "context": "<recalled>\n\n</recalled>"}
    assert run(PROMPT, tmp_path, lambda _: httpx.Response(200, json=empty)) == ("", [])


def test_a_server_that_is_down_stops_neither_the_agent_nor_the_memory(tmp_path: Path) -> None:
    output, faults = run(PROMPT, tmp_path, refused)
    assert output == ""
    assert faults == ["no memories: no response: ConnectError"]
    assert len(stored(tmp_path)) == 1


def test_a_response_of_another_server_stops_neither_the_agent_nor_the_memory(
    tmp_path: Path,
) -> None:
    output, [fault] = run(PROMPT, tmp_path, lambda _: httpx.Response(200, text="<html>"))
    assert output == ""
    assert fault.startswith("no memories: 200: ")
    assert len(stored(tmp_path)) == 1


def test_a_reply_is_stored_from_the_hook_or_from_the_transcript(tmp_path: Path) -> None:
    assert run(STOP | {"last_assistant_message": "Done."}, tmp_path / "o", refused) == ("", [])
    transcript = tmp_path / "t.jsonl"
    lines = [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "First."}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Last."}]}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}},
        {"type": "user", "message": {"content": "Thanks"}},
    ]
    transcript.write_text("cut off}\n" + "\n".join(map(json.dumps, lines)))
    run(STOP | {"transcript_path": str(transcript)}, tmp_path / "o", refused)
    assert [body["messages"] for body in stored(tmp_path / "o")] == [
        [{"role": "assistant", "content": "Done."}],
        [{"role": "assistant", "content": "Last."}],
    ]


def test_a_reply_with_a_line_separator_is_read_from_the_transcript(tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    lines = [
        {"type": "assistant", "message": {"content": text}}
        for text in ("First.", "L\u2028\x85ast.")
    ]
    rows = (json.dumps(line, ensure_ascii=False) for line in lines)
    transcript.write_text("\n".join(rows), "utf-8")
    run(STOP | {"transcript_path": str(transcript)}, tmp_path / "o", refused)
    [body] = stored(tmp_path / "o")
    assert body["messages"] == [{"role": "assistant", "content": "L\u2028\x85ast."}]


def test_a_prompt_with_half_an_emoji_gets_memories_and_is_stored(tmp_path: Path) -> None:
    output, faults = run(PROMPT | {"prompt": "Where? \ud83d"}, tmp_path, found)
    assert (bool(output), faults) == (True, [])
    [body] = stored(tmp_path)
    assert body["messages"] == [{"role": "user", "content": "Where? \ufffd"}]


def test_a_turn_of_codex_has_both_sides() -> None:
    turn = parse(
        {
            "type": "agent-turn-complete",
            "thread-id": "t1",
            "cwd": "/home/maya/shop",
            "input-messages": ["Rename foo.", ""],
            "last-assistant-message": "Renamed.",
        }
    )
    assert turn is not None
    assert turn.messages == [
        {"role": "user", "content": "Rename foo."},
        {"role": "assistant", "content": "Renamed."},
    ]
    assert turn.metadata == {"session": "t1", "project": "shop"}


@pytest.mark.parametrize(
    ("payload", "faults"),
    [
        ("no json", 1),
        ("[" * 100_000, 1),
        ("[1]", 0),
        ({}, 0),
        (SESSION | {"hook_event_name": "PreToolUse", "tool_name": "Bash"}, 0),
        (SESSION | {"hook_event_name": "UserPromptSubmit", "prompt": "  "}, 0),
        (SESSION | {"hook_event_name": "Stop", "last_assistant_message": 7}, 0),
        ({"type": "agent-turn-complete", "input-messages": None}, 0),
    ],
)
def test_other_input_does_nothing(payload: object, faults: int, tmp_path: Path) -> None:
    output, reported = run(payload, tmp_path, refused)
    assert (output, len(reported)) == ("", faults)
    assert stored(tmp_path) == []


def test_a_long_prompt_is_cut_to_what_an_add_may_have() -> None:
    turn = parse(PROMPT | {"prompt": "x" * (LONGEST_TEXT + 1)})
    assert turn is not None
    assert len(turn.messages[0]["content"]) == LONGEST_TEXT


# ── the process that sends ───────────────────────────────────────────────────────────────────────


async def test_a_drain_sends_everything_and_ends(tmp_path: Path) -> None:
    api = FakeApi()
    for text in ("one", "two"):
        Journal(tmp_path).append(add(text))
    assert await drain(tmp_path, api.connect, within_s=10) == 0
    assert api.accepted["maya"] == ["one", "two"]


async def test_a_drain_ends_at_its_time_limit_and_keeps_what_is_pending(tmp_path: Path) -> None:
    api = FakeApi()
    api.answer = refused
    Journal(tmp_path).append(add("one"))
    assert await drain(tmp_path, api.connect, within_s=0) == 1
    api.answer = lambda _: None
    assert await drain(tmp_path, api.connect, within_s=10) == 0


async def test_one_drain_sends_one_waits_and_a_third_ends(tmp_path: Path) -> None:
    api, holder = FakeApi(), Journal(tmp_path)
    assert holder.become_sender()
    Journal(tmp_path).append(add("one"))
    waiting = asyncio.create_task(drain(tmp_path, api.connect, within_s=60))

    async def is_waiting() -> bool:
        return (tmp_path / "next.lock").exists()

    await wait_until(is_waiting, within_s=30, what="the second drain")
    assert await drain(tmp_path, api.connect, within_s=60) is None
    assert api.requests == 0
    holder.resign()
    assert await waiting == 0
    assert api.accepted["maya"] == ["one"]


class Command(Protocol):
    """`memlane-client` with these arguments and this standard input."""

    def __call__(self, *words: object, text: str = "") -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def command(project_root: Path) -> Command:
    def call(*words: object, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "memlane_client", *map(str, words)],
            cwd=project_root / "clients/python",
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return call


@pytest.mark.parametrize("content", [None, b"\n", b"\xff\xfe"])
@pytest.mark.parametrize("payload", [PROMPT, STOP | {"last_assistant_message": "Done."}])
def test_a_turn_waits_in_the_outbox_for_a_key_that_cannot_be_read(
    content: bytes | None, payload: dict[str, str], tmp_path: Path, command: Command
) -> None:
    key, outbox = tmp_path / "key", tmp_path / "outbox"
    if content is not None:
        key.write_bytes(content)
    done = command(
        "hook", "--key-file", key, "--outbox", outbox, "--user", "maya", text=json.dumps(payload)
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert str(key) in done.stderr
    assert "--key-file" in done.stderr
    assert len(stored(outbox)) == 1


def test_a_user_without_a_name_stops_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In containers with a user of their own number, as OpenShift starts them."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nameless)
    outbox = ("--outbox", str(tmp_path), "--key-file", str(tmp_path / "none"))
    for words in (("hook", json.dumps(PROMPT), *outbox), ("outbox", *outbox)):
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        assert ended.value.code == 0
    assert capsys.readouterr().out.endswith("1 pending, 0 refused\n")
    assert stored(tmp_path)[0]["user_id"] == str(os.getuid())


@pytest.mark.parametrize("listen", ["", "127.0.0.1", "host:port", "127.0.0.1:99999"])
def test_a_proxy_without_a_port_is_refused(
    listen: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_text("k")
    with pytest.raises(SystemExit) as ended:
        main(["proxy", "--listen", listen, "--key-file", str(tmp_path / "key")])
    assert ended.value.code == 2
    assert "127.0.0.1:8100" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["drain", "proxy"])
def test_a_command_without_a_key_ends_with_a_sentence(
    name: str, tmp_path: Path, command: Command
) -> None:
    done = command(name, "--key-file", tmp_path / "key", "--outbox", tmp_path / "outbox")
    assert done.returncode == 1
    assert "--key-file" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_returns_with_the_server_down(tmp_path: Path, command: Command) -> None:
    key = tmp_path / "key"
    key.write_text("k")
    address = ("--url", "http://127.0.0.1:9", "--key-file", key, "--outbox", tmp_path / "outbox")
    options = ("--user", "maya", "--drain-for", 0)
    done = command("hook", *address, *options, text=json.dumps(PROMPT))
    assert (done.returncode, done.stdout) == (0, "")
    assert "no memories" in done.stderr
    shown = command("outbox", *address).stdout
    assert shown.endswith("1 pending, 0 refused\n")
    assert "tabs" not in shown
