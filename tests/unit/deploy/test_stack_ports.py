"""Ports of the stack: free, outside the kernel's ephemeral range, and the same at each start."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.stack import ports


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((ports.HOST, ports.choose())) as server:
        yield server.getsockname()[1]


def test_a_port_that_another_process_listens_on_has_a_problem(taken: int) -> None:
    assert ports.problem(taken) == "another program is listening on it"


def test_a_chosen_port_is_free_and_not_reserved() -> None:
    reserved = set(ports.candidates()[:5_000])
    chosen = ports.choose(reserved)
    assert chosen not in reserved
    assert ports.problem(chosen) is None


def test_processes_with_the_same_random_seed_choose_different_ports() -> None:
    chosen = set()
    for _ in range(3):
        random.seed(1)
        chosen.add(ports.choose())
    assert len(chosen) > 1


def test_chosen_ports_lie_outside_the_ephemeral_range() -> None:
    if not ports.EPHEMERAL_FILE.exists():
        pytest.skip("no /proc")
    first = int(ports.EPHEMERAL_FILE.read_text().split()[0])
    if first - ports.LOWEST < 1_000:
        pytest.skip("the ephemeral range of this machine leaves no room")
    assert ports.choose() < first


def test_ports_are_remembered_while_free(tmp_path: Path) -> None:
    book = tmp_path / "ports.json"
    first = ports.remembered(book, ["redis", "chroma"], reserved=())
    assert len(set(first.values())) == 2
    assert ports.remembered(book, ["redis", "chroma"], reserved=()) == first


def test_a_saved_port_that_another_process_has_taken_is_replaced(
    tmp_path: Path, taken: int
) -> None:
    book = tmp_path / "ports.json"
    book.write_text(json.dumps({"redis": taken}))
    assert ports.remembered(book, ["redis"], reserved=())["redis"] != taken


def test_a_remembered_port_that_the_api_wants_now_is_replaced(tmp_path: Path) -> None:
    book = tmp_path / "ports.json"
    port = ports.remembered(book, ["redis"], reserved=())["redis"]
    assert ports.remembered(book, ["redis"], reserved={port})["redis"] != port


def test_a_server_left_out_once_keeps_its_port(tmp_path: Path) -> None:
    book = tmp_path / "ports.json"
    port = ports.remembered(book, ["redis"], reserved=())["redis"]
    ports.remembered(book, ["chroma"], reserved=())
    assert ports.remembered(book, ["redis"], reserved=())["redis"] == port


@pytest.mark.parametrize("text", ["", "{half", "[]", '{"redis": "x"}'])
def test_a_broken_file_of_ports_is_replaced(tmp_path: Path, text: str) -> None:
    book = tmp_path / "ports.json"
    book.write_text(text)
    assert ports.problem(ports.remembered(book, ["redis"], reserved=())["redis"]) is None
