"""All questions with all methods through a real stack: figures of each method."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

from pipeline.adapters.embedder_minilm import MiniLM
from pipeline.adapters.provider_calls import RemoteModel
from tests.eval import models
from tests.eval.questions.conversations import KINDS, Conversation, Question, load
from tests.eval.questions.methods import Chunks, Everything, Memlane, Method, chunked
from tests.eval.questions.reader import PerfectReader, Reader
from tests.eval.questions.scores import bleu1, f1
from tests.eval.tokens import tokens
from tests.support.llm_server import LLMServer
from tests.support.stack import Stack

# Size of a chunk in tokens, and number of chunks.
CHUNKS = ((128, 2), (512, 2), (1024, 1))


@dataclass(frozen=True)
class Answered:
    """An answer with its scores; `judged` is None without a judge."""

    question: Question
    text: str
    context_tokens: int
    search_s: float
    total_s: float
    judged: bool | None

    @property
    def f1(self) -> float:
        return f1(self.text, self.question.answer)

    @property
    def bleu1(self) -> float:
        return bleu1(self.text, self.question.answer)


async def run(model: str | None, judge: str | None) -> dict[str, Any]:
    """Figures by method. Without a model, the stand-in answers and judges."""
    conversations = load()
    if model is not None:
        named = Reader(models.remote(judge)) if judge else None
        return await _run(conversations, models.live(model), Reader(models.remote(model)), named)
    async with LLMServer(answers=PerfectReader(conversations), tokens=tokens) as server:
        reader = Reader(RemoteModel(models.STAND_IN, server.base_url, "sk-eval"))
        return await _run(conversations, models.stand_in(server), reader, reader)


async def _run(
    conversations: Sequence[Conversation],
    settings: Mapping[str, str],
    reader: Reader,
    judge: Reader | None,
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "stack", {**settings, "MEMLANE_GRAPH": "off"})
        await asyncio.to_thread(stack.up)
        try:
            async with stack.client() as client:
                memlane = Memlane(client)
                events = await memlane.remember(conversations)
                methods = [memlane, *_baselines(conversations)]
                answered = [await ask_all(m, conversations, reader, judge) for m in methods]
        finally:
            await asyncio.to_thread(stack.down)
    return {
        "questions": sum(len(c.questions) for c in conversations),
        "lines": sum(1 for c in conversations for _ in c.lines),
        "failed_adds": sum(event["status"] != "SUCCEEDED" for event in events),
        "methods": {m.name: figures(a) for m, a in zip(methods, answered, strict=True)},
    }


def _baselines(conversations: Sequence[Conversation]) -> list[Method]:
    embedder = MiniLM()
    chunks = [
        Chunks(chunked(conversations, size, tokens), k, f"RAG, {k} × {size} tokens", embedder)
        for size, k in CHUNKS
    ]
    return [*chunks, Everything(conversations)]


async def ask_all(
    method: Method, conversations: Sequence[Conversation], reader: Reader, judge: Reader | None
) -> list[Answered]:
    """Answers to all questions, one after the other, so that times are those of one caller."""
    answered = []
    for question in (q for c in conversations for q in c.questions):
        context = await method.context(question)
        reply = await reader.answer(question, context)
        judged = await judge.judge(question, reply.text) if judge else None
        search_s, total_s = method.seconds, method.seconds + reply.seconds
        answered.append(Answered(question, reply.text, tokens(context), search_s, total_s, judged))
    return answered


def figures(answered: Sequence[Answered]) -> dict[str, Any]:
    """Means in percent, latencies in ms."""
    by_kind = {
        kind: round(100 * mean(a.f1 for a in answered if a.question.kind == kind), 1)
        for kind in KINDS
    }
    judged = [a.judged for a in answered if a.judged is not None]
    return {
        "f1": round(100 * mean(a.f1 for a in answered), 1),
        "bleu1": round(100 * mean(a.bleu1 for a in answered), 1),
        "judge": round(100 * mean(judged), 1) if judged else None,
        "f1_by_kind": by_kind,
        "context_tokens": round(mean(a.context_tokens for a in answered)),
        "search_ms": _p50_p95([a.search_s for a in answered]),
        "total_ms": _p50_p95([a.total_s for a in answered]),
    }


def _p50_p95(seconds: Sequence[float]) -> list[float]:
    cuts = quantiles(seconds, n=20, method="inclusive")
    return [round(1000 * cuts[9], 1), round(1000 * cuts[18], 1)]
