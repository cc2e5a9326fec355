"""Probes of workers and sweepers: /livez, /readyz and /metrics."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest

from workers import probes as module
from workers.probes import Probes

HOST = "127.0.0.1"


class State:
    ready = False


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def probes(state: State) -> Iterator[Probes]:
    running = Probes(HOST, 0, lambda: state.ready)
    yield running
    running.close()


def get(probes: Probes, path: str, **headers: str) -> httpx.Response:
    return httpx.get(f"http://{HOST}:{probes.port}{path}", headers=headers)


def test_a_process_is_alive_before_it_is_ready(probes: Probes, state: State) -> None:
    assert get(probes, "/livez").status_code == 200
    assert get(probes, "/readyz").status_code == 503
    state.ready = True
    assert get(probes, "/readyz").status_code == 200
    assert get(probes, "/other").status_code == 404


def test_metrics_are_those_of_the_process(probes: Probes) -> None:
    answer = get(probes, "/metrics")
    assert answer.status_code == 200
    assert "memlane_lanes_swept" in answer.text


@pytest.mark.parametrize(
    ("token", "sent", "status"),
    [
        (None, "", 403),
        ("right", "", 401),
        ("right", "Bearer wrong", 401),
        ("right", "Bearer right", 200),
    ],
)
def test_metrics_that_other_hosts_reach_need_the_token(
    monkeypatch: pytest.MonkeyPatch, token: str | None, sent: str, status: int
) -> None:
    monkeypatch.setattr(module, "is_loopback", lambda _: False)
    probes = Probes(HOST, 0, lambda: True, token=token)
    try:
        assert get(probes, "/metrics", Authorization=sent).status_code == status
        assert get(probes, "/livez").status_code == 200
    finally:
        probes.close()


def test_a_client_that_sends_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold the only thread."""
    monkeypatch.setattr(module, "CLIENT_S", 0.1)
    probes = Probes(HOST, 0, lambda: True)
    try:
        with socket.create_connection((HOST, probes.port)) as idle:
            assert idle.recv(1) == b""
        assert get(probes, "/livez").status_code == 200
    finally:
        probes.close()
