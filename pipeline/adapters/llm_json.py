"""Base class of the LLM adapters: asks for JSON in the strictest format that the provider supports.

If a provider refuses a response format (HTTP 400 or 422), the next less strict one is tried and
used from then on. A truncated answer is returned unchanged; the parser reports its broken JSON.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, assert_never

from pipeline.domain.errors import ModelRejected, ModelUnavailable, paid
from pipeline.domain.usage import Usage
from pipeline.ports import ChatTurn, Completion
from pipeline.text.tokens import tokens

# Several times the longest expected answer to a full batch, reasoning tokens included.
MAX_TOKENS = 16_384
_ABOUT_FORMAT = re.compile(
    r"response_?format|json_?(schema|object|mode)|structured.?output|guided|grammar"
    r"|\btools?\b|tool_?(choice|use|call)|function_?call",
    re.IGNORECASE,
)
_ABOUT_LIMIT = re.compile(
    r"max_?(completion_|output_|new_)?tokens|context.?(length|window)|input.?length|batch.?size"
    r"|too (long|large|many)|(less|more) than \d+ tokens|tokens per request",
    re.IGNORECASE,
)
# Source: https://platform.openai.com/docs/guides/reasoning
_NO_MAX_TOKENS = re.compile(r"\bmax_tokens\b.{0,40}not supported", re.IGNORECASE)
_NO_TEMPERATURE = re.compile(
    r"\btemperature\b.{0,60}(support|deprecated|not allowed|only be set)", re.IGNORECASE
)
# Groq refuses an answer of the model that is not in the requested format.
# Source: https://console.groq.com/docs/structured-outputs
_FAILED_FORMAT = re.compile(
    r"json_validate_failed|tool_use_failed|failed to (generate json|call a function)", re.IGNORECASE
)
_REFUSALS_OF_A_PARAMETER = frozenset({400, 413, 422})
TOO_LARGE = 413
# Finish reasons besides those of OpenAI's API.
REFUSAL, ERROR = "refusal", "error"
_WITHHELD = {
    "content_filter": "the provider's content filter withheld the answer",
    REFUSAL: "the model refuses this prompt",
}


class FormatRefused(ModelRejected):
    """The provider does not support this way to ask for JSON; a less strict one may work."""


class FormatFailed(ModelRejected):
    """The model's answer was not in the requested format, and the provider withholds it."""


class LimitRefused(ModelRejected):
    """The provider refuses this `max_tokens`, or the length of the prompt, text or batch."""


class LimitUnsupported(LimitRefused):
    """The model does not support `max_tokens`."""


class TemperatureUnsupported(ModelRejected):
    """The model does not support a temperature of 0."""


_REJECTIONS = {
    FormatFailed: _FAILED_FORMAT,
    LimitUnsupported: _NO_MAX_TOKENS,
    TemperatureUnsupported: _NO_TEMPERATURE,
    FormatRefused: _ABOUT_FORMAT,
    LimitRefused: _ABOUT_LIMIT,
}


def rejection(status: int, text: str) -> type[ModelRejected]:
    """Class of the error for a refused request, from its HTTP status and text."""
    if status in _REFUSALS_OF_A_PARAMETER:
        for kind, pattern in _REJECTIONS.items():
            if pattern.search(text):
                return kind
    return LimitRefused if status == TOO_LARGE else ModelRejected


class Format(IntEnum):
    """Ways to ask for JSON, strictest first. The prompt asks for JSON in any case.

    FUNCTION: the answer is the arguments of a function that the model has to call.
    """

    JSON_SCHEMA = 0
    FUNCTION = 1
    JSON_OBJECT = 2
    PLAIN = 3


@dataclass(frozen=True, slots=True)
class Reply:
    """One chat completion. `cost_usd`: None if the price is unknown.

    `finish_reason`: as in OpenAI's API, REFUSAL, or ERROR if the provider failed after its start.
    """

    text: str
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Abilities:
    """The length of answers and the formats of a model. `max_output_tokens`: None if unknown."""

    max_output_tokens: int | None = None
    schema: bool = True
    functions: bool = True


class JsonLLM(ABC):
    """The LLM port over a client of one model.

    Subclasses implement `chat`, `abilities` and `close`.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        # The formats that are left to try; the first one is the one that the provider accepts.
        self._formats: list[Format] = []
        # The parameters that the model supports, as far as it is known.
        self._limit_name: str | None = "max_tokens"
        self._temperature = True

    @property
    def name(self) -> str:
        return self._model

    @abstractmethod
    async def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Reply:
        """One chat completion. `options`: further parameters of OpenAI's API.

        Errors: ModelUnavailable, ModelRejected, and the classes of `rejection`.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release connections, if any."""

    @abstractmethod
    async def abilities(self) -> Abilities:
        """The abilities of the model, as far as LiteLLM's table knows it."""

    async def complete(
        self, turns: Sequence[ChatTurn], *, schema_name: str, schema: Mapping[str, object]
    ) -> Completion:
        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        reply = await self._ask(messages, schema_name, schema)
        usage = self._usage(turns, reply)
        with paid(usage):
            if reply.finish_reason == ERROR:
                raise ModelUnavailable(f"{self._model}: the provider failed during the answer")
            if reply.finish_reason in _WITHHELD and not reply.text:
                raise ModelRejected(f"{self._model}: {_WITHHELD[reply.finish_reason]}")
            return Completion(reply.text, usage)

    def _usage(self, turns: Sequence[ChatTurn], reply: Reply) -> Usage:
        """The usage of a reply; estimated if the provider reports none, so that budgets count."""
        prompt, completion = reply.prompt_tokens, reply.completion_tokens
        if not prompt and not completion:
            prompt = sum(tokens(turn.content) for turn in turns)
            completion = tokens(reply.text)
        return Usage(
            model=self._model,
            calls=1,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_usd=reply.cost_usd,
        )

    async def ping(self) -> None:
        """Make one call of one token, for a check of the settings. Errors: as `chat`."""
        messages = [{"role": "user", "content": "Say ok."}]
        try:
            await self.chat(messages, max_tokens=1)
        except LimitRefused:
            await self.chat(messages)

    async def _ask(
        self, messages: list[dict[str, str]], name: str, schema: Mapping[str, object]
    ) -> Reply:
        """One answer, in the strictest format that the provider does not refuse.

        Errors: as `chat`; ModelRejected if every format is refused.
        """
        if not self._formats:
            can = await self.abilities()
            known = {Format.JSON_SCHEMA: can.schema, Format.FUNCTION: can.functions}
            self._formats = [form for form in Format if known.get(form, True)]
        failed = False
        for form in list(self._formats):
            try:
                reply = await self._limited(messages, **_format_options(form, name, schema))
            except FormatRefused:
                continue
            except FormatFailed:
                failed = True  # of this answer only
                continue
            if not failed:
                self._formats = [left for left in self._formats if left >= form]
            return reply
        raise ModelRejected(f"{self._model}: refuses every response format")

    async def _limited(self, messages: Sequence[Mapping[str, str]], **options: Any) -> Reply:
        """One answer with a limit on its length; without it if the provider refuses the limit."""
        limit = min(MAX_TOKENS, (await self.abilities()).max_output_tokens or MAX_TOKENS)
        try:
            return await self._supported_only(messages, limit, **options)
        except LimitRefused:
            return await self._supported_only(messages, None, **options)

    async def _supported_only(
        self, messages: Sequence[Mapping[str, str]], limit: int | None, **options: Any
    ) -> Reply:
        """One answer, without the parameters that the model does not support.

        A reasoning model behind a name that LiteLLM does not know refuses them. Errors: as `chat`.
        """
        limit_name, temperature = self._limit_name if limit else None, self._temperature
        sent: dict[str, Any] = {"temperature": 0} if temperature else {}
        if limit_name:
            sent[limit_name] = limit
        try:
            return await self.chat(messages, **sent, **options)
        except LimitUnsupported:
            if limit_name != "max_tokens":
                raise
            self._limit_name = "max_completion_tokens"
        except TemperatureUnsupported:
            if not temperature:
                raise
            self._temperature = False
        return await self._supported_only(messages, limit, **options)


def _format_options(form: Format, name: str, schema: Mapping[str, object]) -> dict[str, Any]:
    """The parameters of OpenAI's API for a format; none for PLAIN."""
    match form:
        case Format.JSON_SCHEMA:
            described = {"name": name, "schema": dict(schema), "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        case Format.FUNCTION:
            function = {"name": name, "parameters": dict(schema)}
            choice = {"type": "function", "function": {"name": name}}
            return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
        case Format.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        case Format.PLAIN:
            return {}
        case _:
            assert_never(form)
