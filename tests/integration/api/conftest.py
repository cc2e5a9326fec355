"""Log lines of the tests of the API."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    """Log lines of a test, captured instead of printed."""
    with capture_logs() as lines:
        yield lines
