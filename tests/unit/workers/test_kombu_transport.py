"""Reconnection to the broker: at most two seconds between two attempts."""

from __future__ import annotations

import pytest
from kombu.exceptions import OperationalError
from kombu.utils import functional
from pydantic import SecretStr

from deploy.stack import ports
from pipeline.settings import Settings
from workers.app import make_app


def test_an_absent_broker_is_tried_every_two_seconds_at_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unreachable = SecretStr(f"redis://127.0.0.1:{ports.choose()}/0")
    pauses: list[float] = []
    monkeypatch.setattr(functional, "sleep", lambda _: None)
    connection = make_app(Settings(broker_url=unreachable)).connection_for_read()
    with pytest.raises(OperationalError):
        connection.ensure_connection(lambda _, pause: pauses.append(pause), max_retries=30)
    assert len(pauses) == 30
    assert max(pauses) <= 2
