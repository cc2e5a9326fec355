"""External servers of a fleet: PostgreSQL and RabbitMQ of their own, vectors in pgvector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.stack.servers import Postgres
from tests.support.rabbitmq import RabbitMQ


@dataclass(frozen=True, slots=True)
class Servers:
    """The running servers, and the settings with which Memlane uses them."""

    postgres: Postgres
    rabbitmq: RabbitMQ

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "MEMLANE_DATABASE_URL": self.postgres.url,
            "MEMLANE_BROKER_URL": self.rabbitmq.url,
            "MEMLANE_VECTORS": "pgvector",
        }


@contextmanager
def servers(root: Path) -> Iterator[Servers]:
    with Postgres(root / "postgres") as postgres, RabbitMQ(root / "rabbitmq") as rabbitmq:
        yield Servers(postgres, rabbitmq)
