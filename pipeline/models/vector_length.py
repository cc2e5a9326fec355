"""Check that an embedder's vectors have the length of those that are stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from pipeline.domain.errors import SettingRejected
from pipeline.domain.vectors import Vector
from pipeline.models.wrapped import WrappedEmbedder
from pipeline.ports import Embedder

Stored = Callable[[str], Awaitable[int | None]]


class LengthChecked(WrappedEmbedder):
    """The Embedder port that refuses vectors of another length than the stored ones.

    A server can answer with another model under the same name. Such a vector cannot be compared
    with the others: once stored, it would end the searches and decisions of its scope.

    Errors: those of the embedder; SettingRejected, so that events wait for the former model.
    """

    def __init__(self, embedder: Embedder, stored: Stored) -> None:
        """`stored`: length of the stored vectors of an embedder; None without any."""
        super().__init__(embedder)
        self._stored = stored
        self._length: int | None = None

    async def dimensions(self) -> int:
        return await self._known() or await super().dimensions()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = await super().embed(texts)
        if vectors:
            self._length = length = await self._known() or len(vectors[0])
            if len(vectors[0]) != length:
                raise SettingRejected(
                    f"{self.name}: vectors of {len(vectors[0])} dimensions instead of {length}:"
                    " another model answers under this name. Check MEMLANE_EMBEDDER__MODEL."
                )
        return vectors

    async def _known(self) -> int | None:
        """The length of the stored vectors; without any, of the first answer."""
        if self._length is None:
            self._length = await self._stored(self.name)
        return self._length
