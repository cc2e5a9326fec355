"""RabbitMQ for the tests of the fleet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.rabbitmq import RabbitMQ


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    with RabbitMQ(tmp_path_factory.mktemp("rabbitmq")) as server:
        yield server
