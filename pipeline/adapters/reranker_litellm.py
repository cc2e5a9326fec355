"""Rerankers of any provider LiteLLM knows: a model that reads question and text together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pipeline.adapters.litellm_client import LiteLLMClient
from pipeline.adapters.provider_calls import RetryPolicy
from pipeline.domain.errors import MalformedAnswer

# About a thousand tokens: what is longer is cut in pieces there, each read like a text of its own.
# Source: https://jina.ai/models/jina-reranker-v2-base-multilingual (1,024 with the question)
LONGEST = 4_000
# Somebody waits for the search: a second try where there is time for one, and no more.
TRIES = 2


class LiteLLMReranker:
    """The Reranker port over LiteLLM: `model` is a name such as `cohere/rerank-v3.5`.

    `timeout_s` bounds the whole call, a second try included.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 5.0,
    ) -> None:
        self._client = LiteLLMClient(
            model,
            api_base=api_base,
            api_key=api_key,
            timeout_s=timeout_s,
            retry=RetryPolicy(tries=TRIES, total_s=timeout_s),
        )

    @property
    def name(self) -> str:
        return self._client.model

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        # An empty text is refused by some; a space is read.
        documents = [text[:LONGEST] or " " for text in texts]
        response = await self._client.call(
            "arerank", query=question, documents=documents, top_n=len(documents)
        )
        return shares(self._scores(response, len(documents)))

    def _scores(self, response: Any, count: int) -> list[float]:
        try:
            rows = [(row["index"], float(row["relevance_score"])) for row in response.results or ()]
        except (KeyError, TypeError, ValueError):
            rows = []
        scores = dict(rows)
        whole = len(rows) == count and set(scores) == set(range(count))
        if not whole or not all(map(math.isfinite, scores.values())):
            raise MalformedAnswer(f"{self.name}: not one score for each text")
        return [scores[at] for at in range(count)]


def shares(scores: list[float]) -> list[float]:
    """0..1 in the same order. Some servers tell logits: those go through the logistic function,
    by which such models are trained.
    """
    if all(0 <= score <= 1 for score in scores):
        return scores
    return [(1 + math.tanh(score / 2)) / 2 for score in scores]
