"""One real stack, shared by the tests that do not damage it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack

import pytest

from tests.support.composed_stack import ComposedStack
from tests.support.fleet import servers
from tests.support.stack import Client, Stack


@pytest.fixture(scope="session")
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    if request.config.getoption("--containers"):
        with ComposedStack(tmp_path_factory.mktemp("stack")) as composed:
            yield composed
        return
    with ExitStack() as outside:
        settings: Mapping[str, str] = {}
        if request.config.getoption("--external"):
            root = tmp_path_factory.mktemp("servers")
            settings = outside.enter_context(servers(root)).settings
        yield outside.enter_context(Stack(tmp_path_factory.mktemp("stack"), settings))


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[Client]:
    async with stack.client() as made:
        yield made
