"""Hooks of coding agents: keep each turn, and add memories to a prompt.

Claude Code, and Codex with the same events, write JSON to standard input: `UserPromptSubmit` has
the prompt, `Stop` the agent's last message. Codex's `notify` passes JSON as the last argument:
`agent-turn-complete` has both. Other events do nothing. A hook never fails: an agent would stop.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlane_client.client import Memlane
from memlane_client.context import fenced
from memlane_client.errors import MemlaneError
from memlane_client.operations import new_add
from memlane_client.outbox.journal import Journal
from memlane_client.storable import LONGEST_TEXT, storable

PROMPT, STOP, CODEX_TURN = "UserPromptSubmit", "Stop", "agent-turn-complete"
TRANSCRIPT_BYTES = 400_000


@dataclass(frozen=True, slots=True)
class Turn:
    """The part of a conversation that a hook reports."""

    event: str
    messages: list[dict[str, str]]
    metadata: dict[str, str]


def parse(payload: Mapping[str, Any]) -> Turn | None:
    """The turn in a hook's JSON; None for another event, or for one without text."""
    event = str(payload.get("hook_event_name") or payload.get("type") or "")
    if event == PROMPT:
        messages = [("user", payload.get("prompt"))]
    elif event == STOP:
        messages = [("assistant", payload.get("last_assistant_message") or _last_reply(payload))]
    elif event == CODEX_TURN:
        inputs = payload.get("input-messages") or []
        texts = inputs if isinstance(inputs, list) else [inputs]
        messages = [("user", text) for text in texts]
        messages.append(("assistant", payload.get("last-assistant-message")))
    else:
        return None
    spoken = [
        {"role": role, "content": storable(text)[:LONGEST_TEXT]}
        for role, text in messages
        if isinstance(text, str) and text.strip()
    ]
    return Turn(event, spoken, _metadata(payload)) if spoken else None


def remember(turn: Turn, outbox: Path, ids: Mapping[str, Any]) -> None:
    """Append the turn to the outbox. Errors: OutboxFull, OSError."""
    Journal(outbox).append(new_add(turn.messages, {**ids, "metadata": turn.metadata}))


def recall(turn: Turn, memlane: Memlane, ids: Mapping[str, Any], *, max_tokens: int) -> str:
    """The hook's output for a prompt: JSON with memories as additional context; empty without any.

    Errors: MemlaneError.
    """
    prompt = turn.messages[0]["content"]
    context = fenced(memlane.search(prompt, max_tokens=max_tokens, **ids))
    if not context:
        return ""
    output = {"hookEventName": PROMPT, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False)


def answer(
    text: str, memlane: Memlane | None, outbox: Path, ids: Mapping[str, Any], *, max_tokens: int
) -> tuple[str, list[str]]:
    """Handle a hook's JSON. Returns its output, and the faults, which must not stop the agent.

    Without a client (`memlane`) the turn is stored and no memories are read.
    """
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        return "", ["the hook's input is no JSON"]
    turn = parse(payload) if isinstance(payload, dict) else None
    if turn is None:
        return "", []
    output, faults = "", []
    if memlane and turn.event == PROMPT:  # before the prompt itself is stored
        try:
            output = recall(turn, memlane, ids, max_tokens=max_tokens)
        except MemlaneError as error:
            faults.append(f"no memories: {error}")
    try:
        remember(turn, outbox, ids)
    except (MemlaneError, OSError, ValueError) as error:
        faults.append(f"not stored: {error}")
    return output, faults


def _metadata(payload: Mapping[str, Any]) -> dict[str, str]:
    """The session and the project's folder, which filters may use."""
    session = payload.get("session_id") or payload.get("thread-id")
    folder = payload.get("cwd")
    values = {"session": session, "project": Path(str(folder)).name if folder else None}
    return {name: str(value) for name, value in values.items() if value}


def _last_reply(payload: Mapping[str, Any]) -> str | None:
    """The agent's last text in the transcript, for agents that do not send it with `Stop`."""
    path = Path(str(payload.get("transcript_path") or "")).expanduser()
    if not path.is_file():
        return None
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TRANSCRIPT_BYTES))
        # Not `splitlines`, which would also split within texts.
        lines = file.read().decode("utf-8", errors="replace").split("\n")
    for line in reversed(lines):
        if text := _reply(line):
            return text
    return None


def _reply(line: str) -> str | None:
    """The text of a line of the transcript, if the agent wrote it."""
    try:
        entry = json.loads(line)
    except ValueError:  # the first line is cut off
        return None
    if not isinstance(entry, dict) or entry.get("type") != "assistant":
        return None
    message = entry.get("message")
    parts = message.get("content") if isinstance(message, dict) else None
    if isinstance(parts, str):
        return parts
    texts = [part.get("text") for part in parts or [] if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str)) or None
