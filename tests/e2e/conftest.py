"""One real stack, shared by the tests that do not damage it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.stack import Client, Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[Client]:
    async with stack.client() as made:
        yield made
