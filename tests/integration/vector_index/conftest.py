"""Fixtures of the tests of the vector index."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _in_index(few_in_index: None) -> None:
    """Search the index also for few memories, which are compared from the ledger otherwise."""
