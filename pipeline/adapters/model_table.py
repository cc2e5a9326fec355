"""LiteLLM's table of chat models, read from its file: LiteLLM itself is not imported.

The import takes seconds of CPU and 150 MB in each process, the file 40 ms.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from pipeline.adapters import litellm_client

FILE = "model_prices_and_context_window_backup.json"
CHATS = frozenset({"chat", "completion", "responses"})


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A model that LiteLLM knows. Prices: dollars a token of text; None if there are none.

    `schema`, `functions`: it can answer with a JSON schema, or with the arguments of a function.
    """

    max_output_tokens: int | None
    schema: bool
    functions: bool
    input_usd: float | None
    cached_usd: float | None
    output_usd: float | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ChatModel:
        """Read a row of the table."""
        input_usd = row.get("input_cost_per_token")
        return cls(
            row.get("max_output_tokens"),
            bool(row.get("supports_response_schema")),
            bool(row.get("supports_function_calling")),
            input_usd,
            row.get("cache_read_input_token_cost", input_usd),
            row.get("output_cost_per_token"),
        )

    def price(self, usage: Mapping[str, Any]) -> float | None:
        """Dollars for the usage in an answer of OpenAI's API; None if the price is unknown.

        It is the price of a prompt of usual length (some models have another one above 128,000
        tokens) without options of the provider. Errors: TypeError, ValueError for no numbers.
        """
        if self.input_usd is None or self.cached_usd is None or self.output_usd is None:
            return None
        prompt = int(usage.get("prompt_tokens") or 0)
        cached = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
        return (
            (prompt - cached) * self.input_usd
            + cached * self.cached_usd
            + int(usage.get("completion_tokens") or 0) * self.output_usd
        )


async def known_models() -> Mapping[str, ChatModel]:
    """All chat models of the table, by their LiteLLM names."""
    return _models() if _models.cache_info().currsize else await asyncio.to_thread(_models)


@cache
def _models() -> Mapping[str, ChatModel]:
    return {name: ChatModel.of(row) for name, row in _rows().items() if row.get("mode") in CHATS}


def _rows() -> Mapping[str, Mapping[str, Any]]:
    """All rows of the table. A LiteLLM without the file is imported."""
    package = importlib.util.find_spec("litellm")
    for folder in (package and package.submodule_search_locations) or ():
        if (file := Path(folder) / FILE).is_file():
            rows: Mapping[str, Mapping[str, Any]] = orjson.loads(file.read_bytes())
            return rows
    table: Mapping[str, Mapping[str, Any]] = litellm_client.load().model_cost
    return table
