"""Settings of the models: one at a provider, and a language model with its fallbacks."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode

from pipeline.domain.errors import InvalidInput

# Built-in models, which need no key and no network.
RULES, MINILM = "local/rules", "local/minilm"
NO_MODEL = "none"


class ModelSettings(BaseModel):
    """Settings of one model at one provider."""

    model: str
    """Name as LiteLLM writes it, or a built-in model."""
    api_base: str | None = None
    """Base URL, for OpenAI-compatible servers."""
    api_key: SecretStr | None = None
    """API key. It is never logged, and sent to that provider only."""
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """Timeout of one call, in seconds."""

    @field_validator("*", mode="before")
    @classmethod
    def trimmed(cls, value: object) -> object:
        """Remove white space around a text, such as the line break at the end of a mounted key."""
        return without_space(value)

    def named(self, model: str, allowed: Collection[str]) -> ModelSettings:
        """These settings for another model: the configured one, or an allowed one.

        Errors: InvalidInput for any other name, and for another provider. Only exact names are
        allowed: part of a model's name can determine the host that is called, and the key is for
        the configured provider only.
        """
        provider = self.model.partition("/")[0]
        names = {self.model} | {name for name in allowed if name.partition("/")[0] == provider}
        if model not in names:
            known = " or ".join(sorted(names))
            raise InvalidInput(
                f"{model} cannot be used in a replay: name {known}, or have the operator add it to"
                " MEMLANE_REPLAY_MODELS."
            )
        return self.model_copy(update={"model": model})


def _models(value: object) -> object:
    """The models of a text: names such as `a, b`, or a JSON list of objects."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return json.loads(value)
    return [{"model": name} for name in words_of(value)]


class LLMSettings(ModelSettings):
    """Settings of the language model, and of the models that stand in for it."""

    fallbacks: Annotated[tuple[ModelSettings, ...], NoDecode, BeforeValidator(_models)] = ()
    """Models that are called in this order if the answer is malformed after its repair, refused or
    unavailable: names separated by commas, or a JSON list of objects with `model`, `api_base`,
    `api_key` and `timeout_s`. A fallback without base URL and key has those of `MEMLANE_LLM` if its
    provider is the same, and otherwise the variables that LiteLLM reads.
    """

    @model_validator(mode="after")
    def each_once(self) -> LLMSettings:
        """Check that no name occurs twice, because a circuit breaker belongs to a name.

        Errors: ValueError, for pydantic.
        """
        names = [model.model for model in self.chain]
        if len(set(names)) < len(names):
            raise ValueError(f"each model can be named once, but these are {', '.join(names)}")
        return self

    @property
    def chain(self) -> tuple[ModelSettings, ...]:
        """The model and its fallbacks, in the order in which they are called."""
        return (self, *map(self._completed, self.fallbacks))

    def _completed(self, fallback: ModelSettings) -> ModelSettings:
        """The fallback with this provider's base URL and key, if they are its own."""
        same = fallback.model.partition("/")[0] == self.model.partition("/")[0]
        if not same or fallback.api_base or fallback.api_key:
            return fallback
        return fallback.model_copy(update={"api_base": self.api_base, "api_key": self.api_key})


def words_of(text: str) -> list[str]:
    """The words of a text such as `a, b`."""
    return [word for part in text.split(",") if (word := part.strip())]


def without_space(value: object) -> object:
    """A text without white space around it; any other value unchanged."""
    match value:
        case str():
            return value.strip()
        case SecretStr():
            return SecretStr(value.get_secret_value().strip())
        case _:
            return value
