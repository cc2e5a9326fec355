"""Hypothesis profiles: few examples for a commit, many for a nightly run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chaos")
    group.addoption("--chaos-seed", type=int, default=0, help="seed of the kills and of the load")
    group.addoption("--lane-examples", type=int, default=60, help="runs of the lane model")
