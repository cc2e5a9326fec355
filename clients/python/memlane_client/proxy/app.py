"""The proxy as an ASGI application."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from memlane_client.client import AsyncMemlane
from memlane_client.errors import MemlaneError, NotEnded
from memlane_client.proxy.dialects import DIALECTS, Body, Dialect, Reply, documents, parsed
from memlane_client.proxy.recall import Recall, Recalled
from memlane_client.proxy.settings import ProxySettings
from memlane_client.tickets import AsyncTicket

# Headers of one connection, and those that the proxy sets again.
OWN_HEADERS = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
    *("transfer-encoding", "upgrade", "host", "content-length", "accept-encoding"),
}
OURS = "x-memlane-"
METHODS = ["GET", "POST", "DELETE", "PUT", "PATCH"]
CONNECT_S, SILENCE_S = 10.0, 600.0
# nginx's status for a client that closed the connection.
CLIENT_LEFT = 499
# A reply longer than this is stored up to here; the client gets all of it.
MOST_REPLY_BYTES = 4_000_000
MOST_TICKETS = 10_000
RECEIPT_S = 20.0
NO_USER = Recalled("", "skipped; no user")
NO_TEXT = Recalled("", "skipped; no message of a user")


@dataclass(slots=True)
class Turn:
    """The part of a request that is stored after its response."""

    dialect: Dialect
    user_id: str
    question: Body
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def key(self, reply: Reply, messages: list[Body]) -> str:
        """The Idempotency-Key: equal for the same response of the provider, and for no other.

        The texts are a part of it, because some servers repeat the ids of their responses.
        """
        parts = [self.dialect.name, reply.id or self.token, self.user_id, messages]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(slots=True)
class Proxy:
    """Forwards requests; searches before and adds after those of a chat."""

    settings: ProxySettings
    memlane: AsyncMemlane
    provider: httpx.AsyncClient
    recall: Recall
    not_stored: int = 0
    _tickets: OrderedDict[str, asyncio.Future[AsyncTicket | None]] = field(
        default_factory=OrderedDict
    )
    _adds: set[asyncio.Task[None]] = field(default_factory=set)

    async def forward(self, request: Request) -> Response:
        """Send the request to its provider; pass the response on, unchanged."""
        content = await request.body()
        content, turn, recalled = await self._prepared(request, content)
        ours = {"X-Memlane-Search": recalled.report} if recalled else {}
        try:
            response = await self._response(request, self._outgoing(request, content))
        except httpx.TransportError as error:
            message = f"The provider did not respond ({type(error).__name__})."
            return JSONResponse({"error": {"message": message}}, 502, headers=ours)
        if response is None:
            return Response(status_code=CLIENT_LEFT)
        if not response.is_success:
            turn = None
        if turn is not None:
            self._begin_turn(turn)
            ours["X-Memlane-Event"] = f"/memlane/events/{turn.token}"
        answer = StreamingResponse(self._passed_on(response, turn), response.status_code)
        answer.raw_headers = [
            *(pair for pair in response.headers.raw if _name(pair) not in RESPONSE_ONLY),
            *((name.lower().encode(), value.encode()) for name, value in ours.items()),
        ]
        return answer

    async def event(self, request: Request) -> Response:
        """The receipt of a turn, by the token in its `X-Memlane-Event`; waits up to 20 s."""
        token = request.path_params["token"]
        if token not in self._tickets:
            return JSONResponse({"error": "No turn of this proxy has this token."}, 404)
        waiting = asyncio.shield(self._tickets[token])
        try:
            ticket = await asyncio.wait_for(waiting, RECEIPT_S)
        except TimeoutError:
            return JSONResponse({"status": "STREAMING"})
        if ticket is None:
            return JSONResponse({"error": "This turn added nothing."}, 404)
        try:
            event_id = await ticket.event_id(RECEIPT_S)
            receipt = await self.memlane.event(event_id, wait=RECEIPT_S)
        except NotEnded:
            return JSONResponse({"status": "QUEUED"})
        except MemlaneError as error:
            return JSONResponse({"error": str(error)}, 503)
        return JSONResponse(receipt.model_dump(mode="json"))

    async def health(self, _: Request) -> Response:
        """The state of the outbox. 200 while the proxy forwards, also without Memlane."""
        status = await asyncio.to_thread(self.memlane.outbox_status)
        assert status is not None
        return JSONResponse(
            {"status": "ok", "pending": status.pending, "refused": status.refused}
            | {"blocked": status.blocked, "not_stored": self.not_stored}
        )

    async def settled(self) -> None:
        """Wait until the adds of all finished responses are in the outbox."""
        while self._adds:
            await asyncio.gather(*self._adds)

    async def _prepared(
        self, request: Request, content: bytes
    ) -> tuple[bytes, Turn | None, Recalled | None]:
        """The content to send, the turn to store, and the search; a request without chat as is."""
        dialect = DIALECTS.get(request.url.path) if request.method == "POST" else None
        body = parsed(content) if dialect else None
        if dialect is None or body is None:
            return content, None, None
        user_id = _header_text(request.headers.get("x-memlane-user")) or dialect.user_of(body)
        user_id = user_id or self.settings.user
        if not user_id:
            return content, None, NO_USER
        conversation = dialect.conversation(body)
        if not conversation:
            return content, None, NO_TEXT
        goes_on = dialect.goes_on(body)
        recalled = await self.recall.memories(conversation, user_id, goes_on=goes_on)
        if recalled.context:
            content = _as_json(dialect.with_memories(body, recalled.context))
        return content, Turn(dialect, user_id, conversation[-1]), recalled

    def _outgoing(self, request: Request, content: bytes) -> httpx.Request:
        """The request to the provider: the client's path, query and headers, without ours."""
        anthropic = "anthropic-version" in request.headers
        anthropic = anthropic or request.url.path.startswith("/v1/messages")
        base = self.settings.anthropic if anthropic else self.settings.openai
        # The encoded path: a decoded one could name another resource.
        path = request.scope["raw_path"].decode(errors="replace")
        query = f"?{request.url.query}" if request.url.query else ""
        headers = [
            pair
            for pair in request.headers.raw
            if _name(pair) not in OWN_HEADERS and not _name(pair).startswith(OURS)
        ]
        # The bytes pass through as they are, and the proxy reads them: no compression.
        headers.append((b"accept-encoding", b"identity"))
        return self.provider.build_request(
            request.method,
            f"{base.rstrip('/')}{path}{query}",
            headers=headers,
            content=content,
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
        )

    async def _response(self, request: Request, outgoing: httpx.Request) -> httpx.Response | None:
        """The provider's response, once it begins; None if the client leaves before that.

        The request to the provider is cancelled then: no client would read its response, which must
        not be stored as said either.
        """
        sending = asyncio.create_task(self.provider.send(outgoing, stream=True))
        leaving = asyncio.create_task(_left(request))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            return await sending if sending.done() else None
        finally:
            sending.cancel()
            leaving.cancel()

    async def _passed_on(self, response: httpx.Response, turn: Turn | None) -> AsyncIterator[bytes]:
        """The provider's bytes; then the add. A client that leaves ends the turn as well."""
        parts: list[bytes] = []
        size = 0
        try:
            async for chunk in response.aiter_raw():
                if turn is not None and size < MOST_REPLY_BYTES:
                    parts.append(chunk)
                    size += len(chunk)
                yield chunk
        finally:
            # A task, because this one is cancelled if the client leaves.
            task = asyncio.create_task(self._finish(response, turn, parts))
            self._adds.add(task)
            task.add_done_callback(self._adds.discard)

    async def _finish(
        self, response: httpx.Response, turn: Turn | None, parts: list[bytes]
    ) -> None:
        """Close the connection, and store the turn."""
        await response.aclose()
        if turn is not None:
            ticket = await self._remember(turn, _decoded(response, b"".join(parts)))
            self._end_turn(turn, ticket)

    async def _remember(self, turn: Turn, content: bytes) -> AsyncTicket | None:
        """Add the user's message and the reply, unless the turn goes on with calls of tools."""
        reply = await asyncio.to_thread(lambda: turn.dialect.reply(list(documents(content))))
        if reply.calls_tools or not reply.text.strip():
            return None
        messages = [turn.question, {"role": "assistant", "content": reply.text}]
        try:
            return await self.memlane.add(
                messages, user_id=turn.user_id, idempotency_key=turn.key(reply, messages)
            )
        except (MemlaneError, OSError, ValueError):
            self.not_stored += 1
            return None

    def _begin_turn(self, turn: Turn) -> None:
        """Keep a place for the ticket of this turn."""
        self._tickets[turn.token] = asyncio.get_running_loop().create_future()
        if len(self._tickets) > MOST_TICKETS:
            oldest = self._tickets.popitem(last=False)[1]
            if not oldest.done():
                oldest.set_result(None)

    def _end_turn(self, turn: Turn, ticket: AsyncTicket | None) -> None:
        """Give the turn's ticket to the requests that wait for it; None if nothing was added."""
        future = self._tickets.get(turn.token)
        if future is not None and not future.done():
            future.set_result(ticket)


# The stream has its own framing.
RESPONSE_ONLY = {"connection", "keep-alive", "transfer-encoding"}


def _as_json(body: Body) -> bytes:
    """A body as JSON; a half of a surrogate pair in it stays as it is, which only escapes can."""
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body).encode()


async def _left(request: Request) -> None:
    """Wait until the client closes the connection. The body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _header_text(value: str | None) -> str | None:
    """The value of a header that was read as Latin-1; most clients send UTF-8."""
    try:
        return value and value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


def _name(header: tuple[bytes, bytes]) -> str:
    return header[0].decode("latin-1").lower()


def _decoded(response: httpx.Response, content: bytes) -> bytes:
    """The content without compression, which some providers use unasked."""
    encoding = response.headers.get("content-encoding")
    if encoding is None:
        return content
    try:
        return httpx.Response(200, headers={"content-encoding": encoding}, content=content).content
    except httpx.DecodingError:
        return b""


def create_app(proxy: Proxy) -> Starlette:
    """The routes: health, receipts, and everything else to the providers."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await proxy.settled()
        await proxy.provider.aclose()
        await proxy.memlane.close()

    return Starlette(
        routes=[
            Route("/healthz", proxy.health),
            Route("/memlane/events/{token}", proxy.event),
            Route("/{path:path}", proxy.forward, methods=METHODS),
        ],
        lifespan=lifespan,
    )


def build(
    settings: ProxySettings, memlane: AsyncMemlane, provider: httpx.AsyncClient | None = None
) -> Starlette:
    """A proxy with its clients.

    The provider's client follows no redirect and keeps no cookie, which another caller would send.
    """
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    http = provider or httpx.AsyncClient(cookies=no_cookies)
    recall = Recall(memlane, settings.max_tokens, settings.search_timeout_s)
    return create_app(Proxy(settings, memlane, http, recall))
