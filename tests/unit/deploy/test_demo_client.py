"""HTTP calls of the demo, and its messages when no server answers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import pytest

from deploy.demo.__main__ import key
from deploy.demo.client import DemoClient
from deploy.demo.crash import WORKER, worker
from deploy.demo.failure import DemoError
from deploy.demo.story import load
from deploy.stack.journal import Journal
from deploy.stack.layout import Layout
from pipeline.settings import Settings

URL = "http://127.0.0.1:8000"


def test_an_add_carries_key_scope_and_the_day_it_was_said() -> None:
    heard: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        heard.append(request)
        return httpx.Response(200, json={"event_id": "e1", "status": "PENDING"})

    with DemoClient(URL, "secret", transport=httpx.MockTransport(answer)) as client:
        said_at = load().sessions[0].at
        got = client.add([{"role": "user", "content": "Hi"}], timestamp=said_at, user_id="maya-1")
    assert (got.event_id, got.status) == ("e1", "PENDING")
    assert got.ms > 0
    assert heard[0].headers["authorization"] == "Token secret"
    assert json.loads(heard[0].content) == {
        "messages": [{"role": "user", "content": "Hi"}],
        "user_id": "maya-1",
        "timestamp": "2026-03-02T18:30:00+00:00",
    }


def test_an_unreachable_server_is_reported_with_the_remedy() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with (
        DemoClient(URL, "secret", transport=httpx.MockTransport(refuse)) as client,
        pytest.raises(DemoError, match=r"Nothing answers at http://127.0.0.1:8000 .*make up"),
    ):
        client.ping()


def test_a_refusal_is_shown_with_its_status() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(401, json={"detail": "Unknown key."}))
    with (
        DemoClient(URL, "secret", transport=transport) as client,
        pytest.raises(DemoError, match=r"GET /v1/ping/ answered 401: .*Unknown key"),
    ):
        client.ping()


def test_without_a_key_file_the_remedy_is_make_up(tmp_path: Path) -> None:
    with pytest.raises(DemoError, match="make up"):
        key(Layout(tmp_path))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Data directory of a stack that has recorded the test's own process as its worker."""
    layout = Layout(tmp_path)
    layout.create()
    Journal(layout, Settings(port=8000)).started(WORKER, os.getpid())
    return layout


def test_the_worker_is_the_process_of_the_pid_file_that_the_stack_started(layout: Layout) -> None:
    process = worker(layout, URL)
    assert process is not None
    assert process.pid == os.getpid()


def test_a_worker_of_another_stack_is_not_ours_to_kill(layout: Layout) -> None:
    assert worker(layout, "http://127.0.0.1:9999") is None


def test_a_pid_file_that_names_a_stranger_is_not_believed(layout: Layout) -> None:
    layout.pid_file(WORKER).write_text("1\n")
    assert worker(layout, URL) is None


def test_no_stack_has_no_worker(tmp_path: Path) -> None:
    assert worker(Layout(tmp_path), URL) is None
