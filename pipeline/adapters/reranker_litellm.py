"""Rerankers of any provider that LiteLLM supports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pipeline.adapters.litellm_client import LiteLLMClient
from pipeline.adapters.provider_calls import RemoteModel, RetryPolicy
from pipeline.domain.errors import MalformedAnswer

# Maximum length of a text, about a thousand tokens: a provider splits longer texts into pieces.
# Source: https://jina.ai/models/jina-reranker-v2-base-multilingual (1,024 with the question)
LONGEST = 4_000
# Number of tries. A client waits for the search, so there is at most one retry.
TRIES = 2


class LiteLLMReranker:
    """The Reranker port over LiteLLM, for a model such as `cohere/rerank-v3.5`.

    The model's `timeout_s` is the limit of the whole call, including the second try.
    """

    def __init__(self, remote: RemoteModel) -> None:
        policy = RetryPolicy(tries=TRIES, total_s=remote.timeout_s)
        self._client = LiteLLMClient(replace(remote, retry=policy))

    @property
    def name(self) -> str:
        return self._client.model

    async def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        # Some providers refuse an empty text; a space is accepted.
        documents = [text[:LONGEST] or " " for text in texts]
        response = await self._client.call(
            "arerank", query=question, documents=documents, top_n=len(documents)
        )
        return shares(self._scores(response, len(documents)))

    def _scores(self, response: Any, count: int) -> list[float]:
        """The scores in the order of the texts. Errors: MalformedAnswer unless each has one."""
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
    """Scores from 0 to 1 in the same order; logits, which some servers return, are converted.

    The conversion is the logistic function, with which such models are trained.
    """
    if all(0 <= score <= 1 for score in scores):
        return scores
    return [(1 + math.tanh(score / 2)) / 2 for score in scores]
