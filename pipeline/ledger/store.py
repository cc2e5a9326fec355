"""The ways in which all stores of the ledger send their statements."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncEngine

from pipeline.ledger.statements import Direct


class LedgerStore:
    """A store over one connection pool.

    `_engine`: transactions of several statements, and reads. `_single`: statements that commit by
    themselves. `_direct`: those of the hot paths, sent through the driver.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._direct = Direct(engine)


class WakingStore(LedgerStore):
    """A store that queues lanes. `grace`: time until the hint of a queued lane counts as lost."""

    def __init__(self, engine: AsyncEngine, *, grace: timedelta) -> None:
        super().__init__(engine)
        self._grace = grace
