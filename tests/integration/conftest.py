"""Services of the API: one for each test, or one for all tests that change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pipeline.search import dense
from pipeline.stores import Ledger
from tests.support.api_service import Service, serving


@pytest.fixture
async def service(ledger: Ledger) -> AsyncIterator[Service]:
    async with serving(ledger) as built:
        yield built


@pytest.fixture
async def staffed(ledger: Ledger) -> AsyncIterator[Service]:
    """A service whose workers run at once, for requests that wait for a result."""
    async with serving(ledger, workers=True) as built:
        yield built


@pytest.fixture(scope="module")
async def shared(module_ledger: Ledger) -> AsyncIterator[Service]:
    """One service for all tests that change nothing."""
    async with serving(module_ledger) as built:
        yield built


@pytest.fixture
def few_in_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search few memories in the index, as many are."""
    monkeypatch.setattr(dense, "FEW", -1)
