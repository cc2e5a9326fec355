"""A stand-in for a language model: an OpenAI-compatible server that misbehaves on request.

It reads our own prompts back into values and answers them through a MemoryModel (local/rules), so
the same conversation flows end to end through LiteLLM, HTTP and the parsers, with no real model.
It embeds and reranks too, by words.

    async with LLMServer() as server:
        server.on("extract", "429", times=1, retry_after_s=0)
        LiteLLM(RemoteModel("openai/stand-in", api_base=server.base_url))

As a process: `python -m tests.support.llm_server --port 0` prints {"port": …, "base_url": …}; then
POST /admin/rules ({"rules": [{"on", "do", …}]}), DELETE /admin/rules, GET and DELETE /admin/calls.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

import numpy as np

from pipeline.domain.vectors import Vector
from pipeline.ports import MemoryModel, Reranker
from tests.support.embedder_hash import HashEmbedder
from tests.support.llm_answers import PromptAnswers, kind_of
from tests.support.reranker_overlap import OverlapReranker

On = Literal["any", "extract", "decide", "relate", "summary", "repair", "embed", "rerank", "other"]
Do = Literal[
    "delay",
    "hold",
    "401",
    "400",
    "429",
    "500",
    "malformed",
    "truncated",
    "filtered",
    "hang",
    "close",
    "refuse_format",
    "refuse_limit",
    "refuse_max_tokens",
    "refuse_temperature",
    "spread",
    "refuse_base64",
    "floats",
]
CALLS_KEPT = 10_000
# As OpenAI refuses a parameter for a reasoning model.
UNSUPPORTED = "Unsupported parameter: '{}' is not supported with this model."


@dataclass
class FaultRule:
    """A fault for a class of requests: for `times` of them (None: all), with a probability.

    `containing` limits it to prompts with this text. `ms` is the delay of "delay", and "hold" waits
    for the server's `release`. `retry_after_s` goes with "429" and "500"; `formats` are the
    response_format types that "refuse_format" refuses.
    """

    on: On
    do: Do
    times: int | None = None
    probability: float = 1.0
    containing: str = ""
    ms: float = 0.0
    retry_after_s: float | None = None
    # Message of a scripted error; by default it repeats the prompt.
    text: str = ""
    # Types of response_format that "refuse_format" refuses, and `function` for tools.
    formats: Sequence[str] = ("json_schema", "json_object")


@dataclass(frozen=True)
class LLMCall:
    """A received request; `at_s` is on the monotonic clock, `headers` have lower-case names."""

    kind: str
    repair: bool
    model: str
    prompt: str
    response_format: str | None
    headers: Mapping[str, str]
    encoding_format: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    function: str | None = None
    at_s: float = field(default_factory=time.monotonic)

    @property
    def form(self) -> str | None:
        """Way in which JSON was requested: a type of response_format, or `function`."""
        return "function" if self.function else self.response_format


@dataclass(frozen=True)
class LLMRequest:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class LLMReply:
    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class DroppedError(Exception):
    """Close the connection without a response."""


def _tokens(text: str) -> int:
    """Approximate number of English tokens."""
    return max(1, len(text) // 4)


# Answers a prompt of a kind with the text of a completion.
AnswersOf = Callable[[str, str], Awaitable[str]]


class LLMServer:
    """Server in a test's event loop; `calls` keeps the latest CALLS_KEPT requests."""

    def __init__(
        self,
        memory: MemoryModel | None = None,
        *,
        answers: AnswersOf | None = None,
        tokens: Callable[[str], int] = _tokens,
        reranker: Reranker | None = None,
        latency_ms: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.calls: deque[LLMCall] = deque(maxlen=CALLS_KEPT)
        # The usage that chat answers report, if a test sets it.
        self.usage: dict[str, Any] | None = None
        # Tokens that the answers reported in `usage`.
        self.billed: Counter[str] = Counter()
        self.answered = 0
        self.rules: list[FaultRule] = []
        self._released = asyncio.Event()
        self.port = 0
        self._latency_ms = latency_ms
        self._random = random.Random(seed)
        self._embedder = HashEmbedder()
        self._reranker = reranker or OverlapReranker()
        self._answers = answers or PromptAnswers(memory)
        self._tokens = tokens
        self._connections: set[asyncio.Task[None]] = set()

    def on(self, on: On, do: Do, **options: Any) -> None:
        self.rules.append(FaultRule(on, do, **options))

    def release(self) -> None:
        """Answer the requests that a rule "hold" keeps, and hold no later ones."""
        self._released.set()

    def count(self, kind: str) -> int:
        return sum(call.kind == kind for call in self.calls)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                reply = await self._reply(request, reader)
                writer.write(_encoded(reply))
                await writer.drain()
        except (DroppedError, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _reply(self, request: LLMRequest, reader: asyncio.StreamReader) -> LLMReply:
        if request.path.startswith("/admin/"):
            return self._admin(request)
        if request.path.endswith("/chat/completions"):
            return await self._model(request, reader, self._chat)
        if request.path.endswith("/embeddings"):
            return await self._model(request, reader, self._embed)
        if request.path.endswith("/rerank"):
            return await self._model(request, reader, self._rerank)
        return _error(404, f"no such path: {request.path}")

    def _admin(self, request: LLMRequest) -> LLMReply:
        match request.method, request.path:
            case "POST", "/admin/rules":
                self.rules += [FaultRule(**rule) for rule in request.body["rules"]]
                if "seed" in request.body:
                    self._random.seed(request.body["seed"])
            case "DELETE", "/admin/rules":
                self.rules.clear()
            case "GET", "/admin/calls":
                return LLMReply({"calls": [asdict(call) for call in self.calls]})
            case "DELETE", "/admin/calls":
                self.calls.clear()
            case _:
                return _error(404, f"no such path: {request.path}")
        return LLMReply({"rules": [asdict(rule) for rule in self.rules]})

    # ── faults of a rule ─────────────────────────────────────────────────────────────────────────

    async def _model(
        self, request: LLMRequest, reader: asyncio.StreamReader, behave: Any
    ) -> LLMReply:
        call = _call(request)
        self.calls.append(call)
        if self._latency_ms:
            await asyncio.sleep(self._latency_ms / 1000)
        rules = [rule for rule in self.rules if self._hits(rule, call)]
        for rule in rules:
            if rule.do == "hold":
                await self._released.wait()
            elif (reply := await _misbehave(rule, call, reader)) is not None:
                return reply
        reply = await behave(request.body, call)
        used: Mapping[str, Any] = reply.body["usage"]
        self.billed.update({name: n for name, n in used.items() if isinstance(n, int)})
        self.answered += 1
        return _spoiled(reply, {rule.do for rule in rules})

    def _hits(self, rule: FaultRule, call: LLMCall) -> bool:
        applies = rule.on in ("any", call.kind) or (rule.on == "repair" and call.repair)
        wanted = applies and rule.containing in call.prompt
        if not wanted or rule.times == 0 or self._random.random() >= rule.probability:
            return False
        if rule.times is not None:
            rule.times -= 1
        return True

    async def _chat(self, body: Any, call: LLMCall) -> LLMReply:
        text = await self._answers(call.kind, call.prompt)
        completion = _completion(text, "stop", call, self._tokens)
        return LLMReply(completion | {"usage": self.usage} if self.usage else completion)

    async def _embed(self, body: Any, call: LLMCall) -> LLMReply:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = await self._embedder.embed(texts)
        packed = body.get("encoding_format") == "base64"
        rows = [
            {"object": "embedding", "index": at, "embedding": _packed(v) if packed else v.tolist()}
            for at, v in enumerate(vectors)
        ]
        used = {"prompt_tokens": _tokens(call.prompt), "total_tokens": _tokens(call.prompt)}
        return LLMReply({"object": "list", "data": rows, "model": call.model, "usage": used})

    async def _rerank(self, body: Any, call: LLMCall) -> LLMReply:
        """Rerank in Cohere's format: best first, each text by its index."""
        scores = await self._reranker.rerank(body["query"], body["documents"])
        rows = [{"index": at, "relevance_score": score} for at, score in enumerate(scores)]
        rows.sort(key=lambda row: -row["relevance_score"])
        used = {"prompt_tokens": _tokens(call.prompt), "total_tokens": _tokens(call.prompt)}
        return LLMReply({"id": "stand-in", "results": rows[: body.get("top_n")], "usage": used})


async def _misbehave(
    rule: FaultRule, call: LLMCall, reader: asyncio.StreamReader
) -> LLMReply | None:
    """Reply that replaces the answer, or None to continue with the answer."""
    match rule.do:
        case "delay":
            await asyncio.sleep(rule.ms / 1000)
        case "hang":
            await reader.read()  # until the client disconnects
            raise DroppedError
        case "close":
            raise DroppedError
        case "400" | "401" | "429" | "500":
            wait = rule.retry_after_s
            headers = {} if wait is None else {"Retry-After": f"{wait:g}"}
            text = rule.text or f"scripted; you said: {call.prompt[-80:]}"
            return _error(int(rule.do), text, headers)
    refusal = _refusal(rule, call)
    return _error(400, refusal) if refusal else None


def _refusal(rule: FaultRule, call: LLMCall) -> str | None:
    """Message of the refusal of a parameter that the request has."""
    match rule.do:
        case "refuse_format" if call.form in rule.formats:
            name = "tools" if call.function else f"response_format type {call.form}"
            return f"{name} is not supported"
        case "refuse_limit" if call.max_tokens:
            return "'max_tokens' is too large for this model"
        case "refuse_max_tokens" if call.max_tokens:
            return UNSUPPORTED.format("max_tokens")
        case "refuse_temperature" if call.temperature is not None:
            return UNSUPPORTED.format("temperature")
        case "refuse_base64" if call.encoding_format == "base64":
            return "encoding_format must be float"
    return None


def _spoiled(reply: LLMReply, done: set[Do]) -> LLMReply:
    if "floats" in done:
        for row in reply.body["data"]:
            row["embedding"] = np.frombuffer(base64.b64decode(row["embedding"]), "<f4").tolist()
    if "malformed" in done and "results" in reply.body:
        return LLMReply(reply.body | {"results": reply.body["results"][1:]})
    if not isinstance(reply.body, dict) or "choices" not in reply.body:
        return reply
    choice = reply.body["choices"][0]
    _rewrite(choice, done)
    return reply


def _rewrite(choice: dict[str, Any], done: set[Do]) -> None:
    if "tool_calls" in choice["message"]:
        _rewrite_call(choice["message"]["tool_calls"][0]["function"], done)
        return
    if "malformed" in done:
        choice["message"]["content"] = 'I would say: {"result": "that depends"}'
    if "spread" in done:  # a form that no client knows
        choice["message"]["content"] = {"text": choice["message"]["content"]}
    if "filtered" in done:
        choice["message"]["content"] = ""
        choice["finish_reason"] = "content_filter"
    if "truncated" in done:
        content = choice["message"]["content"]
        choice["message"]["content"] = content[: len(content) // 2 + 1]
        choice["finish_reason"] = "length"


def _rewrite_call(function: dict[str, Any], done: set[Do]) -> None:
    if "malformed" in done:
        function["arguments"] = '{"result": "that depends"}'
    if "truncated" in done:
        function["arguments"] = function["arguments"][: len(function["arguments"]) // 2 + 1]


def _call(request: LLMRequest) -> LLMCall:
    body = request.body
    kind, prompt = _asked(body)
    return LLMCall(
        kind=kind,
        repair="\n## Correction\n" in prompt,
        model=body.get("model", ""),
        prompt=prompt,
        response_format=(body.get("response_format") or {}).get("type"),
        headers=request.headers,
        encoding_format=body.get("encoding_format"),
        max_tokens=body.get("max_tokens"),
        max_completion_tokens=body.get("max_completion_tokens"),
        temperature=body.get("temperature"),
        function=body["tool_choice"]["function"]["name"] if "tool_choice" in body else None,
    )


def _asked(body: Mapping[str, Any]) -> tuple[str, str]:
    """Kind of a request, and its text."""
    if "documents" in body:
        return "rerank", "\n".join([body["query"], *body["documents"]])
    if (given := body.get("messages")) is None:
        return "embed", json.dumps(body.get("input"))
    prompt = "\n".join(map(_said, given))
    return kind_of(prompt), prompt


def _said(message: Mapping[str, Any]) -> str:
    return str(message["content"])


def _completion(
    text: str, finish_reason: str, call: LLMCall, tokens: Callable[[str], int]
) -> dict[str, Any]:
    prompt_tokens, answered = tokens(call.prompt), tokens(text)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call.function:
        called = {"name": call.function, "arguments": text}
        tool = {"id": "call-1", "type": "function", "function": called}
        message |= {"content": None, "tool_calls": [tool]}
    return {
        "id": "stand-in",
        "object": "chat.completion",
        "created": 0,
        "model": call.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": answered,
            "total_tokens": prompt_tokens + answered,
        },
    }


def _packed(vector: Vector) -> str:
    return base64.b64encode(vector.tobytes()).decode()


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> LLMReply:
    return LLMReply({"error": {"message": message, "code": status}}, status, headers or {})


async def _read(reader: asyncio.StreamReader) -> LLMRequest | None:
    """The next request; None at the end of the connection. Bodies must have a Content-Length."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return LLMRequest(method, path.split("?", 1)[0], headers, json.loads(body) if body else {})


def _encoded(reply: LLMReply) -> bytes:
    body = json.dumps(reply.body).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{name}: {value}" for name, value in {**headers, **reply.headers}.items()]
    return "\r\n".join([f"HTTP/1.1 {reply.status} OK", *lines, "", ""]).encode() + body


async def _main(arguments: argparse.Namespace) -> None:
    server = LLMServer(latency_ms=arguments.latency_ms, seed=arguments.seed)
    await server.start(arguments.port)
    print(json.dumps({"port": server.port, "base_url": server.base_url}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An OpenAI-compatible stand-in")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    asyncio.run(_main(parser.parse_args()))  # noqa: TID251 (a process of its own)
