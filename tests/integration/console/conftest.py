"""A signed-in browser at a service; tests run the queued work themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.api_service import Service
from tests.support.console_client import Browser, browsing


@pytest.fixture
async def browser(service: Service) -> AsyncIterator[Browser]:
    async with browsing(service.app, service.key) as signed_in:
        yield signed_in
