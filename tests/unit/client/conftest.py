"""A fake of the API for tests of the outbox."""

from __future__ import annotations

import pytest

from tests.support.outbox_api import FakeApi


@pytest.fixture
def api() -> FakeApi:
    """A fake of the API."""
    return FakeApi()
