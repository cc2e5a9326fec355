"""Migrations of a release that does not exist: each kind of step that a migration may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import migrate

FOLDER = Path(__file__).parent
FILL, NEWEST = "9003", "9006"


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the migrations of this folder after the newest."""
    monkeypatch.setattr(migrate, "VERSIONS", (*migrate.VERSIONS, FOLDER))
