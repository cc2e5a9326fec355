"""A fake reranker for tests: the share of the question's words that a text contains."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


class OverlapReranker:
    """The Reranker port without a model: deterministic; compares words, not meanings."""

    @property
    def name(self) -> str:
        return "fake/overlap"

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        wanted = _words(question)
        return [len(wanted & _words(text)) / (len(wanted) or 1) for text in texts]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
