"""Path search: follow relations in the ledger, or in a graph server that mirrors it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pipeline.graph.outbox import GraphOutbox
from pipeline.graph.ports import GraphIndex, GraphMirror, WalkRequest
from pipeline.graph.sql import statement
from pipeline.ledger.row_values import columns_of
from pipeline.ledger.store import LedgerStore


class LedgerPathSearch(LedgerStore):
    """The GraphIndex port in PostgreSQL: one recursive statement."""

    async def walk(self, request: WalkRequest) -> list[Sequence[UUID]]:
        """Paths of relations, as their ids; see path_search.sql."""
        values = {
            "lanes": list(request.lanes),
            "names": list(request.names),
            "ids": list(request.ids),
            "hub": request.hub or request.fan,
            **columns_of(request, "hops", "fan", "most"),
            **columns_of(request.times, "as_of", "valid_at"),
        }
        return [row.path for row in await self._direct.rows(statement("path_search"), values)]


class MirroredPathSearch:
    """The GraphIndex port over a graph server, for lanes of which it has every change.

    Other lanes are read from the ledger, so a relation is found from its commit on.
    """

    def __init__(self, mirror: GraphMirror, outbox: GraphOutbox, ledger: GraphIndex) -> None:
        self._mirror = mirror
        self._outbox = outbox
        self._ledger = ledger

    async def walk(self, request: WalkRequest) -> list[Sequence[UUID]]:
        """Paths of relations, as their ids. Errors: StoreUnavailable."""
        whole = await self._outbox.covers(self._mirror.name, request.project_id, request.lanes)
        return await (self._mirror if whole else self._ledger).walk(request)
