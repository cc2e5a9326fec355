"""Methods to choose the context of a question: Memlane, chunks of the text, or all of it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from pipeline.ports import Embedder
from tests.eval.questions.conversations import Conversation, Line, Question
from tests.eval.scenarios.play import ended
from tests.support.stack import Client

TOP_K = 10
# Lines of one add: a few turns, as a chat backend sends them.
LINES_AN_ADD = 4
USER = "reader"


class Method(ABC):
    """A way to choose a context; `seconds` are spent in the last search."""

    name: str
    seconds = 0.0

    async def context(self, question: Question) -> str:
        """The context of a question."""
        began = time.perf_counter()
        context = await self.search(question)
        self.seconds = time.perf_counter() - began
        return context

    @abstractmethod
    async def search(self, question: Question) -> str:
        """The context of a question."""


class Memlane(Method):
    """The best memories of one user, who has had all the conversations."""

    name = f"Memlane, {TOP_K} memories"

    def __init__(self, client: Client, user: str = USER) -> None:
        self._client = client
        self._user = user

    async def remember(self, conversations: Sequence[Conversation]) -> list[dict[str, object]]:
        """Add all lines; the events at their ends."""
        ids = [
            await self._add(session[at : at + LINES_AN_ADD])
            for conversation in conversations
            for session in conversation.sessions
            for at in range(0, len(session), LINES_AN_ADD)
        ]
        return [await ended(self._client, event_id) for event_id in ids]

    async def _add(self, lines: Sequence[Line]) -> str:
        body = {
            "messages": [
                {"role": "user", "name": line.speaker, "content": line.text} for line in lines
            ],
            "user_id": self._user,
            "timestamp": int(lines[0].at.timestamp()),
        }
        answer = await self._client.http.post("/v3/memories/add/", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["event_id"])

    async def search(self, question: Question) -> str:
        hits = await self._client.search(self._user, question.ask, top_k=TOP_K)
        rows = sorted(hits["results"], key=_said_at)
        return "\n".join(f"({_said_at(row)[:10]}) {row['memory']}" for row in rows)


class Chunks(Method):
    """The nearest chunks of the text of all conversations, by the same local embedder."""

    def __init__(self, chunks: Sequence[str], count: int, name: str, embedder: Embedder) -> None:
        self.name = name
        self._chunks = chunks
        self._count = count
        self._embedder = embedder
        self._vectors: np.ndarray | None = None

    async def search(self, question: Question) -> str:
        if self._vectors is None:
            self._vectors = np.array(await self._embedder.embed(self._chunks))
        [wanted] = await self._embedder.embed([question.ask])
        best = np.argsort(-(self._vectors @ wanted))[: self._count]
        return "\n".join(self._chunks[at] for at in sorted(best))


class Everything(Method):
    """All lines of all conversations."""

    name = "full context"

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._text = "\n".join(line.dated for c in conversations for line in c.lines)

    async def search(self, question: Question) -> str:
        return self._text


def chunked(
    conversations: Sequence[Conversation], size: int, tokens: Callable[[str], int]
) -> list[str]:
    """The lines in chunks of at most `size` tokens, or one longer line."""
    chunks: list[list[str]] = [[]]
    for conversation in conversations:
        for line in conversation.lines:
            if chunks[-1] and tokens("\n".join([*chunks[-1], line.dated])) > size:
                chunks.append([])
            chunks[-1].append(line.dated)
    return ["\n".join(chunk) for chunk in chunks]


def _said_at(row: dict[str, str]) -> str:
    return row.get("said_at") or row.get("timestamp") or row["created_at"]
