"""Retries, Retry-After and the circuit breaker, over a mock transport."""

from __future__ import annotations

import httpx
import pytest
from memlane_client import CircuitOpen, Missing, Rejected, Unavailable, Unreachable
from memlane_client.calls import Call, Circuit, Retries, drive, drive_async, send

GET = Call("GET", "/v1/ping/")
BUSY = httpx.Response(503, headers={"Retry-After": "2"}, json={"error": "busy", "code": "BUSY"})


class Server:
    """Answers in order, an exception is raised; counts requests and keeps the pauses."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.requests, self.pauses = list(answers), 0, list[float]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(
            answer.status_code, headers=answer.headers, content=answer.content, request=request
        )

    def run(
        self, call: Call = GET, *, retries: Retries | None = None, circuit: Circuit | None = None
    ) -> httpx.Response:
        flow = send(call, retries=retries or Retries(), circuit=circuit or Circuit())
        with httpx.Client(transport=httpx.MockTransport(self), base_url="http://memlane") as http:
            return drive(flow, http, pause=self.pauses.append)


def test_a_call_is_repeated_after_the_seconds_that_the_server_names() -> None:
    server = Server(BUSY, httpx.Response(200, json={}))
    assert server.run().status_code == 200
    assert server.pauses == [2.0]


def test_pauses_grow_and_have_a_bound() -> None:
    server = Server(httpx.ConnectError("refused"))
    with pytest.raises(Unreachable):
        server.run(
            retries=Retries(attempts=6, first_s=1.0, longest_s=4.0), circuit=Circuit(threshold=9)
        )
    assert server.requests == 6
    assert all(
        least <= pause <= 2 * least
        for least, pause in zip([0.5, 1, 2, 2, 2], server.pauses, strict=True)
    )


def test_a_retry_after_beyond_the_bound_is_not_waited_for() -> None:
    server = Server(httpx.Response(429, headers={"Retry-After": "600"}))
    with pytest.raises(Unavailable) as caught:
        server.run()
    assert (caught.value.retry_after_s, server.requests, server.pauses) == (600.0, 1, [])


@pytest.mark.parametrize(
    ("status", "kind"), [(400, Rejected), (404, Missing), (409, Rejected), (422, Rejected)]
)
def test_an_error_that_stays_is_raised_at_once(status: int, kind: type[Exception]) -> None:
    server = Server(httpx.Response(status, json={"error": "no user_id", "code": "INVALID_INPUT"}))
    with pytest.raises(kind, match=f"{status}: no user_id"):
        server.run()
    assert server.requests == 1


def test_a_call_that_is_not_repeatable_is_sent_once() -> None:
    server = Server(BUSY)
    with pytest.raises(Unavailable):
        server.run(Call("DELETE", "/x", repeatable=False))
    assert server.requests == 1


def test_the_circuit_opens_after_failures_in_a_row_and_lets_one_probe_through() -> None:
    now = [0.0]
    circuit = Circuit(threshold=3, open_s=5.0, clock=lambda: now[0])
    server = Server(httpx.ConnectError("refused"))
    once = Retries(attempts=1)
    for _ in range(3):
        with pytest.raises(Unreachable):
            server.run(retries=once, circuit=circuit)
    with pytest.raises(CircuitOpen):
        server.run(retries=once, circuit=circuit)
    assert server.requests == 3
    now[0] = 5.0
    circuit.check()  # the probe
    with pytest.raises(CircuitOpen):
        circuit.check()
    circuit.succeeded()
    circuit.check()


def test_busy_is_no_failure_of_the_circuit() -> None:
    circuit = Circuit(threshold=1)
    with pytest.raises(Unavailable):
        Server(httpx.Response(429)).run(retries=Retries(attempts=1), circuit=circuit)
    circuit.check()


async def test_both_drivers_run_the_same_flow() -> None:
    server, pauses = Server(BUSY, httpx.ConnectError("refused"), httpx.Response(200, json={})), []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    transport = httpx.MockTransport(server)
    async with httpx.AsyncClient(transport=transport, base_url="http://memlane") as http:
        flow = send(GET, retries=Retries(), circuit=Circuit())
        assert (await drive_async(flow, http, pause=pause)).status_code == 200
    assert len(pauses) == 2


@pytest.mark.parametrize("body", [b"<html>", b'"text"', b"[]", b'{"error": null}'])
def test_an_error_of_another_server_has_a_message(body: bytes) -> None:
    with pytest.raises(Unavailable, match="502: Bad Gateway"):
        Server(httpx.Response(502, content=body)).run(retries=Retries(attempts=1))
