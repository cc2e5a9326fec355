"""A tenant of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pipeline.stores import Ledger
from tests.support.api_service import (
    serving,
)
from tests.support.tenant import Tenant


@pytest.fixture
async def tenant(ledger: Ledger) -> AsyncIterator[Tenant]:
    async with serving(ledger) as service:
        yield Tenant(service, service.client)
