"""A bounded cache in front of any embedder: facts and repeated queries come again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from pipeline.domain.vectors import Vector
from pipeline.ports import Embedder

# 1.5 kB each with 384 dimensions, 6 kB with 1,536.
CACHED_TEXTS = 2_048


class CachedEmbedder:
    """The Embedder port with the vectors of the `size` texts used last."""

    def __init__(self, embedder: Embedder, *, size: int = CACHED_TEXTS) -> None:
        self._embedder = embedder
        self._size = size
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    @property
    def name(self) -> str:
        return self._embedder.name

    async def dimensions(self) -> int:
        return await self._embedder.dimensions()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Only texts that are not cached reach the model, each once."""
        vectors = {text: vector for text in texts if (vector := self._get(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            new = dict(zip(missing, await self._embedder.embed(missing), strict=True))
            self._keep(new)
            vectors |= new
        return [vectors[text] for text in texts]

    async def close(self) -> None:
        await self._embedder.close()

    def _get(self, text: str) -> Vector | None:
        if text in self._vectors:
            self._vectors.move_to_end(text)
        return self._vectors.get(text)

    def _keep(self, vectors: Mapping[str, Vector]) -> None:
        self._vectors |= vectors
        while len(self._vectors) > self._size:
            self._vectors.popitem(last=False)
