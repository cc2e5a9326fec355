"""The LLM port's part that is the same for every client: JSON, asked for as strictly as it can be.

A provider that refuses a response format (HTTP 400) is asked with the next plainer one, and that is
remembered for the life of the process. A truncated answer is returned as it is: its JSON breaks
off, which the parser says better.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, assert_never

from pipeline.domain.errors import ModelRejected, paid
from pipeline.domain.usage import Usage
from pipeline.ports import ChatTurn, Completion

# Several times the longest honest answer to a full batch, with the thoughts of a reasoning model.
MAX_TOKENS = 16_384
_ABOUT_FORMAT = re.compile(
    r"response_?format|json_?(schema|object|mode)|structured.?output|guided|grammar", re.IGNORECASE
)
_ABOUT_LIMIT = re.compile(
    r"max_?(completion_|output_|new_)?tokens|context.?(length|window)", re.IGNORECASE
)
_REFUSALS_OF_A_PARAMETER = frozenset({400, 422})


class FormatRefused(ModelRejected):
    """The provider does not take this kind of `response_format`; a plainer one may do."""


class LimitRefused(ModelRejected):
    """The provider does not take this `max_tokens`, alone or beside this prompt."""


def rejection(status: int, text: str) -> type[ModelRejected]:
    """The error for a refusal of this status and text."""
    if status in _REFUSALS_OF_A_PARAMETER and _ABOUT_FORMAT.search(text):
        return FormatRefused
    if status in _REFUSALS_OF_A_PARAMETER and _ABOUT_LIMIT.search(text):
        return LimitRefused
    return ModelRejected


class Format(IntEnum):
    """How the answer's form is asked for, strictest first. The prompt asks for JSON in any case."""

    JSON_SCHEMA = 0
    JSON_OBJECT = 1
    PLAIN = 2


@dataclass(frozen=True, slots=True)
class Reply:
    """One chat completion. `cost_usd` is None where the price is not known."""

    text: str
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


class JsonLLM(ABC):
    """The LLM port over one client of one model."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._format: Format | None = None

    @property
    def name(self) -> str:
        return self._model

    @abstractmethod
    async def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Reply:
        """One chat completion. `options` are those of OpenAI's API.

        Errors: ModelUnavailable, ModelRejected, FormatRefused, LimitRefused.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release connections; nothing where there are none."""

    @abstractmethod
    async def table(self) -> Any:
        """LiteLLM, whose table knows the models' limits."""

    async def complete(
        self, turns: Sequence[ChatTurn], *, schema_name: str, schema: Mapping[str, object]
    ) -> Completion:
        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        reply = await self._ask(messages, schema_name, schema)
        usage = Usage(
            model=self._model,
            calls=1,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost_usd=reply.cost_usd,
        )
        with paid(usage):
            if reply.finish_reason == "content_filter" and not reply.text:
                raise ModelRejected(
                    f"{self._model}: the provider's content filter withheld the answer"
                )
            return Completion(reply.text, usage)

    async def _ask(
        self, messages: list[dict[str, str]], name: str, schema: Mapping[str, object]
    ) -> Reply:
        if self._format is None:
            self._format = _strictest(await self.table(), self._model)
        for form in list(Format)[self._format :]:
            try:
                reply = await self._limited(messages, **_response_format(form, name, schema))
            except FormatRefused:
                continue
            self._format = form
            return reply
        raise ModelRejected(f"{self._model}: refuses every response format")

    async def _limited(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Reply:
        """An answer of limited length; of any, from a server whose context cannot hold so much."""
        limit = _longest(await self.table(), self._model)
        try:
            return await self.chat(messages, temperature=0, max_tokens=limit, **options)
        except LimitRefused:
            return await self.chat(messages, temperature=0, **options)


def _longest(litellm: Any, model: str) -> int:
    """MAX_TOKENS, or what the model is known to give at most."""
    costs = litellm.model_cost
    known = costs.get(model) or costs.get(model.partition("/")[2]) or {}
    return min(MAX_TOKENS, int(known.get("max_output_tokens") or MAX_TOKENS))


def _strictest(litellm: Any, model: str) -> Format:
    """The strictest format worth trying: a schema, unless the model is known not to take one.

    LiteLLM answers False for every model it has not heard of, and most servers behind an
    OpenAI-compatible base (vLLM, llama.cpp, LM Studio, Ollama) do take a schema: those are tried.
    """
    known = model in litellm.model_cost or model.partition("/")[2] in litellm.model_cost
    if known and not litellm.supports_response_schema(model):
        return Format.JSON_OBJECT
    return Format.JSON_SCHEMA


def _response_format(form: Format, name: str, schema: Mapping[str, object]) -> dict[str, Any]:
    match form:
        case Format.JSON_SCHEMA:
            described = {"name": name, "schema": dict(schema), "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        case Format.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        case Format.PLAIN:
            return {}
        case _:
            assert_never(form)
