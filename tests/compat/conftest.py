"""One real stack for all clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stack import Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture
def environment(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of a client; its settings and identity files go into a folder of the test."""
    return stack.environment | {
        "HOME": str(tmp_path_factory.mktemp("home")),
        "MEMLANE_URL": stack.url,
        "MEM0_API_KEY": stack.key,
        "MEM0_BASE_URL": stack.url,
        "MEM0_TELEMETRY": "false",
    }
