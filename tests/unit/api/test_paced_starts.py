"""Requests that arrive together: a few begin in each iteration of the event loop."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope, Send

from api.http.paced_starts import AT_ONCE, PacedStarts


class Recorder:
    """An app that records the paths of its requests as they begin."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.paced = PacedStarts(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun.append(scope["path"])

    def send(self, path: str) -> asyncio.Task[None]:
        """Send a request to the middleware."""

        async def receive() -> Message:
            raise AssertionError("no request reads a body")

        async def answer(message: Message) -> None:
            raise AssertionError(f"no request answers: {message}")

        async def run() -> None:
            await self.paced({"type": "http", "path": path}, receive, answer)

        return asyncio.get_running_loop().create_task(run())


async def test_a_request_on_an_idle_loop_begins_at_once() -> None:
    app = Recorder()
    app.send("/v1/stats/")
    await asyncio.sleep(0)
    assert app.begun == ["/v1/stats/"]


async def test_many_requests_begin_in_order_a_few_in_each_iteration() -> None:
    app = Recorder()
    paths = [f"/v1/{number}/" for number in range(5 * AT_ONCE)]
    requests = [app.send(path) for path in paths]
    before, most = 0, 0
    while not all(request.done() for request in requests):
        await asyncio.sleep(0)
        most = max(most, len(app.begun) - before)
        before = len(app.begun)
    assert app.begun == paths
    assert 0 < most <= AT_ONCE


async def test_a_probe_overtakes_the_requests_that_wait() -> None:
    app = Recorder()
    requests = [app.send(f"/v1/{number}/") for number in range(5 * AT_ONCE)]
    probe = app.send("/healthz")
    await probe
    assert len(app.begun) <= 2 * AT_ONCE
    await asyncio.gather(*requests)
    assert len(app.begun) == 5 * AT_ONCE + 1


async def test_a_request_whose_client_left_takes_no_turn() -> None:
    app = Recorder()
    requests = [app.send(f"/v1/{number}/") for number in range(3 * AT_ONCE)]
    await asyncio.sleep(0)
    for request in requests[AT_ONCE : 2 * AT_ONCE]:
        request.cancel()
    await asyncio.gather(*requests, return_exceptions=True)
    left = {f"/v1/{number}/" for number in range(AT_ONCE, 2 * AT_ONCE)}
    assert len(app.begun) == 2 * AT_ONCE
    assert not left & set(app.begun)
    again = app.send("/v1/stats/")
    await again
    assert app.begun[-1] == "/v1/stats/"
