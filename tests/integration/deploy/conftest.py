"""Local stacks of a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.stack import ports
from deploy.stack.layout import Layout
from tests.support.local_stack import STAND_IN, LocalStack


@pytest.fixture
def make_stack(tmp_path: Path) -> Iterator[Callable[[str], LocalStack]]:
    stand_in = tmp_path / "stand_in.py"
    stand_in.write_text(STAND_IN)
    made: list[LocalStack] = []

    def make(name: str) -> LocalStack:
        table = {
            "migrate": [str(stand_in), "migrate", "{key_file}"],
            "api": [str(stand_in), "api"],
            "worker": [str(stand_in), "worker", "{ready_file}"],
            "sweeper": [str(stand_in), "sweeper", "{ready_file}"],
        }
        programs = tmp_path / f"{name}.json"
        programs.write_text(json.dumps(table))
        made.append(LocalStack(Layout(tmp_path / name), ports.choose(), programs, {}))
        return made[-1]

    yield make
    for stack in made:
        stack.cli("down")


@pytest.fixture
def stack(make_stack: Callable[[str], LocalStack]) -> LocalStack:
    return make_stack("data")
