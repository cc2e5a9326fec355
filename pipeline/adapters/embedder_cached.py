"""LRU cache in front of an embedder, for facts and queries that repeat."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from pipeline.domain.vectors import Vector
from pipeline.models.wrapped import WrappedEmbedder
from pipeline.ports import Embedder

# Number of cached texts: 1.5 kB each for 384 dimensions, 6 kB for 1,536.
CACHED_TEXTS = 2_048


class CachedEmbedder(WrappedEmbedder):
    """The Embedder port with a cache of the `size` most recently used texts."""

    def __init__(self, embedder: Embedder, *, size: int = CACHED_TEXTS) -> None:
        super().__init__(embedder)
        self._size = size
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts; only those that are not cached are sent to the model, each once."""
        vectors = {text: vector for text in texts if (vector := self._get(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            new = dict(zip(missing, await self._embedder.embed(missing), strict=True))
            vectors |= new
            self._vectors |= new
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
        return [vectors[text] for text in texts]

    def _get(self, text: str) -> Vector | None:
        if text in self._vectors:
            self._vectors.move_to_end(text)
        return self._vectors.get(text)
